//! The network of a simulation: links, flows in progress and their rates.

use ferrier_plan::cost::ExchangeShape;

use super::exchanges::{Flow, full_speed_bytes};
use super::options::SimOptions;
use crate::flows::FlowSet;
use crate::job::Job;
use crate::topology::Links;

/// A flow in progress.
#[derive(Clone, Copy)]
struct Progress {
    /// Bytes left, as many more as the size of the messages slows them down.
    left: f64,
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
    active: Vec<u32>,
    rates: Vec<f64>,
    now: f64,
    /// The flows in progress on each link.
    users: Vec<Vec<u32>>,
    /// Links on which flows have begun or ended since rates were computed.
    changed: Vec<u32>,
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
        let users = vec![Vec::new(); speeds.len()];
        NetworkState {
            links,
            speeds,
            nodes,
            job,
            set: FlowSet::default(),
            progress: Vec::new(),
            active: Vec::new(),
            rates: Vec::new(),
            now: 0.0,
            users,
            changed: Vec::new(),
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
        if self.active.is_empty() {
            // Nothing is in progress: numbers begin anew.
            (self.set, self.progress, self.rates) = (FlowSet::default(), Vec::new(), Vec::new());
        }
        let number = self.set.push(&route, flow.messages.max(1.0), f64::INFINITY);
        self.progress.push(Progress { left, owner });
        self.rates.push(0.0);
        self.active.push(number as u32);
        route.iter().for_each(|&link| self.users[link as usize].push(number as u32));
        self.changed.extend(route);
        self.started += 1;
    }

    /// When the first of the flows is complete at the present rates.
    pub fn next(&mut self) -> Option<f64> {
        if !self.changed.is_empty() {
            let flows = self.changed_flows();
            self.set.fair_rates(&self.speeds, &flows, &mut self.rates);
            self.updates += 1;
        }
        let end = |&flow: &u32| self.progress[flow as usize].left / self.rates[flow as usize];
        self.active.iter().map(end).min_by(f64::total_cmp).map(|seconds| self.now + seconds)
    }

    /// Goes on to a time; calls `done` for each flow that is complete then or at most `within` later, with its owner and
    /// the time.
    pub fn advance(&mut self, time: f64, within: f64, done: &mut dyn FnMut(usize, f64)) {
        let seconds = (time - self.now).max(0.0);
        self.now = self.now.max(time);
        let (progress, rates, now) = (&mut self.progress, &self.rates, self.now);
        // What the clock cannot count any more is over.
        let within = within.max(4.0 * f64::EPSILON * now);
        let (set, users, changed) = (&self.set, &mut self.users, &mut self.changed);
        self.active.retain(|&number| {
            let (flow, rate) = (&mut progress[number as usize], rates[number as usize]);
            flow.left -= rate * seconds;
            let more = flow.left / rate;
            if more > within {
                return true;
            }
            for &link in set.links_of(number as usize) {
                users[link as usize].retain(|&user| user != number);
                changed.push(link);
            }
            done(flow.owner, now + more.max(0.0));
            false
        });
    }

    /// The flows whose rates may differ since they were computed: those on changed links, and those that share links with
    /// them, directly or not.
    fn changed_flows(&mut self) -> Vec<u32> {
        let mut links = std::mem::take(&mut self.changed);
        let mut seen = vec![false; self.speeds.len()];
        let mut known = vec![false; self.set.len()];
        let mut flows = Vec::new();
        while let Some(link) = links.pop() {
            if std::mem::replace(&mut seen[link as usize], true) {
                continue;
            }
            for &flow in &self.users[link as usize] {
                if !std::mem::replace(&mut known[flow as usize], true) {
                    flows.push(flow);
                    links.extend(self.set.links_of(flow as usize));
                }
            }
        }
        flows
    }
}
