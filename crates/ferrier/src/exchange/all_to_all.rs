//! Exchange `all_to_all`: one collective per reshape, every part padded to
//! the longest, which some networks and libraries do much faster.

use super::{Mover, Volumes, talkers};
use crate::{Comm, Result};

struct AllToAll {
    group: Comm,
    /// Each rank's number in the group.
    ranks: Vec<Option<usize>>,
    block: usize,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let (group, ranks) = talkers(comm, volumes)?;
    // Parts are loaded and stored as vectors: keep them aligned.
    let block = volumes.largest.next_multiple_of(64);
    Ok(Box::new(AllToAll { group, ranks, block }))
}

impl AllToAll {
    fn at(&self, peer: usize) -> usize {
        self.ranks[peer].map_or(0, |number| number * self.block)
    }
}

impl Mover for AllToAll {
    fn send_len(&self) -> usize {
        self.block * self.group.size()
    }

    fn recv_len(&self) -> usize {
        self.block * self.group.size()
    }

    fn send_at(&self, peer: usize) -> usize {
        self.at(peer)
    }

    fn recv_at(&self, peer: usize) -> usize {
        self.at(peer)
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.group.transport().all_to_all(self.block, send, recv)
    }
}
