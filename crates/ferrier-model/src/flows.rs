//! Max-min fair rates of flows that share links.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A set of flows. Each uses some links, and gets a share of them in proportion to its weight.
#[derive(Default)]
pub(crate) struct FlowSet {
    /// Links of each flow.
    links: Vec<Vec<u32>>,
    weights: Vec<f64>,
    /// The most that a flow gets.
    bounds: Vec<f64>,
    /// Numbers of flows that were removed: they are used again, so that those in use lie close together.
    free: Vec<usize>,
    work: FairWork,
}

impl FlowSet {
    /// The numbers in use are below this.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Adds a flow over these links.
    pub fn push(&mut self, links: &[u32], weight: f64, bound: f64) -> usize {
        let flow = self.free.pop().unwrap_or_else(|| {
            self.links.push(Vec::new());
            self.weights.push(0.0);
            self.bounds.push(0.0);
            self.len() - 1
        });
        self.links[flow].clear();
        self.links[flow].extend_from_slice(links);
        (self.weights[flow], self.bounds[flow]) = (weight, bound);
        flow
    }

    /// Removes a flow.
    pub fn remove(&mut self, flow: usize) {
        self.free.push(flow);
    }

    pub fn links_of(&self, flow: usize) -> &[u32] {
        &self.links[flow]
    }

    /// The rates of the flows in `active`: no flow can get more without taking from one that has less for its weight.
    /// Links are filled one after the other, the one with the least for each weight first.
    pub fn fair_rates(&mut self, speeds: &[f64], active: &[u32], rates: &mut [f64]) {
        let mut work = std::mem::take(&mut self.work);
        work.list_users(self, speeds, active);
        let FairWork { left, weight, users, ends, touched, list } = &mut work;
        let mut heap: BinaryHeap<Share> = touched
            .iter()
            .map(|&link| link as usize)
            .filter(|&link| weight[link] > 0.0)
            .map(|link| Share { share: left[link] / weight[link], link })
            .collect();
        let bound = |at: u32| {
            let flow = active[at as usize] as usize;
            self.bounds[flow] / self.weights[flow]
        };
        // A flow without a bound is fixed by one of its links.
        let is_bounded =
            |at: &u32| bound(*at).is_finite() || self.links_of(active[*at as usize] as usize).is_empty();
        let mut bounded: Vec<u32> = (0..active.len() as u32).filter(is_bounded).collect();
        bounded.sort_by(|&a, &b| bound(a).total_cmp(&bound(b)));
        let mut bounded = bounded.into_iter().peekable();
        let mut fixed = vec![false; active.len()];
        let mut fix = |at: usize, share: f64, left: &mut [f64], weight: &mut [f64]| {
            let flow = active[at] as usize;
            rates[flow] = share * self.weights[flow];
            for &link in self.links_of(flow) {
                left[link as usize] = (left[link as usize] - rates[flow]).max(0.0);
                weight[link as usize] -= self.weights[flow];
            }
        };
        loop {
            while bounded.next_if(|&at| fixed[at as usize]).is_some() {}
            let least = bounded.peek().map_or(f64::INFINITY, |&at| bound(at));
            let Some(&Share { share, link }) = heap.peek().filter(|top| top.share <= least) else {
                let Some(at) = bounded.next() else { break };
                fixed[at as usize] = true;
                fix(at as usize, least, left, weight);
                continue;
            };
            heap.pop();
            if weight[link] <= 1e-12 {
                continue;
            }
            let now = left[link] / weight[link];
            // Flows that were fixed since have left more for the others.
            if now > share * (1.0 + 1e-12) {
                heap.push(Share { share: now, link });
                continue;
            }
            for &at in &list[(ends[link] - users[link]) as usize..ends[link] as usize] {
                if !std::mem::replace(&mut fixed[at as usize], true) {
                    fix(at as usize, share, left, weight);
                }
            }
        }
        self.work = work;
    }
}

/// Memory of a computation of rates, by link.
#[derive(Default)]
struct FairWork {
    left: Vec<f64>,
    weight: Vec<f64>,
    users: Vec<u32>,
    /// Where the users of a link end in `list`.
    ends: Vec<u32>,
    /// Links of some flow.
    touched: Vec<u32>,
    list: Vec<u32>,
}

impl FairWork {
    /// Lists the flows of each link.
    fn list_users(&mut self, set: &FlowSet, speeds: &[f64], active: &[u32]) {
        self.touched.drain(..).for_each(|link| self.users[link as usize] = 0);
        self.left.resize(speeds.len(), 0.0);
        self.weight.resize(speeds.len(), 0.0);
        self.users.resize(speeds.len(), 0);
        self.ends.resize(speeds.len(), 0);
        for &flow in active {
            for &number in set.links_of(flow as usize) {
                let link = number as usize;
                if self.users[link] == 0 {
                    self.touched.push(number);
                    (self.left[link], self.weight[link]) = (speeds[link], 0.0);
                }
                self.weight[link] += set.weights[flow as usize];
                self.users[link] += 1;
            }
        }
        let mut end = 0;
        for &link in &self.touched {
            // The place of the first; each user moves it on.
            self.ends[link as usize] = end;
            end += self.users[link as usize];
        }
        self.list.resize(end as usize, 0);
        for (at, &flow) in active.iter().enumerate() {
            for &link in set.links_of(flow as usize) {
                self.list[self.ends[link as usize] as usize] = at as u32;
                self.ends[link as usize] += 1;
            }
        }
    }
}

/// What a link has for each weight; the least is the greatest of a heap.
#[derive(PartialEq)]
struct Share {
    share: f64,
    link: usize,
}

impl Eq for Share {}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        other.share.total_cmp(&self.share).then(other.link.cmp(&self.link))
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(speeds: &[f64], flows: &[(&[u32], f64, f64)]) -> Vec<f64> {
        let mut set = FlowSet::default();
        flows.iter().for_each(|(links, weight, bound)| {
            set.push(links, *weight, *bound);
        });
        let active: Vec<u32> = (0..flows.len() as u32).collect();
        let mut rates = vec![0.0; flows.len()];
        set.fair_rates(speeds, &active, &mut rates);
        rates
    }

    const FREE: f64 = f64::INFINITY;

    #[test]
    fn shares_are_max_min_fair() {
        // The textbook's example: a long flow over both links, a short one over each.
        assert_eq!(
            rates(&[1.0, 2.0], &[(&[0, 1], 1.0, FREE), (&[0], 1.0, FREE), (&[1], 1.0, FREE)]),
            [0.5, 0.5, 1.5]
        );
        // Weights.
        assert_eq!(rates(&[4.0], &[(&[0], 3.0, FREE), (&[0], 1.0, FREE)]), [3.0, 1.0]);
        // A bound leaves more for the others.
        assert_eq!(rates(&[4.0], &[(&[0], 1.0, 0.5), (&[0], 1.0, FREE)]), [0.5, 3.5]);
        // A flow over no link gets its bound.
        assert_eq!(rates(&[4.0], &[(&[], 1.0, 7.0)]), [7.0]);
    }

    /// No link is overloaded, and every flow has a full link on which no other flow gets more for its weight, or its
    /// bound.
    #[test]
    fn random_networks_are_shared_fairly() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..50 {
            let speeds: Vec<f64> = (0..6).map(|_| 1.0 + random(9) as f64).collect();
            let mut set = FlowSet::default();
            let mut routes = Vec::new();
            for _ in 0..20 {
                let mut links: Vec<u32> = (0..1 + random(3)).map(|_| random(6) as u32).collect();
                links.sort_unstable();
                links.dedup();
                let (weight, bound) = (1.0 + random(3) as f64, 0.2 + random(10) as f64);
                set.push(&links, weight, bound);
                routes.push((links, weight, bound));
            }
            let active: Vec<u32> = (0..20).collect();
            let mut rates = vec![0.0; 20];
            set.fair_rates(&speeds, &active, &mut rates);
            let load = |link: u32| -> f64 {
                let uses = routes.iter().zip(&rates).filter(|((links, ..), _)| links.contains(&link));
                uses.map(|(_, rate)| rate).sum()
            };
            for (link, speed) in speeds.iter().enumerate() {
                assert!(load(link as u32) <= speed * (1.0 + 1e-9));
            }
            for ((links, weight, bound), rate) in routes.iter().zip(&rates) {
                let share = rate / weight;
                let best = |link: &u32| {
                    let others = routes.iter().zip(&rates).filter(|((links, ..), _)| links.contains(link));
                    others.map(|((_, weight, _), rate)| rate / weight).fold(0.0, f64::max)
                };
                let full = |link: &&u32| load(**link) >= speeds[**link as usize] * (1.0 - 1e-9);
                let stuck = links.iter().filter(full).any(|link| share >= best(link) * (1.0 - 1e-9));
                assert!(stuck || *rate >= bound * (1.0 - 1e-9), "{links:?} {rate} of {bound}");
            }
        }
    }
}
