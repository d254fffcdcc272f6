//! A tile of a reshape in progress.

use super::exchanges::TileTraffic;
use crate::exchange::ExchangeName;
use crate::job::Job;

/// Who takes part in an exchange: the nodes, each with all its ranks, or the ranks of a ring.
#[derive(Clone, Copy)]
pub(super) struct Parties<'a> {
    job: &'a Job<'a>,
    pub ring: bool,
}

impl<'a> Parties<'a> {
    pub fn new(job: &'a Job<'a>) -> Parties<'a> {
        Parties { job, ring: job.exchange == ExchangeName::Ring }
    }

    pub fn count(&self) -> usize {
        if self.ring { self.job.ranks() } else { self.job.node_count() }
    }

    /// The party of a rank.
    pub fn of(&self, rank: usize) -> usize {
        if self.ring { rank } else { self.job.nodes()[rank] }
    }

    /// The node of a party.
    pub fn node(&self, party: usize) -> usize {
        if self.ring { self.job.nodes()[party] } else { party }
    }

    /// Ranks of a party.
    pub fn ranks(&self, party: usize) -> usize {
        let job = self.job;
        if self.ring { 1 } else { (job.ranks() - party * job.per_node).min(job.per_node) }
    }
}

/// A tile of a reshape in progress.
pub(super) struct TileState {
    pub traffic: TileTraffic,
    /// Ranks of each party that have started it, and the last start.
    pub started: Vec<(u32, f64)>,
    /// Flows in and out of each party that are not complete, and when the last one was.
    pub open: Vec<(u32, f64)>,
    /// Flows of each party that are to be started, the last one first.
    queues: Vec<Vec<usize>>,
    /// Parties that copy inside themselves before they send.
    copies: Vec<bool>,
    ring: Option<RingState>,
    /// Ranks that wait for it, by party.
    pub waiting: Vec<Vec<u32>>,
    /// Ranks that have waited for it.
    pub waited: usize,
}

/// The state of a ring.
struct RingState {
    /// The first flow of each rank.
    first: Vec<usize>,
    /// Flows of each rank that have arrived, with all before them.
    retired: Vec<usize>,
    arrived: Vec<bool>,
    /// Ranks that are ready, as others of their node know, and as those of other nodes do.
    ready: [Vec<bool>; 2],
    /// Ranks whose next flow is to one that is not ready, by that one.
    blocked: Vec<Vec<usize>>,
    nodes: Vec<usize>,
}

impl TileState {
    pub fn new(traffic: TileTraffic, parties: Parties<'_>) -> TileState {
        let count = parties.count();
        // A party's own start counts as a flow, so that no party is complete before it has started.
        let mut open = vec![(1, 0.0); count];
        let mut queues = vec![Vec::new(); count];
        for (number, flow) in traffic.flows.iter().enumerate() {
            open[flow.to].0 += 1;
            if flow.from != flow.to {
                open[flow.from].0 += 1;
            }
            queues[flow.from].push(number);
        }
        // The last of a queue starts first: of nodes, copies.
        let distance = |number: &usize| {
            let flow = &traffic.flows[*number];
            (flow.to + count - flow.from) % count
        };
        for queue in &mut queues {
            match parties.ring {
                true => queue.reverse(),
                false => queue.sort_by_key(|number| std::cmp::Reverse(distance(number))),
            }
        }
        let ring = parties.ring.then(|| RingState {
            first: queues.iter().map(|queue: &Vec<usize>| queue.last().map_or(0, |first| *first)).collect(),
            retired: vec![0; count],
            arrived: vec![false; traffic.flows.len()],
            ready: [false, true].map(|_| vec![false; count]),
            blocked: vec![Vec::new(); count],
            nodes: (0..count).map(|rank| parties.node(rank)).collect(),
        });
        TileState {
            traffic,
            started: vec![(0, 0.0); count],
            open,
            queues,
            copies: vec![false; count],
            ring,
            waiting: vec![Vec::new(); count],
            waited: 0,
        }
    }

    /// A rank of a ring has said that it is ready, to those of other nodes or of its own: the ranks that have waited.
    pub fn set_ready(&mut self, rank: usize, outside: bool) -> Vec<usize> {
        let Some(ring) = &mut self.ring else { return Vec::new() };
        ring.ready[usize::from(outside)][rank] = true;
        std::mem::take(&mut ring.blocked[rank])
    }

    /// Takes the next flow of a party, if it may start now: a packet of a ring after others, to a rank that is ready;
    /// otherwise all flows at once, or after the copies inside the node.
    pub fn next(&mut self, party: usize, copies_first: bool) -> Option<usize> {
        let number = *self.queues[party].last()?;
        let flow = &self.traffic.flows[number];
        let may_start = match &mut self.ring {
            Some(ring) if !ring.knows_ready(party, flow.to) => {
                ring.blocked[flow.to].push(party);
                false
            }
            Some(ring) => flow.after <= ring.retired[party],
            None => !self.copies[party],
        };
        if !may_start {
            return None;
        }
        self.copies[party] = copies_first && flow.from == flow.to;
        self.queues[party].pop()
    }

    /// A flow is complete, and known to be.
    pub fn done(&mut self, number: usize) {
        let party = self.traffic.flows[number].from;
        self.copies[party] = false;
        let Some(ring) = &mut self.ring else { return };
        ring.arrived[number] = true;
        let (first, retired) = (ring.first[party], &mut ring.retired[party]);
        let own = |number: usize| self.traffic.flows.get(number).is_some_and(|flow| flow.from == party);
        while own(first + *retired) && ring.arrived[first + *retired] {
            *retired += 1;
        }
    }
}

impl RingState {
    /// Whether a rank knows that another is ready.
    fn knows_ready(&self, rank: usize, other: usize) -> bool {
        self.ready[usize::from(self.nodes[rank] != self.nodes[other])][other]
    }
}
