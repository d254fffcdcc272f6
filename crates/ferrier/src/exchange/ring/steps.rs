//! The order of a ring.

/// The step in which a rank sends to another: the distance of their nodes, of which there are `count`; its own node
/// comes last.
pub(super) fn step(nodes: &[usize], count: usize, from: usize, to: usize) -> usize {
    match (nodes[to] + count - nodes[from]) % count {
        0 => count,
        distance => distance,
    }
}

/// The ranks that a rank sends to, in order: by steps, and inside a node beginning with another rank than its
/// neighbours do.
pub(super) fn order(nodes: &[usize], rank: usize) -> Vec<usize> {
    let (size, count) = (nodes.len(), nodes.iter().max().map_or(1, |last| last + 1));
    let mut peers: Vec<usize> = (0..size).filter(|&peer| peer != rank).collect();
    peers.sort_by_key(|&peer| (step(nodes, count, rank, peer), (peer + size - rank) % size));
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_each_step_a_node_receives_from_one_node() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 2, 0, 1, 2, 2], vec![0, 0, 0]] {
            let count = nodes.iter().max().unwrap() + 1;
            for now in 1..=count {
                for target in 0..count {
                    let mut senders: Vec<usize> = (0..nodes.len())
                        .filter(|&rank| {
                            order(&nodes, rank)
                                .iter()
                                .any(|&peer| nodes[peer] == target && step(&nodes, count, rank, peer) == now)
                        })
                        .map(|rank| nodes[rank])
                        .collect();
                    senders.dedup();
                    senders.sort_unstable();
                    senders.dedup();
                    assert!(senders.len() <= 1, "step {now}, node {target}: {senders:?}");
                }
            }
        }
    }

    #[test]
    fn each_rank_sends_to_every_other_once_and_to_its_own_node_last() {
        let nodes = [0, 0, 1, 1, 2];
        let peers = order(&nodes, 1);
        assert_eq!(peers[..4].len(), peers.len());
        assert_eq!(peers, [2, 3, 4, 0]);
    }
}
