//! Exchange `all_to_all`: one collective per reshape, every part padded to
//! the longest, which some networks and libraries do much faster.

use super::{Mover, Places, Volumes, talkers};
use crate::{Comm, Result};

struct AllToAll {
    group: Comm,
    /// The same for both buffers.
    places: Places,
    block: usize,
}

pub(super) fn mover(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let (group, ranks) = talkers(comm, volumes)?;
    // Parts are loaded and stored as vectors: keep them aligned.
    let block = volumes.largest.next_multiple_of(64);
    let at = ranks.iter().map(|number| number.unwrap_or(0) * block).collect();
    let places = Places { at, len: block * group.size() };
    Ok(Box::new(AllToAll { group, places, block }))
}

impl Mover for AllToAll {
    fn send(&self) -> &Places {
        &self.places
    }

    fn recv(&self) -> &Places {
        &self.places
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.group.transport().all_to_all(self.block, send, recv)
    }
}
