//! The ranks of a simulation.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ferrier_plan::Box3;
use ferrier_plan::cost::{CERTIFICATE, CallCosts, CallShapes, pass_name, predict_call};
use ferrier_plan::order::{Action, PassPart};

use super::exchanges::Exchanges;
use super::network::NetworkState;
use super::options::SimOptions;
use super::result::{SimEvent, SimEventKind, SimStep, Simulated};
use super::tile::{Parties, TileState};
use crate::job::Job;

/// Part of the call within which completed flows count as completed together: rates are computed once for all.
const TOGETHER: f64 = 1e-4;

/// The same in a ring, where only rounding errors are taken together. A rank that is early meets others at its receivers, and
/// differences grow: on 768 ranks a nanosecond in the first packet is a microsecond or more in the last one.
const TOGETHER_IN_RINGS: f64 = 1e-10;

/// Which pass, exchange or coding a step belongs to.
type StepKey = (u8, usize);

struct RankState {
    clock: f64,
    next: usize,
    /// Time in which other ranks have the core.
    late: f64,
}

/// The state of a simulation.
pub(super) struct Simulation<'a> {
    job: &'a Job<'a>,
    shapes: &'a CallShapes<'a>,
    actions: &'a [Action],
    options: &'a SimOptions,
    network: NetworkState<'a>,
    parties: Parties<'a>,
    ranks: Vec<RankState>,
    tiles: HashMap<(usize, usize), TileState>,
    /// What is to come, in the order of time.
    coming: BinaryHeap<TimedEvent>,
    /// The tile and the flow of each flow of the network.
    owners: Vec<((usize, usize), usize)>,
    barrier: (usize, f64),
    /// Name, sum and most of each step.
    steps: Vec<(StepKey, String, Vec<f64>)>,
    events: Vec<Vec<SimEvent>>,
    random: u64,
    within: f64,
}

/// A time, a tile, and what happens to it then; the first is the greatest of a heap.
type TimedEvent = Reverse<(OrderedTime, (usize, usize), TileEvent)>;

/// What happens to a tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TileEvent {
    /// A party starts it.
    Start(usize),
    /// The ranks of other nodes, or of the own node, know that a rank of a ring has started it.
    Ready(usize, bool),
    /// It is known that a flow has arrived.
    Arrival(usize),
}

/// A time that can be ordered.
#[derive(Clone, Copy, PartialEq)]
struct OrderedTime(f64);

impl PartialOrd for OrderedTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for OrderedTime {}

impl Ord for OrderedTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<'a> Simulation<'a> {
    pub fn new(
        job: &'a Job<'a>,
        shapes: &'a CallShapes<'a>,
        actions: &'a [Action],
        options: &'a SimOptions,
        network: NetworkState<'a>,
    ) -> Self {
        let ranks = (0..job.ranks()).map(|_| RankState { clock: 0.0, next: 0, late: 0.0 }).collect();
        let total = predict_call(shapes, &CallCosts::default());
        let parties = Parties::new(job);
        let together = if parties.ring { TOGETHER_IN_RINGS } else { TOGETHER };
        Simulation {
            job,
            shapes,
            actions,
            options,
            network,
            parties,
            ranks,
            tiles: HashMap::new(),
            coming: BinaryHeap::new(),
            owners: Vec::new(),
            barrier: (0, 0.0),
            steps: Vec::new(),
            events: vec![Vec::new(); options.recorded.min(job.ranks())],
            random: options.seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15),
            within: together * total.seconds(),
        }
    }

    /// Runs until all ranks are done.
    pub fn run(&mut self) {
        (0..self.job.ranks()).for_each(|rank| self.go(rank));
        loop {
            let first = self.coming.peek().map(|Reverse((time, ..))| time.0);
            let time = match (first, self.network.next()) {
                (None, None) => return,
                (Some(first), Some(end)) => first.min(end),
                (first, end) => first.or(end).unwrap_or(0.0),
            };
            let mut done = Vec::new();
            self.network.advance(time, self.within, &mut |owner, time| done.push((owner, time)));
            while let Some(Reverse((at, tile, event))) = self.coming.peek().copied() {
                if at.0 > time + self.within {
                    break;
                }
                self.coming.pop();
                match event {
                    TileEvent::Start(party) => self.start_party(tile, party),
                    TileEvent::Ready(rank, outside) => self.ready(tile, rank, outside),
                    TileEvent::Arrival(flow) => self.arrived(tile, flow),
                }
            }
            done.into_iter().for_each(|(owner, time)| self.flow_done(owner, time));
        }
    }

    /// Runs a rank until it has to wait.
    fn go(&mut self, rank: usize) {
        while let Some(&action) = self.actions.get(self.ranks[rank].next) {
            let on = match action {
                Action::Barrier => self.at_barrier(rank),
                Action::Run { pass, part } => self.run_pass(rank, pass, part),
                Action::Start { reshape, tile } => self.post(rank, (reshape, tile)),
                Action::Wait { reshape, tile } => self.wait(rank, (reshape, tile)),
            };
            if !on {
                return;
            }
            self.ranks[rank].next += 1;
        }
        self.end(rank);
    }

    /// A rank has done its last action: those that share its core are done when they have had it.
    fn end(&mut self, rank: usize) {
        let late = std::mem::take(&mut self.ranks[rank].late);
        let passes = self.shapes.schedule.passes.len();
        if late > 0.0 && passes > 0 {
            let end = self.ranks[rank].clock + late;
            self.record(rank, (0, passes - 1), SimEventKind::Wait, None, end, 0.0);
        }
        if self.job.is_encoded() {
            let end = self.ranks[rank].clock + self.shapes.certificate_seconds(rank);
            self.record(rank, (5, 0), SimEventKind::Barrier, None, end, 0.0);
        }
    }

    fn at_barrier(&mut self, rank: usize) -> bool {
        let late = std::mem::take(&mut self.ranks[rank].late);
        self.barrier = (self.barrier.0 + 1, self.barrier.1.max(self.ranks[rank].clock + late));
        if self.barrier.0 < self.job.ranks() {
            return false;
        }
        let ranks = self.job.ranks().max(2) as f64;
        let end = self.barrier.1 + self.job.machine.constants.barrier_s * ranks.log2();
        self.barrier = (0, 0.0);
        for other in 0..self.job.ranks() {
            self.record(other, (4, 0), SimEventKind::Barrier, None, end, 0.0);
            if other != rank {
                self.ranks[other].next += 1;
            }
        }
        // The last one to come goes on by itself.
        (0..self.job.ranks()).filter(|&other| other != rank).for_each(|other| self.go(other));
        true
    }

    fn run_pass(&mut self, rank: usize, pass: usize, part: PassPart) -> bool {
        let boxes: [Box3; 2] = self.shapes.boxes(rank, pass, part);
        let machine = &self.job.machine;
        // Of each rank: those with equal boxes may load and store different pieces.
        let cost = self.shapes.pass(rank, pass, part).cost(machine);
        let factor = self.slowness(rank);
        let own = cost.own_seconds(&machine.constants);
        self.ranks[rank].late += cost.late_seconds(&machine.constants) * factor;
        let end = self.ranks[rank].clock + own * factor;
        let copies = self.shapes.schedule.passes[pass].transforms.is_empty();
        let kind = if copies { SimEventKind::Copy } else { SimEventKind::Transform };
        let schedule = self.shapes.schedule;
        let of = |reshape: usize, tile: Option<usize>| tile.map(|tile| (reshape, tile));
        let from = match schedule.passes[pass].from {
            ferrier_plan::schedule::End::Message(reshape) => of(reshape, part.from),
            _ => None,
        };
        let to = match schedule.passes[pass].to {
            ferrier_plan::schedule::End::Message(reshape) => of(reshape, part.to),
            _ => None,
        };
        let scalars = (boxes[0].volume() + boxes[1].volume()) * 2 * self.job.recipe.batch;
        let bytes = (scalars * self.job.recipe.precision.bytes()) as f64;
        self.record(rank, (0, pass), kind, from.or(to), end, bytes);
        true
    }

    /// How many times as long the next pass of a rank takes.
    fn slowness(&mut self, rank: usize) -> f64 {
        let factor = self.options.slowness(rank, self.job.nodes()[rank]);
        if self.options.noise == 0.0 {
            return factor;
        }
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let uniform = ((self.random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        // Delays are exponential: many short ones, few long ones.
        factor * (1.0 - self.options.noise * uniform.ln())
    }

    /// A rank starts its messages of a tile.
    fn post(&mut self, rank: usize, tile: (usize, usize)) -> bool {
        if !self.tiles.contains_key(&tile) {
            let state = self.new_tile(tile);
            self.tiles.insert(tile, state);
        }
        let constants = &self.job.machine.constants;
        let share = self.tiles[&tile].traffic.ranks[rank];
        if self.job.is_encoded() {
            let coding = self.shapes.coding_seconds(rank, share.bytes, constants.encode_bytes_s);
            let end = self.ranks[rank].clock + coding;
            self.record(rank, (1, tile.0), SimEventKind::Encode, Some(tile), end, share.bytes);
        }
        let seconds = share.node_messages * constants.node_gap_s + share.wire_messages * constants.wire_gap_s;
        let end = self.ranks[rank].clock + seconds;
        let received = self.tiles[&tile].traffic.received[rank];
        self.record(rank, (2, tile.0), SimEventKind::Post, Some(tile), end, received);
        let party = self.parties.of(rank);
        let Some(state) = self.tiles.get_mut(&tile) else { return true };
        let started = &mut state.started[party];
        *started = (started.0 + 1, started.1.max(end));
        if started.0 as usize == self.parties.ranks(party) {
            self.coming.push(Reverse((OrderedTime(started.1), tile, TileEvent::Start(party))));
        }
        true
    }

    fn new_tile(&self, (reshape, tile): (usize, usize)) -> TileState {
        let traffic = Exchanges { job: self.job, shapes: self.shapes }.traffic(reshape, tile);
        TileState::new(traffic, self.parties)
    }

    /// All ranks of a party have started a tile.
    fn start_party(&mut self, tile: (usize, usize), party: usize) {
        let Some(state) = self.tiles.get(&tile) else { return };
        let start = state.started[party].1;
        if self.parties.ring {
            let constants = &self.job.machine.constants;
            for (outside, latency) in [(false, constants.node_latency_s), (true, constants.wire_latency_s)] {
                let event = TileEvent::Ready(party, outside);
                self.coming.push(Reverse((OrderedTime(start + latency), tile, event)));
            }
        }
        self.start_flows(tile, party);
        self.close(tile, party, start);
    }

    fn ready(&mut self, tile: (usize, usize), rank: usize, outside: bool) {
        let Some(state) = self.tiles.get_mut(&tile) else { return };
        state.set_ready(rank, outside).into_iter().for_each(|other| self.start_flows(tile, other));
    }

    /// Starts the next flows of a party.
    fn start_flows(&mut self, tile: (usize, usize), party: usize) {
        let Some(state) = self.tiles.get_mut(&tile) else { return };
        let copies_first = self.job.machine.constants.copy_overlap < 0.5;
        while let Some(number) = state.next(party, copies_first) {
            let flow = &state.traffic.flows[number];
            let nodes = [flow.from, flow.to].map(|party| self.parties.node(party));
            self.network.start(flow, nodes, self.owners.len());
            self.owners.push((tile, number));
        }
    }

    fn flow_done(&mut self, owner: usize, time: f64) {
        let (tile, number) = self.owners[owner];
        let Some(state) = self.tiles.get_mut(&tile) else { return };
        let flow = state.traffic.flows[number];
        let constants = &self.job.machine.constants;
        let inside = self.parties.node(flow.from) == self.parties.node(flow.to);
        let arrival = time + if inside { constants.node_latency_s } else { constants.wire_latency_s };
        if self.parties.ring {
            // A packet is in flight until the sender knows that it has arrived.
            self.coming.push(Reverse((OrderedTime(arrival), tile, TileEvent::Arrival(number))));
            self.close(tile, flow.from, arrival);
        } else {
            self.arrived(tile, number);
            if !inside {
                self.close(tile, flow.from, time);
            }
        }
        self.close(tile, flow.to, arrival);
    }

    /// A flow has arrived, as far as its sender is concerned: others may start.
    fn arrived(&mut self, tile: (usize, usize), number: usize) {
        let Some(state) = self.tiles.get_mut(&tile) else { return };
        let party = state.traffic.flows[number].from;
        state.done(number);
        self.start_flows(tile, party);
    }

    /// One of the flows that a party waits for is complete.
    fn close(&mut self, tile: (usize, usize), party: usize, time: f64) {
        let Some(state) = self.tiles.get_mut(&tile) else { return };
        let open = &mut state.open[party];
        *open = (open.0 - 1, open.1.max(time));
        if open.0 == 0 {
            for rank in std::mem::take(&mut state.waiting[party]) {
                self.go(rank as usize);
            }
        }
    }

    /// Whether a tile has arrived; otherwise the rank goes on when it does.
    fn wait(&mut self, rank: usize, tile: (usize, usize)) -> bool {
        let party = self.parties.of(rank);
        let Some(state) = self.tiles.get_mut(&tile) else { return true };
        let (open, time) = state.open[party];
        if open > 0 {
            state.waiting[party].push(rank as u32);
            return false;
        }
        let (share, received) = (state.traffic.ranks[rank], state.traffic.received[rank]);
        state.waited += 1;
        if state.waited == self.job.ranks() {
            self.tiles.remove(&tile);
        }
        let late = std::mem::take(&mut self.ranks[rank].late);
        let end = self.ranks[rank].clock.max(time) + late;
        self.record(rank, (2, tile.0), SimEventKind::Wait, Some(tile), end, received);
        if self.job.is_encoded() {
            let constants = &self.job.machine.constants;
            let coding = self.shapes.coding_seconds(rank, share.bytes, constants.decode_bytes_s);
            let end = self.ranks[rank].clock + coding;
            self.record(rank, (3, tile.0), SimEventKind::Decode, Some(tile), end, share.bytes);
        }
        true
    }

    /// Moves the clock of a rank to `end`, the end of a step.
    fn record(
        &mut self,
        rank: usize,
        key: StepKey,
        kind: SimEventKind,
        tile: Option<(usize, usize)>,
        end: f64,
        bytes: f64,
    ) {
        let start = std::mem::replace(&mut self.ranks[rank].clock, end);
        let schedule = self.shapes.schedule;
        let at = self.steps.iter().position(|(known, ..)| *known == key).unwrap_or_else(|| {
            let reshape = || schedule.reshapes[key.1].name.clone();
            let name = match key.0 {
                0 => pass_name(&schedule.passes[key.1]),
                1 => format!("encode {}", reshape()),
                3 => format!("decode {}", reshape()),
                4 => "wait".into(),
                5 => CERTIFICATE.into(),
                _ => reshape(),
            };
            self.steps.push((key, name, vec![0.0; self.job.ranks()]));
            self.steps.len() - 1
        });
        self.steps[at].2[rank] += end - start;
        if let Some(events) = self.events.get_mut(rank) {
            let step = &self.steps[at].1;
            let name = match kind {
                SimEventKind::Encode | SimEventKind::Decode => schedule.reshapes[key.1].name.clone(),
                _ => step.clone(),
            };
            events.push(SimEvent { kind, name, tile, seconds: [start, end], bytes });
        }
    }

    /// The result.
    pub fn result(self) -> Simulated {
        let clocks = || self.ranks.iter().map(|rank| rank.clock);
        let last = clocks().fold(0.0, f64::max);
        let steps = self.steps.into_iter().map(|(_, name, seconds)| SimStep {
            name,
            ms: 1e3 * seconds.iter().sum::<f64>() / seconds.len().max(1) as f64,
            most_ms: 1e3 * seconds.iter().copied().fold(0.0, f64::max),
        });
        Simulated {
            ranks: self.job.ranks(),
            nodes: self.job.node_count(),
            total_ms: 1e3 * last,
            first_ms: 1e3 * clocks().fold(f64::INFINITY, f64::min),
            gflops: self.job.flops() / last / 1e9,
            flows: self.network.started,
            updates: self.network.updates,
            steps: steps.collect(),
            events: self.events,
        }
    }
}
