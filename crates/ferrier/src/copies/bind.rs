//! Binding: the routes of a pattern get their places in the memory of this rank and its node.

use std::sync::Arc;

use super::bound_route::{BoundRoute, Peer};
use super::box_copy::{BoxCopy, Place};
use super::copier::{Copier, MessageSpan, RouteCounts, SweepKind};
use super::node_link::NodeLink;
use super::pattern::{MessagePart, Messages, Pattern, Route, segment_bytes};
use super::sweep::{Planes, Task};
use crate::exchange::{Exchange, ExchangeEntry, PacketPolicy};
use crate::{Comm, Result};

/// Buffers of what is sent and received, and the part of each exchange in them.
type MessageBuffers<C> = ([<C as Copier>::Buffer; 2], Vec<MessageSpan>);

/// Indices of the send and the receive buffer.
pub(super) const SEND: usize = 0;
pub(super) const RECEIVE: usize = 1;

/// The routes of one rank, in and out, with the memory that they use.
pub(super) struct Binding<C: Copier> {
    /// One for each group of messages.
    pub exchanges: Vec<Exchange>,
    /// Dropped before the memory that other ranks load from.
    pub node: Option<NodeLink>,
    /// Segments for ranks of this node.
    pub segments: C::Buffer,
    /// Send and receive buffer, and the part of each exchange in them.
    pub buffers: [C::Buffer; 2],
    pub spans: Vec<MessageSpan>,
    /// What stays on this rank in a run in place.
    pub staging: C::Buffer,
    pub outgoing: Vec<BoundRoute>,
    pub incoming: Vec<BoundRoute>,
    /// Copies to segments: of messages, by exchange, and of those that stay on the node.
    pub pack_messages: Vec<C::Sweep>,
    pub pack_segments: C::Sweep,
    /// Copies to the target: of what is on this node, and of what messages bring, by exchange (of all, if applied in
    /// order).
    pub near: C::Sweep,
    pub far: Vec<C::Sweep>,
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
    /// The most groups of messages.
    pub most_groups: usize,
}

impl Binder<'_> {
    /// Collective; allocates the memory of the plan.
    pub fn bind<C: Copier>(&self, entry: &ExchangeEntry, copier: &mut C) -> Result<Binding<C>> {
        let (comm, rank) = (self.comm, self.comm.rank());
        let messages = self.messages(C::IN_PIECES)?;
        let sent = Arc::new([messages.sent(rank), messages.received(rank)]);
        let exchanges = self.exchanges(entry, &messages, &sent)?;
        let (buffers, spans) = self.buffers(&exchanges, copier)?;
        let outgoing = self.parts(self.pattern.outgoing(rank), &sent[SEND]);
        let incoming = self.parts(self.pattern.incoming(rank), &sent[RECEIVE]);
        let bytes = self.bytes_before(rank, usize::MAX);
        let segments = copier.buffer(comm, bytes, self.shares, "the segments of a plan")?;
        let address = |buffer: &C::Buffer| match C::span(buffer) {
            [_, 0] => 0,
            [address, _] => address,
        };
        let node = match self.shares {
            true => {
                let addresses = [address(&buffers[0]), address(&buffers[1]), address(&segments)];
                Some(self.node_link(&exchanges, addresses, &outgoing, &incoming)?)
            }
            false => None,
        };
        let own = outgoing.iter().find(|part| self.in_place && part.route.peer == rank);
        let own = own.map_or(0, |own| self.bytes(&own.route));
        let staging = copier.buffer(comm, own, false, "what stays on a rank")?;
        let place = |&MessagePart { group, ref route }: &MessagePart, end: usize| -> BoundRoute {
            let peer = self.peer(rank, route.peer);
            let (sender, receiver) = if end == SEND { (rank, route.peer) } else { (route.peer, rank) };
            let segment = match (peer, &node) {
                (Peer::Node, Some(node)) => node.segments[sender] + self.bytes_before(sender, receiver),
                (Peer::Remote, node) => {
                    let base = C::span(&buffers[end])[0] + spans[group].at[end];
                    message_address(&exchanges[group], node.as_ref(), base, route.peer, end)
                }
                _ => C::span(&staging)[0],
            };
            BoundRoute { rank: route.peer, peer, group, segment, volume: route.volume() }
        };
        let [bound_out, bound_in] = [(&outgoing, SEND), (&incoming, RECEIVE)]
            .map(|(parts, end)| parts.iter().map(|part| place(part, end)).collect::<Vec<_>>());
        let counts = RouteCounts { fields: self.fields, outgoing: outgoing.len(), incoming: incoming.len() };
        let mut sweep = |wanted: &dyn Fn(&BoundRoute) -> bool, kind: SweepKind| -> C::Sweep {
            let end = if matches!(kind, SweepKind::Pack) { SEND } else { RECEIVE };
            let (parts, bound) = if end == SEND { (&outgoing, &bound_out) } else { (&incoming, &bound_in) };
            let wanted = parts.iter().zip(bound).enumerate().filter(|(_, (_, bound))| wanted(bound));
            let tasks: Vec<Task> =
                wanted.flat_map(|(number, (part, _))| route_tasks(number, &part.route, end)).collect();
            copier.bind_sweep(&tasks, kind, counts)
        };
        let of = |group| move |route: &BoundRoute| route.peer == Peer::Remote && route.group == group;
        let pack_messages = (0..exchanges.len()).map(|group| sweep(&of(group), SweepKind::Pack)).collect();
        let in_segments =
            |route: &BoundRoute| route.peer == Peer::Node || (route.peer == Peer::Own && self.in_place);
        let pack_segments = sweep(&in_segments, SweepKind::Pack);
        let (near, far) = match self.planes {
            None => (
                sweep(&|route| route.peer != Peer::Remote, SweepKind::Store),
                (0..exchanges.len()).map(|group| sweep(&of(group), SweepKind::Store)).collect(),
            ),
            Some(planes) => {
                let all = sweep(&|_| true, SweepKind::Ordered(planes));
                (sweep(&|_| false, SweepKind::Store), vec![all])
            }
        };
        let messages = [0, 1].map(|end| C::span(&buffers[end])[1]);
        copier.complete(comm, counts, self.shares, entry.name, messages)?;
        exchanges.iter().try_for_each(Exchange::open)?;
        let far_shares = has_node_buffers(&exchanges) || self.planes.is_some();
        let (outgoing, incoming) = (bound_out, bound_in);
        Ok(Binding {
            exchanges,
            node,
            segments,
            buffers,
            spans,
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

    /// What goes by messages. Collective.
    fn messages(&self, in_pieces: bool) -> Result<Messages> {
        let (pattern, bytes) = (self.pattern.clone(), self.fields * self.element_bytes);
        let nodes = self.shares.then(|| self.comm.nodes().into());
        let mut messages = Messages { pattern, bytes, nodes, groups: 1, in_pieces };
        if self.most_groups > 1 && self.has_messages() {
            let most = self.comm.max(&[messages.groups_for(self.comm.rank()) as f64])?[0] as usize;
            messages.groups = most.clamp(1, self.most_groups);
        }
        Ok(messages)
    }

    /// Whether there can be messages; the same on every rank.
    fn has_messages(&self) -> bool {
        self.comm.size() > 1 && !(self.shares && self.comm.node_count() == 1)
    }

    /// The exchanges of what goes by messages.
    fn exchanges(
        &self,
        entry: &ExchangeEntry,
        messages: &Messages,
        parts: &Arc<[Vec<MessagePart>; 2]>,
    ) -> Result<Vec<Exchange>> {
        let Some(make) = entry.make.filter(|_| self.has_messages()) else { return Ok(Vec::new()) };
        let volumes = |group| messages.volumes(self.comm.rank(), group, parts);
        let all: Vec<_> = (0..messages.groups).map(volumes).collect();
        make(self.comm, &all, PacketPolicy::default())
    }

    /// The routes of this rank, ascending by peer: those that go by messages in parts.
    fn parts(&self, routes: Vec<Route>, sent: &[MessagePart]) -> Vec<MessagePart> {
        let near = |route: &Route| self.peer(self.comm.rank(), route.peer) != Peer::Remote;
        let near = routes.into_iter().filter(near).map(|route| MessagePart { group: 0, route });
        let mut parts: Vec<MessagePart> = near.chain(sent.iter().cloned()).collect();
        parts.sort_by_key(|part| (part.route.peer, part.group));
        parts
    }

    /// The message buffers of all exchanges, one after the other.
    fn buffers<C: Copier>(&self, exchanges: &[Exchange], copier: &C) -> Result<MessageBuffers<C>> {
        let mut at = [0; 2];
        let mut spans = Vec::with_capacity(exchanges.len());
        for exchange in exchanges.iter().map(Exchange::buffers) {
            let len = [exchange.send.len, exchange.recv.len];
            spans.push(MessageSpan { at, len });
            at = [0, 1].map(|end| at[end] + len[end].next_multiple_of(64));
        }
        let [send, recv] =
            at.map(|bytes| copier.buffer(self.comm, bytes, self.shares, "the messages of a plan"));
        Ok(([send?, recv?], spans))
    }

    /// `addresses`: send buffer, receive buffer, segments.
    fn node_link(
        &self,
        exchanges: &[Exchange],
        addresses: [usize; 3],
        outgoing: &[MessagePart],
        incoming: &[MessagePart],
    ) -> Result<NodeLink> {
        let (rank, nodes) = (self.comm.rank(), self.comm.nodes());
        let near = |parts: &[MessagePart]| -> Vec<usize> {
            let peers = parts.iter().map(|part| part.route.peer);
            peers.filter(|&peer| self.peer(rank, peer) == Peer::Node).collect()
        };
        // Any rank of the node may find messages for it in the receive buffer of this one.
        let readers = match has_node_buffers(exchanges) {
            true => (0..nodes.len()).filter(|&peer| self.peer(rank, peer) == Peer::Node).collect(),
            false => near(outgoing),
        };
        NodeLink::new(self.comm, self.fields, addresses, (readers, near(incoming)))
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

/// The copies of a route that is not empty, with their places in its segment.
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
