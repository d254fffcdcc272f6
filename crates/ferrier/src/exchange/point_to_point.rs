//! Exchange `point_to_point`: a message to each peer, received in order of
//! arrival. Ranks that exchange no bytes do not wait for each other.

use ferrier_plan::messages::{Volumes, packed, packed_remote};

use super::groups::{Groups, segments, single_transfer};
use super::progress_set::ExchangeSpec;
use crate::Result;
use crate::transport::{Segment, TransferKind};

pub(super) fn specify(groups: &mut Groups, volumes: &Volumes) -> Result<ExchangeSpec> {
    let comm = &groups.all;
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    // Each rank begins with the next one, so that not all send to the same rank first.
    let in_order = |mut segments: Vec<Segment>| -> Vec<Segment> {
        let (size, rank) = (comm.size(), comm.rank());
        segments.sort_unstable_by_key(|segment| (segment.peer + size - rank) % size);
        segments
    };
    let (sent, received) = (in_order(segments(&send, &volumes.to)), in_order(segments(&recv, &volumes.from)));
    let (layouts, lists) = ((send, recv), (&sent[..], &received[..]));
    let remote = || packed_remote(volumes, comm.rank());
    let kind = if volumes.in_pieces { TransferKind::ShortMessages } else { TransferKind::Messages };
    let spec = single_transfer(("point_to_point", kind), comm.transport(), volumes, layouts, lists, remote)?;
    Ok(ExchangeSpec { needs_coder: volumes.vary(), ..spec })
}

/// In place of a collective `name`, whose receivers would have to know the lengths.
pub(super) fn specify_instead_of(name: &str, groups: &mut Groups, volumes: &Volumes) -> Result<ExchangeSpec> {
    let note = Some(format!("{name}: the codec has variable length; using point-to-point messages"));
    Ok(ExchangeSpec { note, ..specify(groups, volumes)? })
}
