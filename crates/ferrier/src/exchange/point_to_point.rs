//! Exchange `point_to_point`: a message to each peer, taken in order of
//! arrival. Ranks that do not talk do not wait for each other.

use super::{Mover, Places, Volumes, packed, parts};
use crate::transport::Part;
use crate::{Comm, Result};

struct PointToPoint {
    comm: Comm,
    send: Places,
    recv: Places,
    sent: Vec<Part>,
    received: Vec<Part>,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let comm = comm.duplicate()?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    // Each rank begins with its next neighbour, so that nobody is everybody's first.
    let in_turn = |mut parts: Vec<Part>| -> Vec<Part> {
        let (size, rank) = (comm.size(), comm.rank());
        parts.sort_unstable_by_key(|part| (part.peer + size - rank) % size);
        parts
    };
    let (sent, received) = (in_turn(parts(&send, &volumes.to)), in_turn(parts(&recv, &volumes.from)));
    comm.transport().prepare(true, &sent, &received)?;
    Ok(Box::new(PointToPoint { comm, send, recv, sent, received }))
}

impl Mover for PointToPoint {
    fn send(&self) -> &Places {
        &self.send
    }

    fn recv(&self) -> &Places {
        &self.recv
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.comm.transport().messages(send, &self.sent, recv, &self.received)
    }
}
