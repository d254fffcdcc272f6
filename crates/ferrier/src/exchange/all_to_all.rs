//! Exchange `all_to_all`: one collective per reshape, every part padded to
//! the longest, which some networks and libraries do much faster. Parts whose
//! lengths only their senders know go as messages.

use super::progress_set::Hull;
use super::{BufferLayout, Groups, RemoteBuffers, Volumes, labels, point_to_point};
use crate::Result;
use crate::transport::{Call, Part};

pub(super) fn hull(groups: &mut Groups, volumes: &Volumes) -> Result<Hull> {
    if volumes.vary() {
        return point_to_point::hull(groups, volumes);
    }
    let (group, ranks) = groups.talkers(volumes)?;
    // Parts are loaded and stored as vectors: keep them aligned.
    let block = volumes.largest.next_multiple_of(64);
    let at = ranks.iter().map(|number| number.unwrap_or(0) * block).collect();
    let places = BufferLayout { offsets: at, len: block * group.size() };
    let parts: Vec<Part> =
        (0..group.size()).map(|peer| Part { peer, at: peer * block, len: block }).collect();
    let loans = || {
        let labels = labels(&volumes.pairs);
        let size = |label: &usize| labels.iter().filter(|other| *other == label).count();
        let lens = labels.iter().map(|label| block * size(label)).collect();
        RemoteBuffers { offsets: vec![block * group.rank(); labels.len()], lens }
    };
    Hull::of_parts(&group, volumes, Call::AllToAll, (places.clone(), places), (&parts, &parts), loans)
}
