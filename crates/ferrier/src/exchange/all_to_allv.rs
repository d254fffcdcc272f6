//! Exchange `all_to_allv`: one collective per reshape, every part as long as it is.

use super::{Mover, Volumes, packed, talkers};
use crate::transport::Part;
use crate::{Comm, Result};

struct AllToAllV {
    group: Comm,
    send: Vec<Part>,
    recv: Vec<Part>,
    sent: Vec<Part>,
    received: Vec<Part>,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let (group, ranks) = talkers(comm, volumes)?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let in_group = |parts: &[Part]| -> Vec<Part> {
        let renamed = |part: &Part| ranks[part.peer].map(|peer| Part { peer, ..*part });
        parts.iter().filter(|part| part.len > 0).filter_map(renamed).collect()
    };
    let (sent, received) = (in_group(&send), in_group(&recv));
    group.transport().prepare(false, &sent, &received)?;
    Ok(Box::new(AllToAllV { group, send, recv, sent, received }))
}

impl Mover for AllToAllV {
    fn send_len(&self) -> usize {
        self.send.last().map_or(0, |part| part.at + part.len)
    }

    fn recv_len(&self) -> usize {
        self.recv.last().map_or(0, |part| part.at + part.len)
    }

    fn send_at(&self, peer: usize) -> usize {
        self.send[peer].at
    }

    fn recv_at(&self, peer: usize) -> usize {
        self.recv[peer].at
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.group.transport().all_to_allv(send, &self.sent, recv, &self.received)
    }
}
