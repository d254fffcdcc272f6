//! Exchange `all_to_allv`: one collective per reshape, with segments of any
//! length. A collective needs the lengths on both sides, so segments of
//! variable length go as point-to-point messages.

use ferrier_plan::messages::{Volumes, packed, packed_remote};

use super::groups::{Groups, segments, single_transfer};
use super::point_to_point;
use super::progress_set::ExchangeSpec;
use crate::Result;
use crate::transport::{Segment, TransferKind};

pub(super) fn specify(groups: &mut Groups, volumes: &Volumes) -> Result<ExchangeSpec> {
    const NAME: &str = "all_to_allv";
    if volumes.vary() {
        return point_to_point::specify_instead_of(NAME, groups, volumes);
    }
    let (group, ranks) = groups.connected(volumes)?;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let in_group = |segments: Vec<Segment>| -> Vec<Segment> {
        let renumber = |segment: Segment| ranks[segment.peer].map(|peer| Segment { peer, ..segment });
        segments.into_iter().filter_map(renumber).collect()
    };
    let (sent, received) = (in_group(segments(&send, &volumes.to)), in_group(segments(&recv, &volumes.from)));
    let remote = || packed_remote(volumes, groups.all.rank());
    let (layouts, lists) = ((send, recv), (&sent[..], &received[..]));
    single_transfer((NAME, TransferKind::AllToAllV), group.transport(), volumes, layouts, lists, remote)
}
