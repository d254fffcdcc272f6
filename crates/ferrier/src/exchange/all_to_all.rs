//! Exchange `all_to_all`: one collective per reshape, with all segments padded
//! to one length, which some networks and libraries do much faster. Segments
//! of variable length go as point-to-point messages.

use ferrier_plan::messages::{BufferLayout, RemoteBuffers, Volumes};

use super::groups::{Groups, labels, single_transfer};
use super::point_to_point;
use super::progress_set::ExchangeSpec;
use crate::Result;
use crate::transport::{Segment, TransferKind};

pub(super) fn specify(groups: &mut Groups, volumes: &Volumes) -> Result<ExchangeSpec> {
    const NAME: &str = "all_to_all";
    if volumes.vary() {
        return point_to_point::specify_instead_of(NAME, groups, volumes);
    }
    let (group, ranks) = groups.connected(volumes)?;
    // Segments are loaded and stored as vectors: keep them aligned.
    let block = volumes.table.largest().next_multiple_of(64);
    let at = ranks.iter().map(|number| number.unwrap_or(0) * block).collect();
    let layout = BufferLayout { offsets: at, len: block * group.size() };
    let segment = |peer| Segment { peer, offset: peer * block, len: block };
    let segments: Vec<Segment> = (0..group.size()).map(segment).collect();
    let remote = || {
        let labels = labels(&volumes.table);
        let mut sizes = vec![0; labels.len()];
        labels.iter().for_each(|&label| sizes[label] += 1);
        let lens = labels.iter().map(|&label| block * sizes[label]).collect();
        RemoteBuffers { offsets: vec![block * group.rank(); labels.len()], lens }
    };
    let (layouts, lists) = ((layout.clone(), layout), (&segments[..], &segments[..]));
    single_transfer((NAME, TransferKind::AllToAll), group.transport(), volumes, layouts, lists, remote)
}
