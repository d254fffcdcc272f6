//! Exchange `all_to_allv`: one collective per reshape, every part as long as it
//! is. A collective wants both sides to know how long that is: parts whose
//! lengths only their senders know go as messages.

use super::progress_set::Hull;
use super::{Groups, Volumes, packed, packed_remote, parts, point_to_point};
use crate::Result;
use crate::transport::{Call, Part};

pub(super) fn hull(groups: &mut Groups, volumes: &Volumes) -> Result<Hull> {
    if volumes.vary() {
        return point_to_point::hull(groups, volumes);
    }
    let (group, ranks) = groups.talkers(volumes)?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let in_group = |parts: Vec<Part>| -> Vec<Part> {
        parts.into_iter().filter_map(|part| ranks[part.peer].map(|peer| Part { peer, ..part })).collect()
    };
    let (sent, received) = (in_group(parts(&send, &volumes.to)), in_group(parts(&recv, &volumes.from)));
    let loans = || packed_remote(volumes, groups.whole().rank());
    Hull::of_parts(&group, volumes, Call::AllToAllV, (send, recv), (&sent, &received), loans)
}
