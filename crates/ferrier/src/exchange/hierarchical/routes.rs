//! Which rank of a node carries the messages to and from another node.

use ferrier_plan::messages::{BufferLayout, NodeSharing};

use crate::transport::Segment;

/// The buffers and messages of one rank.
pub(super) struct RankRoutes {
    pub send: BufferLayout,
    pub recv: BufferLayout,
    pub sharing: NodeSharing,
    pub sent: Vec<Segment>,
    pub received: Vec<Segment>,
    pub outgoing: Vec<Message>,
    pub incoming: Vec<Message>,
}

/// Which rank sends and receives which segments for its node, and where they lie in its buffers.
pub(super) struct Routes {
    nodes: Vec<usize>,
    /// Ranks of each node.
    ranks: Vec<Vec<usize>>,
    /// Where the segment from one rank to another begins, in the sending
    /// carrier's send buffer and in the receiving carrier's receive buffer.
    offsets: Vec<Vec<[usize; 2]>>,
    /// Lengths of send and receive buffers.
    lens: Vec<[usize; 2]>,
    /// One for each pair of nodes.
    messages: Vec<Message>,
}

/// A message from one node to another.
#[derive(Clone)]
pub(super) struct Message {
    /// The carriers.
    pub from: usize,
    pub to: usize,
    /// Offsets in their buffers.
    pub send_at: usize,
    pub recv_at: usize,
    pub len: usize,
    /// Offset in the message and greatest length of its segments.
    pub segments: Vec<(usize, usize)>,
}

impl Routes {
    pub fn new(nodes: &[usize], pairs: &[Vec<usize>]) -> Routes {
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let of = |node: usize| (0..nodes.len()).filter(|&rank| nodes[rank] == node).collect();
        let ranks: Vec<Vec<usize>> = (0..count).map(of).collect();
        let size = nodes.len();
        let mut routes = Routes {
            nodes: nodes.to_vec(),
            ranks,
            offsets: vec![vec![[0; 2]; size]; size],
            lens: vec![[0; 2]; size],
            messages: Vec::new(),
        };
        // In order of distance, as in a ring: carriers start with different nodes.
        for (from, to) in (1..count).flat_map(|far| (0..count).map(move |node| (node, (node + far) % count)))
        {
            routes.add(from, to, pairs);
        }
        routes
    }

    /// The rank of `node` that sends to node `other` (side 0), or receives from it
    /// (side 1): a different one for each node and direction, as far as there are
    /// ranks.
    fn carrier(&self, node: usize, other: usize, side: usize) -> usize {
        let count = self.ranks.len();
        let distance = (other + count - node) % count;
        self.ranks[node][(distance - 1 + side) % self.ranks[node].len()]
    }

    fn add(&mut self, from: usize, to: usize, pairs: &[Vec<usize>]) {
        let (sender, receiver) = (self.carrier(from, to, 0), self.carrier(to, from, 1));
        let (send_at, recv_at) = (self.lens[sender][0], self.lens[receiver][1]);
        let mut len = 0;
        let mut segments = Vec::new();
        for &source in &self.ranks[from] {
            for &target in &self.ranks[to] {
                self.offsets[source][target] = [send_at + len, recv_at + len];
                if pairs[source][target] > 0 {
                    segments.push((len, pairs[source][target]));
                }
                // Ranks of the node store side by side: on separate cache lines.
                len += pairs[source][target].next_multiple_of(64);
            }
        }
        if len > 0 {
            self.messages.push(Message { from: sender, to: receiver, send_at, recv_at, len, segments });
            self.lens[sender][0] += len;
            self.lens[receiver][1] += len;
        }
    }

    /// Those of one rank.
    pub fn of_rank(self, rank: usize) -> RankRoutes {
        let size = self.nodes.len();
        let node = self.nodes[rank];
        let carriers = |side: usize| -> Vec<usize> {
            let of = |peer: usize| match self.nodes[peer] {
                own if own == node => rank,
                other => self.carrier(node, other, side),
            };
            (0..size).map(of).collect()
        };
        let layout = |at: Vec<usize>, which: usize| BufferLayout { offsets: at, len: self.lens[rank][which] };
        let of = |out: bool| self.messages.iter().filter(move |m| (if out { m.from } else { m.to }) == rank);
        RankRoutes {
            send: layout((0..size).map(|peer| self.offsets[rank][peer][0]).collect(), 0),
            recv: layout((0..size).map(|peer| self.offsets[peer][rank][1]).collect(), 1),
            sent: of(true).map(|m| Segment { peer: m.to, offset: m.send_at, len: m.len }).collect(),
            received: of(false).map(|m| Segment { peer: m.from, offset: m.recv_at, len: m.len }).collect(),
            outgoing: of(true).cloned().collect(),
            incoming: of(false).cloned().collect(),
            sharing: NodeSharing {
                nodes: self.nodes.clone(),
                outbox: carriers(0),
                inbox: carriers(1),
                lens: self.lens.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments do not overlap on either side, and a message has the same segments in both buffers.
    #[test]
    fn segments_do_not_overlap_and_messages_carry_them() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 0, 1, 2], vec![0, 1, 2, 3], vec![0, 0, 0, 1, 1, 2, 2, 2]] {
            let size = nodes.len();
            let bytes = |from: usize, to: usize| if from == to { 0 } else { (from * 7 + to * 3) % 5 * 40 };
            let pairs: Vec<Vec<usize>> =
                (0..size).map(|from| (0..size).map(|to| bytes(from, to)).collect()).collect();
            let routes = Routes::new(&nodes, &pairs);
            for side in 0..2 {
                let mut taken: Vec<(usize, usize, usize)> = Vec::new();
                for (from, to) in (0..size).flat_map(|a| (0..size).map(move |b| (a, b))) {
                    if nodes[from] != nodes[to] && pairs[from][to] > 0 {
                        let (own, other) = if side == 0 { (from, to) } else { (to, from) };
                        let carrier = routes.carrier(nodes[own], nodes[other], side);
                        let at = routes.offsets[from][to][side];
                        assert!(at + pairs[from][to] <= routes.lens[carrier][side]);
                        taken.push((carrier, at, at + pairs[from][to]));
                    }
                }
                taken.sort_unstable();
                assert!(taken.windows(2).all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1), "{nodes:?}");
            }
            for m in &routes.messages {
                let inside = |from: usize, to: usize| {
                    let [send, recv] = routes.offsets[from][to];
                    let here = (m.send_at..m.send_at + m.len).contains(&send);
                    !here || send - m.send_at == recv - m.recv_at
                };
                let own = |rank: usize, other: usize| nodes[rank] == nodes[other];
                let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
                assert!(pairs.filter(|&(a, b)| own(a, m.from) && own(b, m.to)).all(|(a, b)| inside(a, b)));
            }
            let mut between: Vec<_> = routes.messages.iter().map(|m| (nodes[m.from], nodes[m.to])).collect();
            let all = between.len();
            between.sort_unstable();
            between.dedup();
            assert_eq!(between.len(), all, "one message for a pair of nodes");
        }
    }

    #[test]
    fn pairs_of_nodes_have_different_carriers() {
        let nodes = [0, 0, 1, 1, 2, 2];
        let routes = Routes::new(&nodes, &vec![vec![8; 6]; 6]);
        for side in 0..2 {
            assert_ne!(routes.carrier(0, 1, side), routes.carrier(0, 2, side));
            assert_ne!(routes.carrier(1, 0, side), routes.carrier(1, 2, side));
        }
        assert_ne!(routes.carrier(0, 1, 0), routes.carrier(0, 1, 1));
    }
}
