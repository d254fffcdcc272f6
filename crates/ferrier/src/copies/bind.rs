//! Binding: the routes of a pattern get their places in the memory of this rank and its node.

use std::sync::Arc;

use super::box_copy::{BoxCopy, Place};
use super::node_link::{NodeLink, shared_words, table_bytes};
use super::pattern::{Pattern, Route, segment_bytes, volumes};
use super::sweep::{Planes, Sweep, Task};
use crate::exchange::{Exchange, ExchangeEntry};
use crate::machine::buffer::Buffer;
use crate::{Comm, Result};

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
    pub exchange: Option<Exchange>,
    pub node: Option<NodeLink>,
    /// Send and receive buffer.
    pub buffers: [Buffer<f64>; 2],
    /// What stays on this rank in a run in place.
    pub staging: Buffer<f64>,
    pub outgoing: Vec<BoundRoute>,
    pub incoming: Vec<BoundRoute>,
    /// Copies to segments: of messages, and of those that stay on the node.
    pub pack_messages: Sweep,
    pub pack_segments: Sweep,
    /// Copies to the target: of what is on this node, and of what messages bring (of all, if applied in order).
    pub near: Sweep,
    pub far: Sweep,
    /// Whether the second of these loads from the memory of other ranks as well.
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
}

impl Binder<'_> {
    /// Collective; allocates the memory of the plan.
    pub fn bind(&self, entry: &ExchangeEntry) -> Result<Binding> {
        let (comm, rank) = (self.comm, self.comm.rank());
        let exchange = self.exchange(entry)?;
        let buffers = self.buffers(exchange.as_ref())?;
        let (outgoing, incoming) = (self.pattern.outgoing(rank), self.pattern.incoming(rank));
        let node = match self.shares {
            true => Some(self.node_link(exchange.as_ref(), &buffers, &outgoing, &incoming)?),
            false => None,
        };
        let own = outgoing.iter().find(|route| self.in_place && route.peer == rank);
        let staging =
            self.private(own.map_or(0, |own| self.bytes(own)).div_ceil(8), "what stays on a rank")?;
        let place = |route: &Route, end: usize| -> BoundRoute {
            let peer = self.peer(rank, route.peer);
            let segment = match (peer, &node) {
                (Peer::Node, Some(node)) => {
                    let (sender, receiver) =
                        if end == SEND { (rank, route.peer) } else { (route.peer, rank) };
                    node.memory_of(sender) + table_bytes(self.fields) + self.bytes_before(sender, receiver)
                }
                (Peer::Remote, node) => {
                    message_address(exchange.as_ref(), node.as_ref(), &buffers, route.peer, end)
                }
                _ => staging.as_ptr() as usize,
            };
            BoundRoute { rank: route.peer, peer, segment, volume: route.volume() }
        };
        let [bound_out, bound_in] = [(&outgoing, SEND), (&incoming, RECEIVE)]
            .map(|(routes, end)| routes.iter().map(|route| place(route, end)).collect::<Vec<_>>());
        let tasks = |peers: &dyn Fn(Peer) -> bool, end: usize| -> Vec<Task> {
            let routes = if end == SEND { &outgoing } else { &incoming };
            let wanted = routes.iter().enumerate().filter(|(_, route)| peers(self.peer(rank, route.peer)));
            wanted.flat_map(|(number, route)| route_tasks(number, route, end)).collect()
        };
        let shared = |tasks: Vec<Task>| Sweep::by_volume(&tasks, comm.threads());
        let remote = |peer: Peer| peer == Peer::Remote;
        let (near, far) = match self.planes {
            None => (shared(tasks(&|peer| !remote(peer), RECEIVE)), shared(tasks(&remote, RECEIVE))),
            Some(planes) => {
                (shared(Vec::new()), Sweep::by_plane(&tasks(&|_| true, RECEIVE), comm.threads(), planes))
            }
        };
        let in_segments = |peer: Peer| peer == Peer::Node || (peer == Peer::Own && self.in_place);
        let (pack_messages, pack_segments) =
            (shared(tasks(&remote, SEND)), shared(tasks(&in_segments, SEND)));
        if let Some(exchange) = &exchange {
            exchange.open()?;
        }
        let in_node_buffers = has_node_buffers(exchange.as_ref());
        let (outgoing, incoming) = (bound_out, bound_in);
        Ok(Binding {
            exchange,
            node,
            buffers,
            staging,
            outgoing,
            incoming,
            pack_messages,
            pack_segments,
            near,
            far,
            far_shares: in_node_buffers || self.planes.is_some(),
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

    /// The exchange of what goes by messages. Whether there is one is the same on every rank.
    fn exchange(&self, entry: &ExchangeEntry) -> Result<Option<Exchange>> {
        let comm = self.comm;
        let needed = comm.size() > 1 && !(self.shares && comm.node_count() == 1);
        let Some(make) = entry.make.filter(|_| needed) else { return Ok(None) };
        let (nodes, shares): (Arc<[usize]>, bool) = (comm.nodes().into(), self.shares);
        let sends = move |from: usize, to: usize| from != to && !(shares && nodes[from] == nodes[to]);
        let volumes = volumes(self.pattern, comm.rank(), self.fields * self.element_bytes, sends);
        Ok(make(comm, &[volumes])?.pop())
    }

    /// Memory of this rank alone. Where it cannot be had, the other ranks would wait for this one.
    fn private(&self, words: usize, what: &'static str) -> Result<Buffer<f64>> {
        Buffer::new(words, what).inspect_err(|error| self.comm.fail(&error.to_string()))
    }

    fn buffers(&self, exchange: Option<&Exchange>) -> Result<[Buffer<f64>; 2]> {
        const WHAT: &str = "the messages of a plan";
        let lens =
            exchange.map_or([0; 2], |exchange| [exchange.buffers().send.len, exchange.buffers().recv.len]);
        let [send, recv] = lens.map(|bytes| match self.shares {
            true => shared_words(self.comm, bytes.div_ceil(8), WHAT),
            false => self.private(bytes.div_ceil(8), WHAT),
        });
        Ok([send?, recv?])
    }

    fn node_link(
        &self,
        exchange: Option<&Exchange>,
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
        let readers = match has_node_buffers(exchange) {
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
fn has_node_buffers(exchange: Option<&Exchange>) -> bool {
    exchange.is_some_and(|exchange| exchange.buffers().sharing.is_some())
}

/// The address of the segment for (or from) a rank in a send (or receive) buffer of this node.
fn message_address(
    exchange: Option<&Exchange>,
    node: Option<&NodeLink>,
    buffers: &[Buffer<f64>; 2],
    peer: usize,
    end: usize,
) -> usize {
    let Some(layout) = exchange.map(Exchange::buffers) else { unreachable!("a remote peer has an exchange") };
    let offset = if end == SEND { layout.send.offsets[peer] } else { layout.recv.offsets[peer] };
    let base = match (&layout.sharing, node) {
        (Some(sharing), Some(node)) => {
            let holder = if end == SEND { sharing.outbox[peer] } else { sharing.inbox[peer] };
            node.addresses[holder][end]
        }
        _ => buffers[end].as_ptr() as usize,
    };
    base + offset
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
