//! Exchange `point_to_point`: a message to each peer, taken in order of
//! arrival. Ranks that do not talk do not wait for each other.

use super::progress_set::{Hull, Measured};
use super::{Groups, Volumes, packed, packed_remote, parts};
use crate::Result;
use crate::transport::{Call, Part};

pub(super) fn hull(groups: &mut Groups, volumes: &Volumes) -> Result<Hull> {
    let comm = groups.whole();
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    // Each rank begins with its next neighbour, so that nobody is everybody's first.
    let in_turn = |mut parts: Vec<Part>| -> Vec<Part> {
        let (size, rank) = (comm.size(), comm.rank());
        parts.sort_unstable_by_key(|part| (part.peer + size - rank) % size);
        parts
    };
    let (sent, received) = (in_turn(parts(&send, &volumes.to)), in_turn(parts(&recv, &volumes.from)));
    if volumes.vary() {
        let flight = comm.transport().flight(Call::Messages, &sent, &received)?;
        return Ok(Hull::new(send, recv, Box::new(Measured(flight))));
    }
    let loans = || packed_remote(volumes, comm.rank());
    Hull::of_parts(comm, volumes, Call::Messages, (send, recv), (&sent, &received), loans)
}
