//! Exchange `all_to_allv`: one collective per reshape, every part as long as it is.

use super::{Mover, Places, Volumes, packed, parts, talkers};
use crate::transport::Part;
use crate::{Comm, Result};

struct AllToAllV {
    group: Comm,
    send: Places,
    recv: Places,
    sent: Vec<Part>,
    received: Vec<Part>,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let (group, ranks) = talkers(comm, volumes)?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let in_group = |parts: Vec<Part>| -> Vec<Part> {
        parts.into_iter().filter_map(|part| ranks[part.peer].map(|peer| Part { peer, ..part })).collect()
    };
    let (sent, received) = (in_group(parts(&send, &volumes.to)), in_group(parts(&recv, &volumes.from)));
    group.transport().prepare(false, &sent, &received)?;
    Ok(Box::new(AllToAllV { group, send, recv, sent, received }))
}

impl Mover for AllToAllV {
    fn send(&self) -> &Places {
        &self.send
    }

    fn recv(&self) -> &Places {
        &self.recv
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.group.transport().all_to_allv(send, &self.sent, recv, &self.received)
    }
}
