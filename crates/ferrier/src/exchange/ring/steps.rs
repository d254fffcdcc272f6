//! The order of a ring.

use ferrier_plan::messages::Volumes;
use ferrier_plan::ring::{peer_nodes, step};

/// The steps of one exchange, as every rank derives them.
pub(super) struct Steps<'a> {
    volumes: &'a Volumes,
    nodes: &'a [usize],
    rank: usize,
}

impl Steps<'_> {
    pub fn new<'a>(volumes: &'a Volumes, nodes: &'a [usize], rank: usize) -> Steps<'a> {
        Steps { volumes, nodes, rank }
    }

    /// The most steps of any rank; the last is that of a rank's own node.
    pub fn count(&self) -> usize {
        self.nodes.iter().max().map_or(1, |last| last + 2)
    }

    /// The ranks that this rank sends to (`sending`) or receives from, in order, with their steps: inside a node
    /// beginning with another rank than its neighbours do.
    pub fn peers(&self, sending: bool) -> Vec<(usize, usize)> {
        let (nodes, rank, size) = (self.nodes, self.rank, self.nodes.len());
        let lens = if sending { &self.volumes.to } else { &self.volumes.from };
        let own = if sending { self.targets(rank) } else { self.sources(nodes[rank]) };
        // The lists of other nodes, computed once for each.
        let mut known: Vec<Option<Vec<usize>>> = vec![None; self.count()];
        let mut step_of = |peer: usize| {
            let node = nodes[peer];
            if node == nodes[rank] {
                return self.count() - 1;
            }
            match sending {
                true => {
                    let theirs = known[node].get_or_insert_with(|| self.sources(node));
                    step(&own, theirs, nodes[rank], node)
                }
                false => step(&self.targets(peer), &own, node, nodes[rank]),
            }
        };
        let others = (0..size).filter(|&peer| peer != rank && lens[peer] > 0);
        let mut peers: Vec<(usize, usize)> = others.map(|peer| (peer, step_of(peer))).collect();
        peers.sort_by_key(|&(peer, step)| (step, (peer + size - rank) % size));
        peers
    }

    /// The nodes that a rank sends to.
    fn targets(&self, rank: usize) -> Vec<usize> {
        peer_nodes(&self.volumes.table, self.nodes, &[rank], true)
    }

    /// The nodes that the ranks of a node receive from.
    fn sources(&self, node: usize) -> Vec<usize> {
        let members: Vec<usize> = (0..self.nodes.len()).filter(|&rank| self.nodes[rank] == node).collect();
        peer_nodes(&self.volumes.table, self.nodes, &members, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier_plan::messages::SegmentTable;

    /// Both ends of a message know its step, and in each step a node receives from one other node.
    #[test]
    fn in_each_step_a_node_receives_from_one_node() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 2, 0, 1, 2, 2], vec![0, 0, 0], (0..6).collect()] {
            let ranks = nodes.len();
            // All to all, and from each half of the ranks to the other parity.
            let halves = move |from: usize, to: usize| from != to && from % 2 == usize::from(2 * to >= ranks);
            let tables = [
                SegmentTable::of(ranks, |from, to| usize::from(from != to)),
                SegmentTable::of(ranks, move |from, to| usize::from(halves(from, to)))
                    .keeping(move |rank| rank % 2 == usize::from(2 * rank >= ranks)),
            ];
            for (table, unbroken) in tables.into_iter().zip([true, ranks == 6]) {
                let volumes: Vec<_> = (0..ranks).map(|rank| Volumes::new(table.clone(), rank)).collect();
                let mut senders = Vec::new();
                for from in 0..ranks {
                    let steps = Steps::new(&volumes[from], &nodes, from);
                    let peers = steps.peers(true);
                    assert!(peers.iter().is_sorted_by_key(|(_, step)| *step));
                    assert_eq!(peers.len(), table.row(from).len());
                    for (to, step) in peers {
                        let back = Steps::new(&volumes[to], &nodes, to).peers(false);
                        assert!(back.contains(&(from, step)), "{from} to {to}");
                        assert_eq!(step == steps.count() - 1, nodes[from] == nodes[to]);
                        senders.push((nodes[to], step, nodes[from]));
                    }
                }
                senders.sort_unstable();
                senders.dedup();
                let twice = senders.windows(2).find(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1));
                assert!(!unbroken || twice.is_none(), "{nodes:?}: {twice:?}");
            }
        }
    }

    #[test]
    fn each_rank_sends_to_every_other_once_and_to_its_own_node_last() {
        let table = SegmentTable::of(5, |from, to| usize::from(from != to));
        let peers = Steps::new(&Volumes::new(table, 1), &[0, 0, 1, 1, 2], 1).peers(true);
        assert_eq!(peers.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [2, 3, 4, 0]);
    }
}
