//! The order in which exchange `ring` sends: to one node after the other, so that no two nodes send to the same node
//! at once. Segments go in packets, a few of which are in flight at once.

use crate::messages::SegmentTable;

/// Packets of a rank that are in flight at once, unless a choice says otherwise.
pub const IN_FLIGHT: usize = 4;

/// Bytes of a packet, unless a choice says otherwise. The network waits while the first one is encoded, so those that
/// are encoded are shorter.
pub const fn packet_bytes(encodes: bool) -> usize {
    if encodes { 64 << 10 } else { 1 << 20 }
}

/// How many of the packets before each one have arrived when it is put, if `steps` are those of a rank's packets in the
/// order of sending: less than `in_flight` others are in flight then, of its own step and of the one before.
pub fn arrived_before(steps: &[usize], in_flight: usize) -> Vec<usize> {
    let mut arrived = 0;
    let mut before = Vec::with_capacity(steps.len());
    // The first packet of the step of the one at hand, and of the step before.
    let (mut this, mut last) = (0, 0);
    for (packet, step) in steps.iter().enumerate() {
        if *step != steps[this] {
            (last, this) = (this, packet);
        }
        arrived = last.max(arrived).max((packet + 1).saturating_sub(in_flight.max(1)));
        before.push(arrived);
    }
    before
}

/// The step in which node `from` sends to node `to`: the distance of their places, of the receiver among the nodes that
/// `from` sends to (`targets`) and of the sender among those that `to` receives from (`sources`). Both lists are
/// ascending, and a node that keeps data is in its own.
///
/// Where each of a group of senders sends to each of a group of receivers, every step has at most one message to and
/// from each node, also if the groups have different nodes or lengths. Distances of nodes' numbers would not do: nodes
/// of different groups would send to the same node.
pub fn step(targets: &[usize], sources: &[usize], from: usize, to: usize) -> usize {
    let place = |nodes: &[usize], node: usize| nodes.partition_point(|other| *other < node);
    let steps = targets.len().max(sources.len()).max(1);
    (place(targets, to) + steps - place(sources, from) % steps) % steps
}

/// The nodes that the ranks of a node send to (`sending`) or receive from in a table, ascending; the node itself where
/// data stays in it. `members`: the ranks of the node, `nodes`: the node of each rank.
pub fn peer_nodes(table: &SegmentTable, nodes: &[usize], members: &[usize], sending: bool) -> Vec<usize> {
    let peers = |&rank: &usize| {
        let list = if sending { table.row(rank) } else { table.column(rank) };
        list.into_iter().map(|(peer, _)| nodes[peer]).chain(table.keeps(rank).then_some(nodes[rank]))
    };
    let mut found: Vec<usize> = members.iter().flat_map(peers).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No node sends to two nodes, or receives from two, in one step.
    fn assert_apart(senders: &[usize], receivers: &[usize]) {
        let mut seen = Vec::new();
        for &from in senders {
            for &to in receivers {
                let step = step(receivers, senders, from, to);
                assert!(step < senders.len().max(receivers.len()));
                seen.extend([(step, from, true), (step, to, false)]);
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count, "{senders:?} to {receivers:?}");
    }

    #[test]
    fn steps_of_a_group_are_apart() {
        assert_apart(&[0, 1, 2, 3], &[0, 1, 2, 3]);
        assert_apart(&[0, 4, 8], &[1, 2, 3]);
        assert_apart(&[0, 1], &[0, 7, 9]);
        assert_apart(&[3, 5, 6, 7, 9], &[2, 5]);
    }

    #[test]
    fn few_packets_are_in_flight_and_of_two_steps() {
        assert_eq!(arrived_before(&[0, 0, 0, 0, 0, 2, 5], 3), [0, 0, 0, 1, 2, 3, 5]);
        assert_eq!(arrived_before(&[1, 2, 3, 4], 4), [0, 0, 1, 2]);
        assert_eq!(arrived_before(&[7, 7, 7], 1), [0, 1, 2]);
        assert!(arrived_before(&[], 4).is_empty());
    }

    #[test]
    fn nodes_are_those_of_all_ranks() {
        // Ranks 0 and 1 on node 0, 2 and 3 on node 1, 4 on node 2.
        let (nodes, ring) = ([0, 0, 1, 1, 2], |from: usize, to: usize| usize::from(to == (from + 2) % 5));
        let table = SegmentTable::of(5, ring).keeping(|rank| rank > 2);
        assert_eq!(peer_nodes(&table, &nodes, &[0, 1], true), [1]);
        assert_eq!(peer_nodes(&table, &nodes, &[2, 3], true), [0, 1, 2]);
        assert_eq!(peer_nodes(&table, &nodes, &[4], false), [1, 2]);
    }
}
