//! Which rank of a node carries the messages to and from another node.

use ferrier_plan::messages::{BufferLayout, NodeSharing, SegmentTable};

use crate::transport::Segment;

/// The buffers and messages of one rank. They follow from the segments of the ranks of its node.
pub(super) struct RankRoutes {
    pub send: BufferLayout,
    pub recv: BufferLayout,
    pub sharing: NodeSharing,
    pub sent: Vec<Segment>,
    pub received: Vec<Segment>,
    pub outgoing: Vec<Message>,
    pub incoming: Vec<Message>,
}

/// A message from one node to another, as its carrier on one side sees it.
pub(super) struct Message {
    /// The carrier on the other side.
    pub peer: usize,
    /// Offset in the buffer of this side's carrier.
    pub at: usize,
    pub len: usize,
    /// Offset in the message and greatest length of its segments.
    pub segments: Vec<(usize, usize)>,
}

/// The ranks of each node.
struct Nodes(Vec<Vec<usize>>);

impl Nodes {
    fn new(nodes: &[usize]) -> Nodes {
        let mut ranks = vec![Vec::new(); nodes.iter().max().map_or(0, |last| last + 1)];
        nodes.iter().enumerate().for_each(|(rank, &node)| ranks[node].push(rank));
        Nodes(ranks)
    }

    /// The rank of `node` that sends to node `other` (side 0), or receives from it (side 1): a different one for
    /// each node and direction, as far as there are ranks.
    fn carrier(&self, node: usize, other: usize, side: usize) -> usize {
        let count = self.0.len();
        let distance = (other + count - node) % count;
        self.0[node][(distance - 1 + side) % self.0[node].len()]
    }
}

/// What a node sends (side 0) or receives (side 1).
struct NodeSide {
    /// Messages by the rank of the node that carries them.
    messages: Vec<(usize, Message)>,
    /// Offsets of the segments of `rank` in the buffers of their carriers, by peer.
    offsets: Vec<usize>,
    /// Bytes of the buffers of the ranks of the node; 0 for others.
    lens: Vec<usize>,
}

impl NodeSide {
    fn new(nodes: &[usize], ranks: &Nodes, table: &SegmentTable, rank: usize, side: usize) -> NodeSide {
        let (node, count) = (nodes[rank], ranks.0.len());
        // The segments of the node's ranks, by the other node. In a message they are in order of sender and receiver.
        let mut segments: Vec<Vec<[usize; 3]>> = vec![Vec::new(); count];
        for &own in &ranks.0[node] {
            let list = if side == 0 { table.row(own) } else { table.column(own) };
            for (peer, bytes) in list.into_iter().filter(|(peer, _)| nodes[*peer] != node) {
                let (from, to) = if side == 0 { (own, peer) } else { (peer, own) };
                segments[nodes[peer]].push([from, to, bytes]);
            }
        }
        let (mut offsets, mut lens) = (vec![0; nodes.len()], vec![0; nodes.len()]);
        let mut messages = Vec::new();
        // In order of distance, as in a ring: carriers start with different nodes.
        for far in 1..count {
            let other = if side == 0 { (node + far) % count } else { (node + count - far) % count };
            let list = &mut segments[other];
            list.sort_unstable();
            let carrier = ranks.carrier(node, other, side);
            let at = lens[carrier];
            let mut message = Message {
                peer: ranks.carrier(other, node, 1 - side),
                at,
                len: 0,
                segments: Vec::with_capacity(list.len()),
            };
            for &[from, to, bytes] in list.iter() {
                let (own, peer) = if side == 0 { (from, to) } else { (to, from) };
                if own == rank {
                    offsets[peer] = at + message.len;
                }
                message.segments.push((message.len, bytes));
                // Ranks of the node store side by side: on separate cache lines.
                message.len += bytes.next_multiple_of(64);
            }
            if message.len > 0 {
                lens[carrier] += message.len;
                messages.push((carrier, message));
            }
        }
        NodeSide { messages, offsets, lens }
    }
}

impl RankRoutes {
    pub fn new(nodes: &[usize], table: &SegmentTable, rank: usize) -> RankRoutes {
        let ranks = Nodes::new(nodes);
        let [send, recv] = [0, 1].map(|side| NodeSide::new(nodes, &ranks, table, rank, side));
        let node = nodes[rank];
        let carriers = |side: usize| -> Vec<usize> {
            let of = |&other: &usize| if other == node { rank } else { ranks.carrier(node, other, side) };
            nodes.iter().map(of).collect()
        };
        let sharing = NodeSharing {
            nodes: nodes.to_vec(),
            outbox: carriers(0),
            inbox: carriers(1),
            lens: send.lens.iter().zip(&recv.lens).map(|(&send, &recv)| [send, recv]).collect(),
        };
        let own = |side: NodeSide| -> (BufferLayout, Vec<Segment>, Vec<Message>) {
            let carried = side.messages.into_iter().filter(|(carrier, _)| *carrier == rank);
            let messages: Vec<Message> = carried.map(|(_, message)| message).collect();
            let segment = |m: &Message| Segment { peer: m.peer, offset: m.at, len: m.len };
            let segments = messages.iter().map(segment).collect();
            (BufferLayout { offsets: side.offsets, len: side.lens[rank] }, segments, messages)
        };
        let ((send, sent, outgoing), (recv, received, incoming)) = (own(send), own(recv));
        RankRoutes { send, recv, sharing, sent, received, outgoing, incoming }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments do not overlap on either side, a message has the same segments in both buffers, and all ranks of a
    /// node know the lengths of its buffers.
    #[test]
    fn segments_do_not_overlap_and_messages_carry_them() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 0, 1, 2], vec![0, 1, 2, 3], vec![0, 0, 0, 1, 1, 2, 2, 2]] {
            let size = nodes.len();
            let bytes = |from: usize, to: usize| if from == to { 0 } else { (from * 7 + to * 3) % 5 * 40 };
            let table = SegmentTable::of(size, bytes);
            let routes: Vec<_> = (0..size).map(|rank| RankRoutes::new(&nodes, &table, rank)).collect();
            let pairs = || (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
            let crossing = || pairs().filter(|&(a, b)| nodes[a] != nodes[b] && bytes(a, b) > 0);
            // The carrier of a segment on one side, and its offset there.
            let place = |from: usize, to: usize, side: usize| match side {
                0 => (routes[from].sharing.outbox[to], routes[from].send.offsets[to]),
                _ => (routes[to].sharing.inbox[from], routes[to].recv.offsets[from]),
            };
            for side in 0..2 {
                let mut taken: Vec<(usize, usize, usize)> = Vec::new();
                for (from, to) in crossing() {
                    let (carrier, at) = place(from, to, side);
                    assert!(at + bytes(from, to) <= routes[carrier].sharing.lens[carrier][side]);
                    taken.push((carrier, at, at + bytes(from, to)));
                }
                taken.sort_unstable();
                assert!(taken.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1), "{nodes:?}");
            }
            let mut carried = 0;
            let mut between = Vec::new();
            for (sender, route) in routes.iter().enumerate() {
                for out in &route.outgoing {
                    between.push((nodes[sender], nodes[out.peer]));
                    let inbound = routes[out.peer].incoming.iter().find(|m| m.peer == sender).unwrap();
                    assert_eq!((out.len, &out.segments), (inbound.len, &inbound.segments));
                    for (from, to) in crossing()
                        .filter(|&(from, to)| (nodes[from], nodes[to]) == (nodes[sender], nodes[out.peer]))
                    {
                        let ((one, at), (other, there)) = (place(from, to, 0), place(from, to, 1));
                        assert_eq!((one, other, at - out.at), (sender, out.peer, there - inbound.at));
                        assert!(out.segments.contains(&(at - out.at, bytes(from, to))));
                        carried += 1;
                    }
                }
            }
            assert_eq!(carried, crossing().count(), "every segment is in a message");
            let all = between.len();
            between.sort_unstable();
            between.dedup();
            assert_eq!(between.len(), all, "one message for a pair of nodes");
            for (one, other) in pairs().filter(|&(a, b)| nodes[a] == nodes[b]) {
                assert_eq!(routes[one].sharing.lens, routes[other].sharing.lens);
            }
        }
    }

    #[test]
    fn pairs_of_nodes_have_different_carriers() {
        let nodes = Nodes::new(&[0, 0, 1, 1, 2, 2]);
        for side in 0..2 {
            assert_ne!(nodes.carrier(0, 1, side), nodes.carrier(0, 2, side));
            assert_ne!(nodes.carrier(1, 0, side), nodes.carrier(1, 2, side));
        }
        assert_ne!(nodes.carrier(0, 1, 0), nodes.carrier(0, 1, 1));
    }
}
