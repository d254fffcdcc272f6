//! How nodes are connected: shared links, routes, and what uniform traffic gets of them.

use serde::{Deserialize, Serialize};

/// Bytes, or operations, per second: numbers beyond are mistakes, and times would not add up in double precision.
pub(crate) const SPEEDS: std::ops::RangeInclusive<f64> = 1.0..=1e18;

/// A level of a fat tree: switches that connect groups of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TreeLevel {
    /// Nodes below a switch of this level.
    pub nodes: usize,
    /// Speed of the links below over that of the links above: 2 means that half of the speed goes on.
    pub taper: f64,
}

impl TreeLevel {
    /// Switches of so many nodes.
    pub fn new(nodes: usize, taper: f64) -> TreeLevel {
        TreeLevel { nodes, taper }
    }
}

/// How nodes are connected. Links have the same speed in both directions; each direction is shared by the flows that use
/// it. Nodes are numbered along leaves, groups or the last axis of a block of a torus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Topology {
    /// One switch that is never the limit.
    Star,
    /// Switches of switches; traffic spreads over all links between two levels.
    FatTree {
        /// The levels from the nodes up; above the last one nothing limits.
        levels: Vec<TreeLevel>,
    },
    /// Groups of nodes, each pair of which has links.
    Dragonfly {
        /// Nodes of a group; inside a group nothing limits.
        group: usize,
        /// Bytes per second from a group to all others together.
        global_bytes_s: f64,
        /// Whether traffic takes only the links between its two groups, which are as many for every pair. Otherwise it
        /// spreads over the links of both groups.
        #[serde(default)]
        minimal: bool,
    },
    /// A mesh that is closed along each axis; routes go along one axis after the other, the shorter way.
    Torus {
        /// Routers along each axis.
        dims: Vec<usize>,
        /// Nodes of a router.
        #[serde(default = "one")]
        nodes_per_router: usize,
        /// Bytes per second of a link between two routers, in each direction.
        link_bytes_s: f64,
    },
}

fn one() -> usize {
    1
}

/// The most routers of a torus: a number that computes in memory.
const MOST_ROUTERS: usize = 1 << 22;

impl Topology {
    /// Checks the values for a machine of so many nodes.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), String> {
        let positive = |value: f64| SPEEDS.contains(&value);
        let taper = |value: f64| (1e-3..=1e6).contains(&value);
        match self {
            Topology::Star => Ok(()),
            Topology::FatTree { levels } => {
                let rising = levels.windows(2).all(|pair| pair[0].nodes < pair[1].nodes);
                match levels.iter().all(|level| level.nodes > 0 && taper(level.taper)) && rising {
                    true => Ok(()),
                    false => {
                        Err("topology.levels must have ascending nodes and tapers from 1e-3 to 1e6".into())
                    }
                }
            }
            Topology::Dragonfly { group, global_bytes_s, .. } => {
                match *group > 0 && positive(*global_bytes_s) {
                    true => Ok(()),
                    false => {
                        Err("topology.group must be above 0, topology.global_bytes_s from 1 to 1e18".into())
                    }
                }
            }
            Topology::Torus { dims, nodes_per_router, link_bytes_s } => {
                let sizes = !dims.is_empty() && !dims.contains(&0) && *nodes_per_router > 0;
                if !(sizes && positive(*link_bytes_s)) {
                    return Err(
                        "topology.dims and nodes_per_router must be above 0, link_bytes_s from 1 to 1e18"
                            .into(),
                    );
                }
                let routers = dims.iter().try_fold(1, |all: usize, &dim| all.checked_mul(dim));
                let room = routers.and_then(|routers| routers.checked_mul(*nodes_per_router));
                match (routers, room) {
                    (Some(routers), Some(room)) if room >= nodes && routers <= MOST_ROUTERS => Ok(()),
                    (Some(routers), Some(room)) if routers <= MOST_ROUTERS => Err(format!(
                        "topology.dims have {routers} routers with room for {room} nodes; the machine has {nodes}"
                    )),
                    _ => Err(format!("topology.dims must have at most {MOST_ROUTERS} routers")),
                }
            }
        }
    }

    /// Bytes per second that each of `nodes` nodes sends at most while all send the same to all others; `injection` is
    /// what its own links allow.
    pub fn uniform_bytes_s(&self, nodes: usize, injection: f64) -> f64 {
        // The part of a node's traffic that leaves a group of `group` nodes.
        let leaves = |group: usize| {
            let group = group.min(nodes);
            if nodes <= 1 { 0.0 } else { (nodes - group) as f64 / (nodes - 1) as f64 }
        };
        let limit = |speed: f64, part: f64| if part > 0.0 { speed / part } else { f64::INFINITY };
        match self {
            Topology::Star => f64::INFINITY,
            Topology::FatTree { levels } => levels
                .iter()
                .map(|level| limit(injection / level.taper, leaves(level.nodes)))
                .fold(f64::INFINITY, f64::min),
            Topology::Dragonfly { group, global_bytes_s, minimal } => {
                let groups = nodes.div_ceil(*group);
                let speed = match minimal {
                    // Links to groups without nodes of the job are not used.
                    true => global_bytes_s / *group as f64,
                    false => global_bytes_s / (*group).min(nodes) as f64,
                };
                if groups <= 1 { f64::INFINITY } else { limit(speed, leaves(*group)) }
            }
            Topology::Torus { dims, nodes_per_router, link_bytes_s } => {
                // Half of the traffic crosses the middle of each axis, half of that in each direction, twice as many
                // links do where the axis is closed.
                let used = block(dims, nodes.div_ceil(*nodes_per_router));
                let along = used.iter().zip(dims).filter(|(used, _)| **used > 1).map(|(&used, &dim)| {
                    let cuts = if used == dim && dim > 2 { 8.0 } else { 4.0 };
                    cuts * link_bytes_s / (used * nodes_per_router) as f64
                });
                along.fold(f64::INFINITY, f64::min)
            }
        }
    }

    /// The shared links of `nodes` nodes.
    pub(crate) fn links(&self, nodes: usize, injection: f64) -> Links<'_> {
        let mut speeds = Vec::new();
        let mut starts = Vec::new();
        match self {
            Topology::Star => {}
            Topology::FatTree { levels } => {
                for level in levels {
                    starts.push(speeds.len());
                    let switches = nodes.div_ceil(level.nodes);
                    let speed = injection * level.nodes as f64 / level.taper;
                    speeds.resize(speeds.len() + 2 * switches, speed);
                }
            }
            Topology::Dragonfly { group, global_bytes_s, minimal } => {
                let groups = nodes.div_ceil(*group);
                match minimal {
                    true => speeds.resize(groups * groups, global_bytes_s / (groups.max(2) - 1) as f64),
                    false => speeds.resize(2 * groups, *global_bytes_s),
                }
                starts.push(groups);
            }
            Topology::Torus { dims, link_bytes_s, nodes_per_router } => {
                let routers: usize = dims.iter().product();
                starts = block(dims, nodes.div_ceil(*nodes_per_router));
                speeds.resize(routers * dims.len() * 2, *link_bytes_s);
            }
        }
        Links { topology: self, speeds, starts }
    }
}

/// The block of a torus that a job of so many routers gets: as compact as can be.
fn block(dims: &[usize], routers: usize) -> Vec<usize> {
    let mut used = vec![1; dims.len()];
    while used.iter().product::<usize>() < routers {
        let free = (0..dims.len()).filter(|&axis| used[axis] < dims[axis]);
        let Some(axis) = free.min_by_key(|&axis| used[axis]) else { break };
        used[axis] += 1;
    }
    used
}

/// Hops between two routers of a ring.
fn distance(offset: usize, dim: usize) -> usize {
    offset.min(dim - offset)
}

/// The shared links of a topology, each direction a link of its own.
pub(crate) struct Links<'a> {
    topology: &'a Topology,
    /// Bytes per second of each link.
    pub speeds: Vec<f64>,
    /// Numbers of the first links of each level; of a dragonfly the groups, of a torus the block of the job.
    starts: Vec<usize>,
}

impl Links<'_> {
    /// The router of a torus with this number in the block of the job.
    fn router(&self, number: usize, dims: &[usize]) -> usize {
        let (mut rest, mut router, mut stride) = (number, 0, 1);
        for (&dim, &used) in dims.iter().zip(&self.starts).rev() {
            router += rest % used * stride;
            rest /= used;
            stride *= dim;
        }
        router
    }

    /// The links that a flow from one node to another uses.
    pub fn route(&self, from: usize, to: usize, route: &mut Vec<u32>) {
        match self.topology {
            Topology::Star => {}
            Topology::FatTree { levels } => {
                for (level, start) in levels.iter().zip(&self.starts) {
                    let [up, down] = [from, to].map(|node| node / level.nodes);
                    if up == down {
                        break;
                    }
                    route.push((start + 2 * up) as u32);
                    route.push((start + 2 * down + 1) as u32);
                }
            }
            Topology::Dragonfly { group, minimal, .. } => {
                let [up, down] = [from, to].map(|node| node / group);
                match minimal {
                    _ if up == down => {}
                    true => route.push((up * self.starts[0] + down) as u32),
                    false => route.extend([2 * up as u32, 2 * down as u32 + 1]),
                }
            }
            Topology::Torus { dims, nodes_per_router, .. } => {
                let [mut at, to] = [from, to].map(|node| self.router(node / nodes_per_router, dims));
                let mut stride = 1;
                for (axis, &dim) in dims.iter().enumerate().rev() {
                    let [mut here, there] = [at, to].map(|router| router / stride % dim);
                    let ahead = (there + dim - here) % dim;
                    let forward = 2 * ahead <= dim;
                    for _ in 0..distance(ahead, dim) {
                        route.push((2 * (at * dims.len() + axis) + usize::from(!forward)) as u32);
                        let next = (here + if forward { 1 } else { dim - 1 }) % dim;
                        at = at - here * stride + next * stride;
                        here = next;
                    }
                    stride *= dim;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(topology: &Topology, nodes: usize, from: usize, to: usize) -> Vec<u32> {
        let mut found = Vec::new();
        topology.links(nodes, 1.0).route(from, to, &mut found);
        found
    }

    #[test]
    fn flows_below_one_switch_use_no_shared_link() {
        let tree = Topology::FatTree { levels: vec![TreeLevel::new(4, 2.0), TreeLevel::new(16, 1.0)] };
        assert_eq!(route(&tree, 64, 1, 3), [0_u32; 0]);
        assert_eq!(route(&tree, 64, 1, 7).len(), 2);
        assert_eq!(route(&tree, 64, 1, 63).len(), 4);
        assert_eq!(tree.links(64, 10.0).speeds[0], 10.0 * 4.0 / 2.0);
    }

    #[test]
    fn routes_of_a_torus_are_the_shortest() {
        let torus = Topology::Torus { dims: vec![4, 5, 3], nodes_per_router: 2, link_bytes_s: 1.0 };
        let nodes = 4 * 5 * 3 * 2;
        for from in 0..nodes {
            for to in 0..nodes {
                let [a, b] = [from / 2, to / 2].map(|at| [at / 15, at / 3 % 5, at % 3]);
                let hops: usize = (0..3)
                    .map(|axis| {
                        let dim = [4, 5, 3][axis];
                        distance((b[axis] + dim - a[axis]) % dim, dim)
                    })
                    .sum();
                let links = route(&torus, nodes, from, to);
                assert_eq!(links.len(), hops, "{from} {to}");
                let mut distinct = links.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), hops);
            }
        }
    }

    /// Uniform traffic loads every link alike, so that the busiest one gives the speed of all.
    #[test]
    fn uniform_traffic_gets_what_the_busiest_link_allows() {
        for (topology, nodes) in [
            (Topology::FatTree { levels: vec![TreeLevel::new(4, 2.0)] }, 32),
            (Topology::Dragonfly { group: 8, global_bytes_s: 3.0, minimal: false }, 32),
            (Topology::Dragonfly { group: 8, global_bytes_s: 3.0, minimal: true }, 32),
            (Topology::Torus { dims: vec![4, 8], nodes_per_router: 1, link_bytes_s: 1.0 }, 32),
            (Topology::Torus { dims: vec![5, 3], nodes_per_router: 2, link_bytes_s: 1.0 }, 30),
        ] {
            let links = topology.links(nodes, 1.0);
            let mut load = vec![0.0; links.speeds.len()];
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                let mut found = Vec::new();
                links.route(from, to, &mut found);
                found.into_iter().for_each(|link| load[link as usize] += 1.0 / (nodes - 1) as f64);
            }
            let busiest = links.speeds.iter().zip(&load).map(|(speed, load)| speed / load);
            let exact = busiest.fold(f64::INFINITY, f64::min);
            let found = topology.uniform_bytes_s(nodes, 1.0);
            assert!((found / exact - 1.0).abs() < 0.3, "{topology:?}: {found} {exact}");
        }
    }
}
