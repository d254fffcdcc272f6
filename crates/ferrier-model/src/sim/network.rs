//! The network of a simulation: links, flows in progress and their rates.

use ferrier_plan::cost::ExchangeShape;

use super::exchanges::{Flow, full_speed_bytes};
use super::options::SimOptions;
use crate::flows::FlowSet;
use crate::job::Job;
use crate::topology::Links;

/// Part of a link's speed that is nothing: a link that has less left is full.
const NOTHING: f64 = 1e-9;

/// Rounds of an update after which all links of its flows take part in it.
const ROUNDS: usize = 4;

/// A flow in progress.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Bytes left when its rate was computed, as many more as the size of the messages slows them down.
    left: f64,
    since: f64,
    /// The caller's number.
    owner: usize,
}

/// Links and flows.
pub(super) struct NetworkState<'a> {
    links: Links<'a>,
    speeds: Vec<f64>,
    nodes: usize,
    job: &'a Job<'a>,
    set: FlowSet,
    progress: Vec<Progress>,
    rates: Vec<f64>,
    /// When each flow is complete; infinite for numbers that are not in use.
    ends: Vec<f64>,
    now: f64,
    /// The flows in progress on each link.
    users: Vec<Vec<u32>>,
    /// Bytes per second on each link.
    loads: Vec<f64>,
    /// Links that flows use up: those of a flow decide its rate.
    full: Vec<bool>,
    /// What each link has for the flows of an update.
    room: Vec<f64>,
    /// Flows that have begun, and links on which flows have ended, since rates were computed.
    begun: Vec<u32>,
    freed: Vec<u32>,
    /// The last update that came across each link and each flow.
    link_updates: Vec<u64>,
    flow_updates: Vec<u64>,
    /// The last computation of rates that came across each link.
    link_rounds: Vec<u64>,
    rounds: u64,
    /// Computations of all rates.
    pub updates: u64,
    /// Flows that were started.
    pub started: u64,
}

impl<'a> NetworkState<'a> {
    pub fn new(job: &'a Job<'a>, options: &SimOptions) -> Self {
        let injection = job.cluster.network.injection_bytes_s();
        let links = job.cluster.topology.links(job.node_count(), injection);
        let nodes = job.node_count();
        let constants = &job.machine.constants;
        let mut speeds = Vec::with_capacity(3 * nodes + links.speeds.len());
        let on_node = |node: usize| {
            let first = node * job.per_node;
            (job.ranks() - first).min(job.per_node)
        };
        for _ in 0..2 {
            speeds.extend((0..nodes).map(|node| {
                (injection / options.link_slowness(node)).min(on_node(node) as f64 * constants.wire_bytes_s)
            }));
        }
        speeds.extend((0..nodes).map(|node| {
            let mut shape = ExchangeShape::default();
            shape.ranks_on_node = on_node(node);
            shape.copy_bytes_s(&job.machine) * on_node(node) as f64
        }));
        speeds.extend(&links.speeds);
        let links_count = speeds.len();
        NetworkState {
            links,
            speeds,
            nodes,
            job,
            set: FlowSet::default(),
            progress: Vec::new(),
            rates: Vec::new(),
            ends: Vec::new(),
            now: 0.0,
            users: vec![Vec::new(); links_count],
            loads: vec![0.0; links_count],
            full: vec![false; links_count],
            room: vec![0.0; links_count],
            begun: Vec::new(),
            freed: Vec::new(),
            link_updates: vec![0; links_count],
            link_rounds: vec![0; links_count],
            rounds: 0,
            flow_updates: Vec::new(),
            updates: 0,
            started: 0,
        }
    }

    /// Starts a flow between two nodes, or inside one, now.
    pub fn start(&mut self, flow: &Flow, [from, to]: [usize; 2], owner: usize) {
        let mut route = Vec::new();
        let nodes = self.nodes;
        if from == to {
            route.push((2 * nodes + from) as u32);
        } else {
            route.extend([from as u32, (nodes + to) as u32]);
            self.links.route(from, to, &mut route);
            route[2..].iter_mut().for_each(|link| *link += 3 * nodes as u32);
        }
        let left = full_speed_bytes(self.job, flow.bytes, flow.message_bytes, from == to);
        let number = self.set.push(&route, flow.messages.max(1.0), f64::INFINITY);
        let count = self.set.len();
        self.progress.resize(count, Progress::default());
        self.rates.resize(count, 0.0);
        self.ends.resize(count, f64::INFINITY);
        self.flow_updates.resize(count, 0);
        self.progress[number] = Progress { left, since: self.now, owner };
        self.rates[number] = 0.0;
        route.iter().for_each(|&link| self.users[link as usize].push(number as u32));
        self.begun.push(number as u32);
        self.started += 1;
    }

    /// When the first of the flows is complete at the present rates.
    pub fn next(&mut self) -> Option<f64> {
        if !self.begun.is_empty() || !self.freed.is_empty() {
            self.update();
        }
        let end = self.ends.iter().copied().fold(f64::INFINITY, f64::min);
        end.is_finite().then_some(end)
    }

    /// Goes on to a time; calls `done` for each flow that is complete then or at most `within` later, with its owner and
    /// the time.
    pub fn advance(&mut self, time: f64, within: f64, done: &mut dyn FnMut(usize, f64)) {
        self.now = self.now.max(time);
        // What the clock cannot count any more is over.
        let last = self.now + within.max(4.0 * f64::EPSILON * self.now);
        for number in 0..self.ends.len() {
            let end = self.ends[number];
            if end > last {
                continue;
            }
            self.ends[number] = f64::INFINITY;
            for &link in self.set.links_of(number) {
                self.users[link as usize].retain(|&user| user as usize != number);
                self.loads[link as usize] -= self.rates[number];
                self.freed.push(link);
            }
            self.set.remove(number);
            done(self.progress[number].owner, end.max(self.now));
        }
    }

    /// Computes the rates that may differ since the last time: those of flows that have begun, of flows on full links of which
    /// others have ended, and so on over the full links of such flows. A link that is not full decides no rate: it has what
    /// other flows leave. If it gets full it takes part with all its flows, and rates are computed once more.
    fn update(&mut self) {
        self.updates += 1;
        let freed = std::mem::take(&mut self.freed);
        let mut links: Vec<u32> = freed.iter().copied().filter(|&link| self.full[link as usize]).collect();
        // The flows and the rates that they had.
        let mut flows = Vec::new();
        let mut before = Vec::new();
        for flow in std::mem::take(&mut self.begun) {
            self.take_part(flow, &mut flows, &mut before, &mut links);
        }
        let mut touched = Vec::new();
        for round in 1.. {
            while let Some(link) = links.pop() {
                if std::mem::replace(&mut self.link_updates[link as usize], self.updates) == self.updates {
                    continue;
                }
                for at in 0..self.users[link as usize].len() {
                    let flow = self.users[link as usize][at];
                    self.take_part(flow, &mut flows, &mut before, &mut links);
                }
            }
            self.find_room(&flows, &before, &mut touched);
            self.set.fair_rates(&self.room, &flows, &mut self.rates);
            for &flow in &flows {
                let rate = self.rates[flow as usize];
                self.set.links_of(flow as usize).iter().for_each(|&link| self.room[link as usize] -= rate);
            }
            let part = |link: u32| self.link_updates[link as usize] == self.updates;
            let others = touched.iter().copied().filter(|&link| !part(link));
            links.extend(others.clone().filter(|&link| self.is_used_up(link)));
            if links.is_empty() {
                break;
            }
            if round >= ROUNDS {
                links.extend(others);
            }
        }
        for link in freed.into_iter().filter(|&link| self.users[link as usize].is_empty()) {
            (self.loads[link as usize], self.full[link as usize]) = (0.0, false);
        }
        for link in touched {
            self.loads[link as usize] = self.speeds[link as usize] - self.room[link as usize];
            self.full[link as usize] = self.is_used_up(link);
        }
        for (&flow, before) in flows.iter().zip(before) {
            let (progress, rate) = (&mut self.progress[flow as usize], self.rates[flow as usize]);
            if rate != before {
                progress.left = (progress.left - before * (self.now - progress.since)).max(0.0);
                progress.since = self.now;
                self.ends[flow as usize] = self.now + progress.left / rate;
            }
        }
    }

    /// A flow takes part in an update, and its full links with it.
    fn take_part(&mut self, flow: u32, flows: &mut Vec<u32>, before: &mut Vec<f64>, links: &mut Vec<u32>) {
        if std::mem::replace(&mut self.flow_updates[flow as usize], self.updates) != self.updates {
            flows.push(flow);
            before.push(self.rates[flow as usize]);
            let full = |link: &u32| self.full[*link as usize];
            links.extend(self.set.links_of(flow as usize).iter().copied().filter(full));
        }
    }

    /// Finds the links of these flows, and what they have for them: all of it, if all their flows take part.
    fn find_room(&mut self, flows: &[u32], before: &[f64], touched: &mut Vec<u32>) {
        self.rounds += 1;
        touched.clear();
        for (&flow, rate) in flows.iter().zip(before) {
            for &number in self.set.links_of(flow as usize) {
                let link = number as usize;
                if std::mem::replace(&mut self.link_rounds[link], self.rounds) != self.rounds {
                    touched.push(number);
                    self.room[link] = self.speeds[link] - self.loads[link];
                }
                self.room[link] += rate;
            }
        }
        for link in touched.iter().map(|&link| link as usize) {
            self.room[link] = match self.link_updates[link] == self.updates {
                true => self.speeds[link],
                false => self.room[link].max(0.0),
            };
        }
    }

    /// Whether the flows of an update leave nothing of a link.
    fn is_used_up(&self, link: u32) -> bool {
        self.room[link as usize] <= NOTHING * self.speeds[link as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobOptions, Processor, Topology, TreeLevel, shipped};
    use ferrier_plan::{Precision, Problem};

    /// Flows begin and end at random: after each update all rates are those that a computation from scratch finds.
    #[test]
    fn updates_find_the_rates_of_all_flows() {
        let mut cluster = shipped("genoa-hdr").unwrap();
        let nodes = 24;
        let mut seed = 11_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        for topology in [Topology::Star, Topology::FatTree { levels: vec![TreeLevel::new(4, 2.0)] }] {
            cluster.topology = topology;
            let options = JobOptions::new(Processor::Cpu).per_node(Some(1));
            let job = Job::new(&cluster, &Problem::c2c([64; 3]), Precision::F64, nodes, &options).unwrap();
            let mut network = NetworkState::new(&job, &SimOptions::default());
            for step in 0..2000 {
                // Many flows at first, few in the end.
                for _ in 0..if step < 1000 { random(4) } else { random(2) } {
                    let (from, to) = (random(nodes), random(nodes));
                    let bytes = 1e4 + random(100_000) as f64;
                    let messages = (1 + random(3)) as f64;
                    let flow = Flow { from, to, bytes, messages, message_bytes: bytes, after: 0 };
                    network.start(&flow, [from, to], step);
                }
                let Some(end) = network.next() else { continue };
                let active: Vec<u32> = (0..network.ends.len() as u32)
                    .filter(|&flow| network.ends[flow as usize].is_finite())
                    .collect();
                let mut rates = vec![0.0; network.set.len()];
                network.set.fair_rates(&network.speeds, &active, &mut rates);
                for &flow in &active {
                    let (found, right) = (network.rates[flow as usize], rates[flow as usize]);
                    assert!((found / right - 1.0).abs() < 1e-6, "step {step}: {found} instead of {right}");
                }
                network.advance(end, 0.0, &mut |_, _| {});
            }
        }
    }
}
