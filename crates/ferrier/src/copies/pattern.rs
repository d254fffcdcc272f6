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
    /// Orders the messages of a rank: ranks that send with the same number should send to different ranks.
    fn step(&self, from: usize, to: usize) -> usize {
        let ranks = self.ranks();
        (to + ranks - from) % ranks
    }
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

/// Bytes from which a message pays: shorter ones are not cut, and groups of messages are not smaller.
const LEAST_MESSAGE: usize = 64 << 10;

/// The part of a route that goes in one message.
#[derive(Clone, Debug)]
pub(super) struct MessagePart {
    pub group: usize,
    pub route: Route,
}

/// What goes by messages, in groups that are started one after the other: while the first ones are on their way, the
/// next are packed and what arrives is unpacked. Every rank derives the same groups.
#[derive(Clone)]
pub(super) struct Messages {
    pub pattern: Arc<dyn Pattern>,
    /// Bytes of an element, times the number of fields.
    pub bytes: usize,
    /// The node of each rank, if ranks of a node send no messages to each other.
    pub nodes: Option<Arc<[usize]>>,
    /// Number of groups.
    pub groups: usize,
    /// See [`Copier::IN_PIECES`](super::copier::Copier::IN_PIECES).
    pub in_pieces: bool,
}

impl Messages {
    fn sends(&self, from: usize, to: usize) -> bool {
        from != to && self.nodes.as_ref().is_none_or(|nodes| nodes[from] != nodes[to])
    }

    /// The routes from a rank that go by messages.
    fn routes(&self, rank: usize) -> impl Iterator<Item = Route> {
        let routes = self.pattern.outgoing(rank).into_iter();
        routes.filter(move |route| self.sends(rank, route.peer) && route.volume() > 0)
    }

    /// The most groups that pay for what a rank sends.
    pub fn groups_for(&self, rank: usize) -> usize {
        self.routes(rank).map(|route| route.volume() * self.bytes).sum::<usize>() / LEAST_MESSAGE
    }

    /// What a rank sends, ascending by receiver: each group has about as many bytes, and long messages are cut where one
    /// group ends and the next begins. Groups have the messages in the order of their steps.
    pub fn sent(&self, rank: usize) -> Vec<MessagePart> {
        let mut routes: Vec<Route> = self.routes(rank).collect();
        routes.sort_by_key(|route| self.pattern.step(rank, route.peer));
        let total: usize = routes.iter().map(Route::volume).sum();
        let mut parts: Vec<MessagePart> = Vec::new();
        let mut before = 0;
        for Route { peer, copies } in routes {
            let first = parts.len();
            let volume: usize = copies.iter().map(BoxCopy::volume).sum();
            let middle = (2 * before + volume) * self.groups / (2 * total);
            let whole = volume * self.bytes < LEAST_MESSAGE;
            for copy in copies {
                let axis = copy.cut_axis();
                let (planes, mut start) = (copy.shape[axis], 0);
                let plane = copy.volume() / planes.max(1);
                while start < planes {
                    let group = if whole { middle } else { (before + start * plane) * self.groups / total };
                    // The first plane that begins in the next group.
                    let border = ((group + 1) * total).saturating_sub(before * self.groups);
                    let end = if whole { planes } else { border.div_ceil(plane * self.groups).min(planes) };
                    let cut = copy.cut(axis, start..end);
                    match parts[first..].iter_mut().find(|part| part.group == group) {
                        Some(part) => part.route.copies.push(cut),
                        None => parts.push(MessagePart { group, route: Route { peer, copies: vec![cut] } }),
                    }
                    start = end;
                }
                before += copy.volume();
            }
        }
        parts.sort_by_key(|part| (part.route.peer, part.group));
        parts
    }

    /// What a rank receives, ascending by sender.
    pub fn received(&self, rank: usize) -> Vec<MessagePart> {
        let sources = self.pattern.incoming(rank).into_iter().map(|route| route.peer);
        let from = |peer: usize| {
            let parts = self.sent(peer).into_iter().filter(move |part| part.route.peer == rank);
            parts.map(move |part| MessagePart { route: Route { peer, ..part.route }, ..part })
        };
        sources.filter(|&peer| self.sends(peer, rank)).flat_map(from).collect()
    }

    /// The bytes of a group, as `rank` sees them; `own`: what it sends and receives.
    pub fn volumes(&self, rank: usize, group: usize, own: &Arc<[Vec<MessagePart>; 2]>) -> Volumes {
        let (messages, own) = (self.clone(), own.clone());
        let list = move |other: usize, sending: bool| -> Vec<(usize, usize)> {
            let derived;
            let parts = match (other == rank, sending) {
                (true, sending) => &own[usize::from(!sending)],
                (false, true) => {
                    derived = messages.sent(other);
                    &derived
                }
                (false, false) => {
                    derived = messages.received(other);
                    &derived
                }
            };
            let of_group = parts.iter().filter(|part| part.group == group);
            of_group
                .map(|MessagePart { route, .. }| (route.peer, segment_bytes(route.volume(), messages.bytes)))
                .collect()
        };
        // Segments are copied to receive buffers: those of the senders are free as soon as the exchange is complete.
        let table = SegmentTable::new(self.pattern.ranks(), list);
        Volumes { via_host: true, in_pieces: self.in_pieces, reshape: 0, ..Volumes::new(table, rank) }
    }
}
