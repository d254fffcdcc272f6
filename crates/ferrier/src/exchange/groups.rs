//! Groups of ranks that communicate, and their segments.

use std::sync::Arc;

use ferrier_plan::messages::{BufferLayout, RemoteBuffers, SegmentTable, Volumes};

use super::progress_set::{Exchange, ExchangeSpec, Operation, exchanges};
use crate::Result;
use crate::transport::{Comm, Segment, TransferKind, Transport};

/// The groups in which the exchanges of a plan communicate: as few as possible, since MPI has a limited number of
/// communicators.
pub(super) struct Groups {
    /// A duplicate of all ranks.
    pub all: Comm,
    /// Groups by the label of each rank.
    known: Vec<(Vec<usize>, Comm)>,
}

impl Groups {
    /// The group of ranks that exchange bytes, directly or through others, and each rank's number in it (`None`
    /// outside). Collective.
    pub fn connected(&mut self, volumes: &Volumes) -> Result<(Comm, Vec<Option<usize>>)> {
        let labels = labels(&volumes.table);
        let own = labels[self.all.rank()];
        let mut next = 0..;
        let ranks = labels.iter().map(|&label| if label == own { next.next() } else { None }).collect();
        if let Some((_, group)) = self.known.iter().find(|(known, _)| *known == labels) {
            return Ok((group.clone(), ranks));
        }
        let group = Comm::new(self.all.transport().split_by(&labels)?, self.all.threads());
        self.known.push((labels, group.clone()));
        Ok((group, ranks))
    }
}

/// Makes exchanges one by one. Collective.
pub(super) fn make_each(
    comm: &Comm,
    all: &[Volumes],
    specify: fn(&mut Groups, &Volumes) -> Result<ExchangeSpec>,
) -> Result<Vec<Exchange>> {
    let mut groups = Groups { all: comm.duplicate()?, known: Vec::new() };
    let specs = all.iter().map(|volumes| specify(&mut groups, volumes)).collect::<Result<Vec<_>>>()?;
    Ok(exchanges(groups.all.transport(), specs))
}

/// For each rank the smallest one that it exchanges bytes with, directly or through others.
pub(super) fn labels(table: &SegmentTable) -> Vec<usize> {
    fn root(parents: &mut [usize], mut rank: usize) -> usize {
        while parents[rank] != rank {
            parents[rank] = parents[parents[rank]];
            rank = parents[rank];
        }
        rank
    }
    let mut parents: Vec<usize> = (0..table.ranks()).collect();
    let mut groups = table.ranks();
    for from in 0..table.ranks() {
        if groups == 1 {
            break;
        }
        for (to, _) in table.row(from) {
            let (one, other) = (root(&mut parents, from), root(&mut parents, to));
            if one != other {
                parents[one.max(other)] = one.min(other);
                groups -= 1;
            }
        }
    }
    (0..table.ranks()).map(|rank| root(&mut parents, rank)).collect()
}

/// The segments of a buffer that are not empty.
pub(super) fn segments(layout: &BufferLayout, lens: &[usize]) -> Vec<Segment> {
    let segment = |(peer, (&offset, &len))| Segment { peer, offset, len };
    let all = layout.offsets.iter().zip(lens).enumerate().map(segment);
    all.filter(|segment| segment.len > 0).collect()
}

/// An exchange by one transfer; `name` is that of the table. Where the transport can leave segments in the senders'
/// buffers, nothing is copied and `remote` says where they lie. Collective.
pub(super) fn single_transfer(
    (name, kind): (&str, TransferKind),
    transport: &Arc<dyn Transport>,
    volumes: &Volumes,
    (send, recv): (BufferLayout, BufferLayout),
    (sent, received): (&[Segment], &[Segment]),
    remote: impl FnOnce() -> RemoteBuffers,
) -> Result<ExchangeSpec> {
    // Encoded segments are decoded out of this rank's receive buffer.
    let in_place = match volumes.encoded.is_some() || volumes.via_host {
        false => transport.transfer_in_place(sent, received)?,
        true => None,
    };
    if let Some(transfer) = in_place {
        let no_buffer = BufferLayout { offsets: vec![0; recv.offsets.len()], len: 0 };
        let mut spec = ExchangeSpec::new(send, no_buffer, Operation::Transfer(transfer));
        spec.buffers.remote = Some(remote());
        return Ok(spec);
    }
    let transfer = transport.transfer(kind, sent, received)?;
    let note = transfer.substitution().map(|why| format!("{name}: {why}; using point-to-point messages"));
    Ok(ExchangeSpec { note, ..ExchangeSpec::new(send, recv, Operation::Transfer(transfer)) })
}
