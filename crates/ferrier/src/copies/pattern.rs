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

/// Bytes of a segment of so many elements: a multiple of what is copied at once, so that the next segment is aligned.
pub(super) fn segment_bytes(elements: usize, element_bytes: usize) -> usize {
    (elements * element_bytes).next_multiple_of(16)
}

/// What goes by messages, in groups that are started one after the other: while the first ones are on their way, the
/// next are packed. Every rank derives the same groups.
#[derive(Clone)]
pub(super) struct Messages {
    pub pattern: Arc<dyn Pattern>,
    /// Bytes of an element, times the number of fields.
    pub bytes: usize,
    /// The node of each rank, if ranks of a node send no messages to each other.
    pub nodes: Option<Arc<[usize]>>,
    /// Number of groups.
    pub groups: usize,
}

impl Messages {
    fn sends(&self, from: usize, to: usize) -> bool {
        from != to && self.nodes.as_ref().is_none_or(|nodes| nodes[from] != nodes[to])
    }

    /// The receivers of a rank's messages, ascending, with bytes and group: each group has about as many bytes. The first
    /// are for the ranks after this one, so that not all send to the same rank at once.
    fn sent(&self, rank: usize) -> Vec<(usize, usize, usize)> {
        let routes = self.pattern.outgoing(rank).into_iter().filter(|route| self.sends(rank, route.peer));
        let segment = |route: Route| (route.peer, segment_bytes(route.volume(), self.bytes));
        let mut sent: Vec<(usize, usize)> = routes.map(segment).filter(|(_, bytes)| *bytes > 0).collect();
        let ranks = self.pattern.ranks();
        sent.sort_unstable_by_key(|(peer, _)| (peer + ranks - rank) % ranks);
        let total: usize = sent.iter().map(|(_, bytes)| bytes).sum();
        let mut before = 0;
        let group = |(peer, bytes): (usize, usize)| {
            let middle = 2 * before + bytes;
            before += bytes;
            (peer, bytes, middle * self.groups / (2 * total))
        };
        let mut sent: Vec<_> = sent.into_iter().map(group).collect();
        sent.sort_unstable();
        sent
    }

    /// The group of the message from one rank to another; 0 where there is none.
    pub fn group(&self, from: usize, to: usize) -> usize {
        self.sent(from).into_iter().find(|(peer, ..)| *peer == to).map_or(0, |(_, _, group)| group)
    }

    /// The bytes of a group, as `rank` sees them.
    pub fn volumes(&self, rank: usize, group: usize) -> Volumes {
        let messages = self.clone();
        let list = move |rank: usize, sending: bool| -> Vec<(usize, usize)> {
            let of_group =
                |(peer, bytes, own): (usize, usize, usize)| (own == group).then_some((peer, bytes));
            if sending {
                return messages.sent(rank).into_iter().filter_map(of_group).collect();
            }
            let sources = messages.pattern.incoming(rank).into_iter().map(|route| route.peer);
            let from = |peer: usize| {
                let sent = messages.sent(peer).into_iter().find(|(to, ..)| *to == rank)?;
                of_group(sent).map(|(_, bytes)| (peer, bytes))
            };
            sources.filter(|&peer| messages.sends(peer, rank)).filter_map(from).collect()
        };
        // Segments are copied to receive buffers: those of the senders are free as soon as the exchange is complete.
        let table = SegmentTable::new(self.pattern.ranks(), list);
        Volumes { via_host: true, reshape: 0, ..Volumes::new(table, rank) }
    }
}
