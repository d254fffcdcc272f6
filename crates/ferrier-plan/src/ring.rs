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

/// The step in which a rank of node `from` sends to one of node `to`: the distance of their places, of the receiver among
/// the nodes that the rank sends to (`targets`) and of the sender among those that the ranks of node `to` receive from
/// (`sources`). Both lists are ascending, and a node in which data stays is in its own.
///
/// Where each of a group of senders sends to each of a group of receivers, every step has at most one message to and
/// from each node, also if the groups have different nodes. Distances of nodes' numbers would not do: nodes of different
/// groups would send to the same node. Targets are those of a rank, not of its node: ranks go on each by itself, and where
/// those of a node have different targets, all nodes would begin with the first of them. Of more senders than
/// receivers, those that are too many are spread over the receivers: with steps in which they have nothing to send they
/// would follow each other.
///
/// Nodes that are in both lists have the same place in both, and distance 0 is the last step: what a node keeps takes no
/// time on the network, and in an earlier step it would get ahead of those that keep nothing and send to a node that
/// still receives from another.
pub fn step(targets: &[usize], sources: &[usize], from: usize, to: usize) -> usize {
    let (steps, senders) = (targets.len().max(1), sources.len());
    let (turns, rest) = (senders / steps, senders % steps);
    let sender = match place(sources, targets, from) {
        sender if sender < turns * steps => sender % steps,
        sender => (sender - turns * steps) * steps / rest.max(1),
    };
    (place(targets, sources, to) + 2 * steps - sender - 1) % steps
}

/// The place of a node in a list of which those that `others` has as well come first. Both are ascending.
fn place(nodes: &[usize], others: &[usize], node: usize) -> usize {
    let mut common = 0;
    let mut before = 0;
    let mut found = false;
    let mut rest = others.iter().peekable();
    for other in nodes {
        while rest.next_if(|next| *next < other).is_some() {}
        if rest.peek() == Some(&other) {
            found |= *other == node;
            common += 1;
            before += usize::from(*other < node);
        }
    }
    if found { before } else { common + nodes.partition_point(|other| *other < node) - before }
}

/// The nodes that some ranks of a node send to (`sending`) or receive from in a table, ascending; the node itself where
/// data stays in it. `nodes`: the node of each rank.
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

    /// In each step no node sends to two nodes, and no more send to one node than have to.
    fn assert_apart(senders: &[usize], receivers: &[usize]) {
        let mut seen = Vec::new();
        for &from in senders {
            let mut steps: Vec<usize> = Vec::new();
            for &to in receivers {
                steps.push(step(receivers, senders, from, to));
                seen.push((steps[steps.len() - 1], to));
            }
            steps.sort_unstable();
            assert!(steps.into_iter().eq(0..receivers.len()), "{senders:?} to {receivers:?}: {from}");
        }
        seen.sort_unstable();
        let most = seen.chunk_by(|one, other| one == other).map(<[_]>::len).max();
        assert_eq!(most, Some(senders.len().div_ceil(receivers.len())), "{senders:?} to {receivers:?}");
    }

    #[test]
    fn steps_of_a_group_are_apart() {
        assert_apart(&[0, 1, 2, 3], &[0, 1, 2, 3]);
        assert_apart(&[0, 4, 8], &[1, 2, 3]);
        assert_apart(&[0, 1], &[0, 7, 9]);
        assert_apart(&[3, 5, 6, 7, 9], &[2, 5]);
        assert_apart(&[0, 1, 2, 3, 4, 5, 6], &[1, 3, 4, 5]);
    }

    /// A node that sends to itself does so last, whoever else is in its group: until then all nodes keep step.
    #[test]
    fn what_stays_is_the_last_step() {
        for (senders, receivers) in [
            (vec![0, 1, 2, 3], vec![0, 1, 2, 3]),
            (vec![0, 4, 8, 12], vec![2, 4, 5, 12]),
            (vec![1, 3], vec![0, 1, 2]),
        ] {
            for &from in &senders {
                for &to in &receivers {
                    let last = step(&receivers, &senders, from, to) + 1 == receivers.len();
                    assert!(last || from != to, "{senders:?} to {receivers:?}: {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn few_packets_are_in_flight_and_of_two_steps() {
        assert_eq!(arrived_before(&[0, 0, 0, 0, 0, 2, 5], 3), [0, 0, 0, 1, 2, 3, 5]);
        assert_eq!(arrived_before(&[1, 2, 3, 4], 4), [0, 0, 1, 2]);
        assert_eq!(arrived_before(&[7, 7, 7], 1), [0, 1, 2]);
        assert!(arrived_before(&[], 4).is_empty());
    }

    #[test]
    fn nodes_are_those_of_some_ranks() {
        // Ranks 0 and 1 on node 0, 2 and 3 on node 1, 4 on node 2.
        let (nodes, ring) = ([0, 0, 1, 1, 2], |from: usize, to: usize| usize::from(to == (from + 2) % 5));
        let table = SegmentTable::of(5, ring).keeping(|rank| rank > 2);
        assert_eq!(peer_nodes(&table, &nodes, &[0, 1], true), [1]);
        assert_eq!(peer_nodes(&table, &nodes, &[2, 3], true), [0, 1, 2]);
        assert_eq!(peer_nodes(&table, &nodes, &[2], true), [2]);
        assert_eq!(peer_nodes(&table, &nodes, &[4], false), [1, 2]);
    }
}
