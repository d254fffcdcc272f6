//! Which boxes go from which rank to which.

use std::sync::Arc;

use super::box_copy::BoxCopy;
use ferrier_plan::messages::{SegmentTable, Volumes};

/// The copies from one rank's array to another's.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The rank of the source, or of the target.
    pub peer: usize,
    pub copies: Vec<BoxCopy>,
}

impl Route {
    /// Elements.
    pub fn volume(&self) -> usize {
        self.copies.iter().map(BoxCopy::volume).sum()
    }
}

/// The copies between the arrays of all ranks. Every rank derives the same.
pub(crate) trait Pattern: Send + Sync {
    /// Number of ranks.
    fn ranks(&self) -> usize;
    /// What arrives in the array of a rank: one route for each rank that it comes from, itself included, ascending.
    fn incoming(&self, rank: usize) -> Vec<Route>;
    /// What leaves the array of a rank: one route for each rank that gets something, itself included, ascending. Its
    /// copies are those of the receiver's route, in the same order.
    fn outgoing(&self, rank: usize) -> Vec<Route>;
}

/// Routes by the peers that they are listed under; each ascending and once.
pub(crate) fn collect_routes(mut copies: Vec<(usize, BoxCopy)>) -> Vec<Route> {
    copies.sort_by_key(|(peer, _)| *peer);
    let mut routes: Vec<Route> = Vec::new();
    for (peer, copy) in copies {
        match routes.last_mut() {
            Some(route) if route.peer == peer => route.copies.push(copy),
            _ => routes.push(Route { peer, copies: vec![copy] }),
        }
    }
    routes
}

/// Bytes of a segment of so many elements: whole words, so that the next segment is aligned.
pub(super) fn segment_bytes(elements: usize, element_bytes: usize) -> usize {
    (elements * element_bytes).next_multiple_of(8)
}

/// The bytes that go between this rank and others for which `sends(from, to)`; `bytes` are those of an element, times
/// the number of fields.
pub(super) fn volumes(
    pattern: &Arc<dyn Pattern>,
    rank: usize,
    bytes: usize,
    sends: impl Fn(usize, usize) -> bool + Send + Sync + 'static,
) -> Volumes {
    let list = {
        let pattern = pattern.clone();
        move |rank: usize, sending: bool| {
            let routes = if sending { pattern.outgoing(rank) } else { pattern.incoming(rank) };
            let sent = |route: &Route| match sending {
                true => sends(rank, route.peer),
                false => sends(route.peer, rank),
            };
            let entry = |route: Route| (route.peer, segment_bytes(route.volume(), bytes));
            routes.into_iter().filter(sent).map(entry).filter(|(_, bytes)| *bytes > 0).collect()
        }
    };
    // Segments are copied to receive buffers: those of the senders are free as soon as the exchange is complete.
    Volumes { via_host: true, ..Volumes::new(SegmentTable::new(pattern.ranks(), list), rank) }
}
