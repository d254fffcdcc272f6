//! Exchange `all_to_allv`: one collective per reshape, every part as long as it is.

use super::fleet::Hull;
use super::{Groups, Volumes, packed, packed_loans, parts};
use crate::Result;
use crate::transport::{Call, Part};

pub(super) fn hull(groups: &mut Groups, volumes: &Volumes) -> Result<Hull> {
    let (group, ranks) = groups.talkers(volumes)?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let in_group = |parts: Vec<Part>| -> Vec<Part> {
        parts.into_iter().filter_map(|part| ranks[part.peer].map(|peer| Part { peer, ..part })).collect()
    };
    let (sent, received) = (in_group(parts(&send, &volumes.to)), in_group(parts(&recv, &volumes.from)));
    let loans = || packed_loans(volumes, groups.whole().rank());
    Hull::of_parts(&group, Call::AllToAllV, (send, recv), (&sent, &received), loans)
}
