//! Exchanges in closed form: what the node that has most to send or to receive takes.
//!
//! Ranks whose arrays are equal need not send as much as each other: in a reshape from bricks some keep a part and others
//! keep nothing. So each exchange takes as long as its slowest node, and the links of a node are shared by its ranks.

use ferrier_plan::cost::{CallShapes, ExchangeCost, ExchangeShape};
use ferrier_plan::messages::Mechanism;
use ferrier_plan::ring::{IN_FLIGHT, arrived_before, packet_bytes};

use crate::exchange::ExchangeName;
use crate::job::Job;
use crate::sim::{Exchanges, SimOptions};

/// Ranks that are looked at, about, in so many places of the machine: a prediction stays cheap on any number of ranks.
const LOOKED_AT: usize = 1024;

/// Finds the cost of exchanges.
pub(crate) struct SlowestNode<'a> {
    pub job: &'a Job<'a>,
    pub shapes: &'a CallShapes<'a>,
    pub options: &'a SimOptions,
}

/// The messages of a rank in one direction: peers and bytes before encoding.
type Messages = Vec<(usize, f64)>;

/// What a node does in an exchange.
#[derive(Clone, Copy, Default)]
struct NodeTime {
    start: f64,
    transfer: f64,
    coded_bytes: f64,
}

impl SlowestNode<'_> {
    /// The cost of a tile of each reshape.
    pub fn costs(&self) -> Vec<ExchangeCost> {
        (0..self.shapes.schedule.reshapes.len()).map(|reshape| self.cost(reshape)).collect()
    }

    /// Nodes that are looked at: all, or some that are spread over the machine, and those with slow links.
    fn nodes(&self) -> Vec<usize> {
        let (count, most) = (self.job.node_count(), (LOOKED_AT / self.job.per_node).max(1));
        // An odd distance meets all places of grids whose sides are powers of two.
        let stride = if count > most { count.div_ceil(most) | 1 } else { 1 };
        let mut nodes: Vec<usize> = (0..count).step_by(stride).collect();
        nodes.extend(self.options.slow_links.iter().map(|(node, _)| *node));
        nodes
    }

    fn cost(&self, reshape: usize) -> ExchangeCost {
        let exchanges = Exchanges { job: self.job, shapes: self.shapes };
        let ranks = |node: usize| {
            let first = node * self.job.per_node;
            first..self.job.ranks().min(first + self.job.per_node)
        };
        let ways = |rank: usize| [true, false].map(|sending| self.messages(rank, reshape, sending));
        let mut nodes: Vec<(usize, Vec<[Messages; 2]>)> =
            self.nodes().into_iter().map(|node| (node, ranks(node).map(ways).collect())).collect();
        if self.job.exchange == ExchangeName::AllToAll {
            let all = || nodes.iter().flat_map(|(_, ranks)| ranks.iter().flatten().flatten());
            let most = all().map(|message| message.1).fold(0.0, f64::max);
            let pad = |message: &mut (usize, f64)| message.1 = most;
            nodes.iter_mut().for_each(|(_, ranks)| ranks.iter_mut().flatten().flatten().for_each(pad));
        }
        let mut cost = ExchangeCost::default();
        for (node, ranks) in &nodes {
            let found = self.node_time(*node, ranks, &exchanges);
            cost.start = cost.start.max(found.start);
            cost.transfer = cost.transfer.max(found.transfer);
            cost.coded_bytes = cost.coded_bytes.max(found.coded_bytes);
        }
        cost
    }

    /// What a rank sends, or receives, in a tile of a reshape, on average over the tiles.
    fn messages(&self, rank: usize, reshape: usize, sending: bool) -> Messages {
        let element = self.shapes.element_bytes(reshape) as f64 / self.shapes.cuts[reshape].count() as f64;
        let reshape = &self.shapes.schedule.reshapes[reshape];
        let [own, theirs] = if sending { [&reshape.from, &reshape.to] } else { [&reshape.to, &reshape.from] };
        let met = theirs.intersections(&own.boxes()[rank]).into_iter().filter(|(peer, _)| *peer != rank);
        met.map(|(peer, both)| (peer, both.volume() as f64 * element)).collect()
    }

    fn node_time(&self, node: usize, ranks: &[[Messages; 2]], exchanges: &Exchanges<'_>) -> NodeTime {
        let (job, machine, nodes) = (self.job, &self.job.machine, self.job.nodes());
        let constants = &machine.constants;
        let aware = job.exchange.mechanism(job.node_count()) == Mechanism::NodeAware;
        let first = node * job.per_node;
        let mut time = NodeTime::default();
        let (mut copied, mut wired, mut any) = ([0.0_f64; 2], [0.0_f64; 2], [false; 2]);
        for way in 0..2 {
            // Messages to each other node.
            let mut sent: Vec<(usize, f64)> = Vec::new();
            for (number, lists) in ranks.iter().enumerate() {
                let (mut gaps, mut raw, mut outside) = (0.0, 0.0, 0.0_f64);
                for &(peer, bytes) in &lists[way] {
                    let (inside, shared) = (nodes[peer] == node, exchanges.is_shared(first + number, peer));
                    any[usize::from(!inside)] |= !(inside && aware);
                    raw += if shared { 0.0 } else { bytes };
                    match inside {
                        true if !shared => copied[way] += exchanges.encoded(bytes),
                        true => {}
                        false => sent.push((nodes[peer], exchanges.encoded(bytes))),
                    }
                    gaps += match inside {
                        true if aware => 0.0,
                        true => constants.node_gap_s,
                        false => constants.wire_gap_s,
                    };
                    outside += f64::from(u8::from(!inside));
                }
                if aware {
                    gaps = outside * constants.wire_gap_s / (job.per_node * job.per_node) as f64;
                }
                time.start = time.start.max(gaps);
                time.coded_bytes = time.coded_bytes.max(raw);
            }
            sent.sort_unstable_by_key(|message| message.0);
            wired[way] = sent
                .chunk_by(|one, other| one.0 == other.0)
                .map(|flow| {
                    let bytes: f64 = flow.iter().map(|message| message.1).sum();
                    let messages = if aware { 1.0 } else { flow.len() as f64 };
                    bytes / machine.efficiency(bytes / messages)
                })
                .sum();
        }
        let mut shape = ExchangeShape::default();
        shape.ranks_on_node = ranks.len();
        let count = ranks.len() as f64;
        let slow = self.options.link_slowness(node);
        let speed = constants.wire_node_bytes_s.min(constants.wire_bytes_s * count) / slow;
        let copy = copied[0].max(copied[1]) / (shape.copy_bytes_s(machine) * count);
        let wire = wired[0].max(wired[1]) / speed;
        let latency = match any {
            _ if job.exchange == ExchangeName::Ring => self.ring_latency(first, ranks, exchanges),
            [_, true] => constants.wire_latency_s,
            [true, false] => constants.node_latency_s * (count / machine.cores as f64).max(1.0),
            [false, false] => 0.0,
        };
        time.transfer = latency + copy.max(wire) + (1.0 - constants.copy_overlap) * copy.min(wire);
        time
    }

    /// Latencies that follow each other in a ring: of the word that a receiver is ready, and of packets that wait for the
    /// arrival of earlier ones.
    fn ring_latency(&self, first: usize, ranks: &[[Messages; 2]], exchanges: &Exchanges<'_>) -> f64 {
        let (nodes, constants) = (self.job.nodes(), &self.job.machine.constants);
        let of_rank = |(number, lists): (usize, &[Messages; 2])| {
            let (rank, count) = (first + number, self.job.node_count());
            // Copies inside the node come last; elsewhere the order does not change the number of steps.
            let distance = |peer: usize| (nodes[peer] + count - nodes[rank] + count - 1) % count;
            let sent = lists[0].iter().filter(|(peer, _)| !exchanges.is_shared(rank, *peer));
            let mut order: Vec<(usize, f64)> = sent.map(|&(peer, bytes)| (distance(peer), bytes)).collect();
            order.sort_unstable_by_key(|message| message.0);
            let mut steps = Vec::new();
            for (step, bytes) in order {
                let packets = exchanges.encoded(bytes) / packet_bytes(self.job.is_encoded()) as f64;
                let packets = packets.ceil().clamp(1.0, IN_FLIGHT as f64) as usize;
                steps.resize(steps.len() + packets, step);
            }
            let latency = |step: usize| {
                if step == count - 1 { constants.node_latency_s } else { constants.wire_latency_s }
            };
            let mut seconds = steps.first().map_or(0.0, |step| latency(*step));
            let after = arrived_before(&steps, IN_FLIGHT);
            let mut arrived = 0;
            while arrived < steps.len() {
                // Those that may be sent now arrive together.
                let next = after.partition_point(|before| *before <= arrived);
                seconds += latency(steps[arrived]);
                arrived = next;
            }
            seconds
        };
        ranks.iter().enumerate().map(of_rank).fold(0.0, f64::max)
    }
}
