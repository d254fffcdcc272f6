//! Exchange `point_to_point`: a message to each peer, taken in order of
//! arrival. Ranks that do not talk do not wait for each other.

use super::{Mover, Volumes, packed};
use crate::transport::Part;
use crate::{Comm, Result};

struct PointToPoint {
    comm: Comm,
    send: Vec<Part>,
    recv: Vec<Part>,
    sent: Vec<Part>,
    received: Vec<Part>,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let comm = comm.duplicate()?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    // Each rank begins with its next neighbour, so that nobody is everybody's first.
    let in_turn = |parts: &[Part]| -> Vec<Part> {
        let (size, rank) = (comm.size(), comm.rank());
        (1..size).map(|shift| parts[(rank + shift) % size]).filter(|part| part.len > 0).collect()
    };
    let (sent, received) = (in_turn(&send), in_turn(&recv));
    comm.transport().prepare(true, &sent, &received)?;
    Ok(Box::new(PointToPoint { comm, send, recv, sent, received }))
}

impl Mover for PointToPoint {
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
        self.comm.transport().messages(send, &self.sent, recv, &self.received)
    }
}
