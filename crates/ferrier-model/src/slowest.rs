//! Exchanges in closed form: what the node that has most to send or to receive takes.
//!
//! Ranks whose arrays are equal need not send as much as each other: in a reshape from bricks some keep a part and others
//! keep nothing. So each exchange takes as long as its slowest node, and the links of a node are shared by its ranks.

use ferrier_plan::Box3;
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

/// Seconds of the tiles of a node, of which at most `window` are in flight.
fn span(tiles: impl Iterator<Item = ExchangeCost>, window: usize) -> f64 {
    let (mut now, mut free, mut arrivals) = (0.0_f64, [0.0_f64; 2], Vec::new());
    for (tile, cost) in tiles.enumerate() {
        if let Some(before) = tile.checked_sub(window.max(1)) {
            now = now.max(arrivals[before]);
        }
        now += cost.start;
        let mut arrival = now;
        for (free, transfer) in free.iter_mut().zip(cost.transfer).filter(|(_, transfer)| *transfer > 0.0) {
            *free = free.max(now) + transfer;
            arrival = arrival.max(*free);
        }
        arrivals.push(arrival);
    }
    arrivals.into_iter().fold(0.0, f64::max)
}

/// The slowest of the nodes' starts, transfers and codings.
fn slowest_of_each(nodes: &[ExchangeCost]) -> ExchangeCost {
    let most = |of: fn(&ExchangeCost) -> f64| nodes.iter().map(of).fold(0.0, f64::max);
    ExchangeCost {
        start: most(|cost| cost.start),
        transfer: [most(|cost| cost.transfer[0].max(cost.transfer[1])); 2],
        coded_bytes: most(|cost| cost.coded_bytes),
    }
}

impl SlowestNode<'_> {
    /// The cost of each tile of each reshape.
    pub fn costs(&self) -> Vec<Vec<ExchangeCost>> {
        (0..self.shapes.schedule.reshapes.len()).map(|reshape| self.tile_costs(reshape)).collect()
    }

    /// The cost of each tile of a reshape. Where all ranks take part in all tiles these are alike; otherwise they are those
    /// of the node that takes longest for all its tiles.
    fn tile_costs(&self, reshape: usize) -> Vec<ExchangeCost> {
        let cuts = &self.shapes.cuts[reshape];
        let nodes = self.nodes();
        if cuts.along == 1 || cuts.is_even(&self.shapes.schedule.reshapes[reshape]) {
            let costs = self.node_costs(&nodes, reshape, None);
            return vec![slowest_of_each(&costs); cuts.count()];
        }
        let tiles: Vec<Vec<ExchangeCost>> =
            (0..cuts.count()).map(|tile| self.node_costs(&nodes, reshape, Some(tile))).collect();
        let of = |node: usize| tiles.iter().map(move |costs| costs[node]);
        let seconds = |node: usize| span(of(node), cuts.window);
        let slowest = (0..nodes.len()).max_by(|one, other| seconds(*one).total_cmp(&seconds(*other)));
        slowest.map_or_else(Vec::new, |node| of(node).collect())
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

    /// What each of some nodes does in a tile of a reshape, or in an average one.
    fn node_costs(&self, looked_at: &[usize], reshape: usize, tile: Option<usize>) -> Vec<ExchangeCost> {
        let exchanges = Exchanges { job: self.job, shapes: self.shapes };
        let ranks = |node: usize| {
            let first = node * self.job.per_node;
            first..self.job.ranks().min(first + self.job.per_node)
        };
        let ways = |rank: usize| [true, false].map(|sending| self.messages(rank, reshape, tile, sending));
        let mut nodes: Vec<(usize, Vec<[Messages; 2]>)> =
            looked_at.iter().map(|&node| (node, ranks(node).map(ways).collect())).collect();
        if self.job.exchange == ExchangeName::AllToAll {
            let all = || nodes.iter().flat_map(|(_, ranks)| ranks.iter().flatten().flatten());
            let most = all().map(|message| message.1).fold(0.0, f64::max);
            let pad = |message: &mut (usize, f64)| message.1 = most;
            nodes.iter_mut().for_each(|(_, ranks)| ranks.iter_mut().flatten().flatten().for_each(pad));
        }
        nodes.iter().map(|(node, ranks)| self.node_time(*node, ranks, &exchanges)).collect()
    }

    /// What a rank sends, or receives, in a tile of a reshape, or on average over the tiles.
    fn messages(&self, rank: usize, reshape: usize, tile: Option<usize>, sending: bool) -> Messages {
        let cuts = &self.shapes.cuts[reshape];
        let part = match tile {
            Some(tile) => cuts.arrays(tile).len() as f64 / self.shapes.recipe.batch.max(1) as f64,
            None => 1.0 / cuts.count() as f64,
        };
        let element = self.shapes.element_bytes(reshape) as f64 * part;
        let reshape = &self.shapes.schedule.reshapes[reshape];
        let [own, theirs] = if sending { [&reshape.from, &reshape.to] } else { [&reshape.to, &reshape.from] };
        let mine = &own.boxes()[rank];
        let bytes = |(peer, both): (usize, Box3)| {
            let other = &theirs.boxes()[peer];
            let both = match tile {
                Some(tile) if sending => cuts.between(mine, other, tile),
                Some(tile) => cuts.between(other, mine, tile),
                None => both,
            };
            (peer != rank && !both.is_empty()).then(|| (peer, both.volume() as f64 * element))
        };
        theirs.intersections(mine).into_iter().filter_map(bytes).collect()
    }

    fn node_time(&self, node: usize, ranks: &[[Messages; 2]], exchanges: &Exchanges<'_>) -> ExchangeCost {
        let (job, machine, nodes) = (self.job, &self.job.machine, self.job.nodes());
        let constants = &machine.constants;
        let aware = job.exchange.mechanism(job.node_count()) == Mechanism::NodeAware;
        let first = node * job.per_node;
        let mut time = ExchangeCost::default();
        // Bytes of each way, and whether there are messages inside the node and to others.
        let (mut copied, mut wired, mut any) = ([0.0_f64; 2], [0.0_f64; 2], [[false; 2]; 2]);
        for way in 0..2 {
            // Messages to each other node.
            let mut sent: Vec<(usize, f64)> = Vec::new();
            for (number, lists) in ranks.iter().enumerate() {
                let (mut gaps, mut raw, mut outside) = (0.0, 0.0, 0.0_f64);
                for &(peer, bytes) in &lists[way] {
                    let (inside, shared) = (nodes[peer] == node, exchanges.is_shared(first + number, peer));
                    any[way][usize::from(!inside)] |= !(inside && aware);
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
        // A slow link does not matter to ranks that do not fill it.
        let speed = (constants.wire_node_bytes_s / slow).min(constants.wire_bytes_s * count);
        time.transfer = std::array::from_fn(|way| {
            let copy = copied[way] / (shape.copy_bytes_s(machine) * count);
            let wire = wired[way] / speed;
            let latency = match any[way] {
                [false, false] => 0.0,
                _ if job.exchange == ExchangeName::Ring => self.ring_latency(first, ranks, exchanges),
                [_, true] => constants.wire_latency_s,
                [true, false] => constants.node_latency_s * (count / machine.cores as f64).max(1.0),
            };
            latency + copy.max(wire) + (1.0 - constants.copy_overlap) * copy.min(wire)
        });
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
