//! Binding: the routes of a pattern get their places in the memory of this rank and its node.

use std::sync::Arc;

use super::box_copy::{BoxCopy, Place};
use super::node_link::{NodeLink, shared_words, table_bytes};
use super::pattern::{Messages, Pattern, Route, segment_bytes};
use super::sweep::{Planes, Sweep, Task};
use crate::exchange::{Exchange, ExchangeEntry};
use crate::machine::buffer::Buffer;
use crate::{Comm, Result};

/// Buffers of what is sent and received, and where the messages of each exchange start in them.
type MessageBuffers = ([Buffer<f64>; 2], Vec<[usize; 2]>);

/// Where the other end of a route is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// This rank.
    Own,
    /// A rank of this node that shares memory.
    Node,
    /// A rank by messages.
    Remote,
}

/// A route, and where its segment lies.
pub(super) struct BoundRoute {
    pub rank: usize,
    pub peer: Peer,
    /// The exchange of its message, if it is one.
    pub group: usize,
    /// Address of the segment; dangling where there is none.
    pub segment: usize,
    /// Elements of one field.
    pub volume: usize,
}

/// Indices of the send and the receive buffer.
pub(super) const SEND: usize = 0;
pub(super) const RECEIVE: usize = 1;

/// The routes of one rank, in and out, with the memory that they use.
pub(super) struct Binding {
    /// One for each group of messages.
    pub exchanges: Vec<Exchange>,
    pub node: Option<NodeLink>,
    /// Send and receive buffer, and where those of each exchange begin in them, in bytes.
    pub buffers: [Buffer<f64>; 2],
    pub starts: Vec<[usize; 2]>,
    /// What stays on this rank in a run in place.
    pub staging: Buffer<f64>,
    pub outgoing: Vec<BoundRoute>,
    pub incoming: Vec<BoundRoute>,
    /// Copies to segments: of messages, by exchange, and of those that stay on the node.
    pub pack_messages: Vec<Sweep>,
    pub pack_segments: Sweep,
    /// Copies to the target: of what is on this node, and of what messages bring, by exchange (of all, if applied in
    /// order).
    pub near: Sweep,
    pub far: Vec<Sweep>,
    /// Whether the latter load from the memory of other ranks as well.
    pub far_shares: bool,
}

/// What binds routes.
pub(super) struct Binder<'a> {
    /// A group of the plan's own.
    pub comm: &'a Comm,
    pub pattern: &'a Arc<dyn Pattern>,
    pub fields: usize,
    pub element_bytes: usize,
    /// Whether ranks of a node load from each other.
    pub shares: bool,
    pub in_place: bool,
    /// The planes of the target, where copies are applied in order.
    pub planes: Option<Planes>,
    /// Groups of messages.
    pub groups: usize,
}

impl Binder<'_> {
    /// Collective; allocates the memory of the plan.
    pub fn bind(&self, entry: &ExchangeEntry) -> Result<Binding> {
        let (comm, rank) = (self.comm, self.comm.rank());
        let messages = self.messages();
        let exchanges = self.exchanges(entry, &messages)?;
        let (buffers, starts) = self.buffers(&exchanges)?;
        let (outgoing, incoming) = (self.pattern.outgoing(rank), self.pattern.incoming(rank));
        let node = match self.shares {
            true => Some(self.node_link(&exchanges, &buffers, &outgoing, &incoming)?),
            false => None,
        };
        let own = outgoing.iter().find(|route| self.in_place && route.peer == rank);
        let staging =
            self.private(own.map_or(0, |own| self.bytes(own)).div_ceil(8), "what stays on a rank")?;
        let place = |route: &Route, end: usize| -> BoundRoute {
            let peer = self.peer(rank, route.peer);
            let (sender, receiver) = if end == SEND { (rank, route.peer) } else { (route.peer, rank) };
            let group = if peer == Peer::Remote { messages.group(sender, receiver) } else { 0 };
            let segment = match (peer, &node) {
                (Peer::Node, Some(node)) => {
                    node.memory_of(sender) + table_bytes(self.fields) + self.bytes_before(sender, receiver)
                }
                (Peer::Remote, node) => {
                    let base = buffers[end].as_ptr() as usize + starts[group][end];
                    message_address(&exchanges[group], node.as_ref(), base, route.peer, end)
                }
                _ => staging.as_ptr() as usize,
            };
            BoundRoute { rank: route.peer, peer, group, segment, volume: route.volume() }
        };
        let [bound_out, bound_in] = [(&outgoing, SEND), (&incoming, RECEIVE)]
            .map(|(routes, end)| routes.iter().map(|route| place(route, end)).collect::<Vec<_>>());
        let tasks = |wanted: &dyn Fn(&BoundRoute) -> bool, end: usize| -> Vec<Task> {
            let (routes, bound) = if end == SEND { (&outgoing, &bound_out) } else { (&incoming, &bound_in) };
            let wanted = routes.iter().zip(bound).enumerate().filter(|(_, (_, bound))| wanted(bound));
            wanted.flat_map(|(number, (route, _))| route_tasks(number, route, end)).collect()
        };
        let shared = |tasks: Vec<Task>| Sweep::by_volume(&tasks, comm.threads());
        let remote = |end: usize| -> Vec<Sweep> {
            let of = |group| move |route: &BoundRoute| route.peer == Peer::Remote && route.group == group;
            (0..exchanges.len()).map(|group| shared(tasks(&of(group), end))).collect()
        };
        let (near, far) = match self.planes {
            None => (shared(tasks(&|route| route.peer != Peer::Remote, RECEIVE)), remote(RECEIVE)),
            Some(planes) => {
                let all = Sweep::by_plane(&tasks(&|_| true, RECEIVE), comm.threads(), planes);
                (shared(Vec::new()), vec![all])
            }
        };
        let in_segments =
            |route: &BoundRoute| route.peer == Peer::Node || (route.peer == Peer::Own && self.in_place);
        let (pack_messages, pack_segments) = (remote(SEND), shared(tasks(&in_segments, SEND)));
        exchanges.iter().try_for_each(Exchange::open)?;
        let far_shares = has_node_buffers(&exchanges) || self.planes.is_some();
        let (outgoing, incoming) = (bound_out, bound_in);
        Ok(Binding {
            exchanges,
            node,
            buffers,
            starts,
            staging,
            outgoing,
            incoming,
            pack_messages,
            pack_segments,
            near,
            far,
            far_shares,
        })
    }

    fn peer(&self, rank: usize, other: usize) -> Peer {
        let nodes = self.comm.nodes();
        match self.shares && nodes[rank] == nodes[other] {
            _ if rank == other => Peer::Own,
            true => Peer::Node,
            false => Peer::Remote,
        }
    }

    fn messages(&self) -> Messages {
        let (pattern, bytes) = (self.pattern.clone(), self.fields * self.element_bytes);
        let nodes = self.shares.then(|| self.comm.nodes().into());
        Messages { pattern, bytes, nodes, groups: self.groups }
    }

    /// The exchanges of what goes by messages. Whether there are any is the same on every rank.
    fn exchanges(&self, entry: &ExchangeEntry, messages: &Messages) -> Result<Vec<Exchange>> {
        let comm = self.comm;
        let needed = comm.size() > 1 && !(self.shares && comm.node_count() == 1);
        let Some(make) = entry.make.filter(|_| needed) else { return Ok(Vec::new()) };
        let all: Vec<_> = (0..self.groups).map(|group| messages.volumes(comm.rank(), group)).collect();
        make(comm, &all)
    }

    /// Memory of this rank alone. Where it cannot be had, the other ranks would wait for this one.
    fn private(&self, words: usize, what: &'static str) -> Result<Buffer<f64>> {
        Buffer::new(words, what).inspect_err(|error| self.comm.fail(&error.to_string()))
    }

    /// The message buffers of all exchanges, one after the other.
    fn buffers(&self, exchanges: &[Exchange]) -> Result<MessageBuffers> {
        const WHAT: &str = "the messages of a plan";
        let mut lens = [0; 2];
        let mut starts = Vec::with_capacity(exchanges.len());
        for exchange in exchanges.iter().map(Exchange::buffers) {
            starts.push(lens);
            lens[SEND] += exchange.send.len.next_multiple_of(64);
            lens[RECEIVE] += exchange.recv.len.next_multiple_of(64);
        }
        let [send, recv] = lens.map(|bytes| match self.shares {
            true => shared_words(self.comm, bytes.div_ceil(8), WHAT),
            false => self.private(bytes.div_ceil(8), WHAT),
        });
        Ok(([send?, recv?], starts))
    }

    fn node_link(
        &self,
        exchanges: &[Exchange],
        buffers: &[Buffer<f64>; 2],
        outgoing: &[Route],
        incoming: &[Route],
    ) -> Result<NodeLink> {
        let (rank, nodes) = (self.comm.rank(), self.comm.nodes());
        let near = |routes: &[Route]| -> Vec<usize> {
            let peers = routes.iter().map(|route| route.peer);
            peers.filter(|&peer| self.peer(rank, peer) == Peer::Node).collect()
        };
        // Any rank of the node may find messages for it in the receive buffer of this one.
        let readers = match has_node_buffers(exchanges) {
            true => (0..nodes.len()).filter(|&peer| self.peer(rank, peer) == Peer::Node).collect(),
            false => near(outgoing),
        };
        let addresses = buffers.each_ref().map(|buffer| match buffer.len() {
            0 => 0,
            _ => buffer.as_ptr() as usize,
        });
        let segments = self.bytes_before(rank, usize::MAX);
        NodeLink::new(self.comm, self.fields, segments, addresses, (readers, near(incoming)))
    }

    /// Bytes of the segment of a route.
    fn bytes(&self, route: &Route) -> usize {
        segment_bytes(route.volume(), self.fields * self.element_bytes)
    }

    /// Bytes before the segment for `receiver` in the memory of a sender of this node.
    fn bytes_before(&self, sender: usize, receiver: usize) -> usize {
        let routes = self.pattern.outgoing(sender);
        let before = routes
            .iter()
            .filter(|route| route.peer < receiver && self.peer(sender, route.peer) == Peer::Node);
        before.map(|route| self.bytes(route)).sum()
    }
}

/// Whether ranks load messages from the receive buffers of other ranks of their node.
fn has_node_buffers(exchanges: &[Exchange]) -> bool {
    exchanges.iter().any(|exchange| exchange.buffers().sharing.is_some())
}

/// The address of the segment for (or from) a rank in a send (or receive) buffer of this node; that of this rank begins at
/// `base`.
fn message_address(
    exchange: &Exchange,
    node: Option<&NodeLink>,
    base: usize,
    peer: usize,
    end: usize,
) -> usize {
    let layout = exchange.buffers();
    let offset = if end == SEND { layout.send.offsets[peer] } else { layout.recv.offsets[peer] };
    match (&layout.sharing, node) {
        // Such exchanges have one group: buffers begin with it.
        (Some(sharing), Some(node)) => {
            let holder = if end == SEND { sharing.outbox[peer] } else { sharing.inbox[peer] };
            node.addresses[holder][end] + offset
        }
        _ => base + offset,
    }
}

/// The copies of a route, with their places in its segment.
fn route_tasks(number: usize, route: &Route, end: usize) -> Vec<Task> {
    let mut offset = 0;
    let task = |copy: &BoxCopy| {
        let segment: Place = copy.place_in_segment(offset);
        offset += copy.volume();
        match end {
            SEND => {
                let packed = BoxCopy { to: segment, ..*copy };
                Task { route: number, direct: packed, packed }
            }
            _ => Task { route: number, direct: *copy, packed: BoxCopy { from: segment, ..*copy } },
        }
    };
    route.copies.iter().map(task).collect()
}
