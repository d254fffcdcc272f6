//! Search `nelder-mead`: the simplex of Nelder and Mead on a lattice.
//!
//! The simplex moves in the space of rungs, so a step is a step in log scale,
//! and is asked at the nearest lattice point. What has no order is not for a
//! simplex: names are tried one at a time, and each promising combination of
//! names gets a simplex of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::rng::Rng;
use crate::search::{Ask, Ground, Search};
use crate::space::{Point, Space};

/// A combination of names is promising up to this multiple of the best cost.
const PROMISING: f64 = 1.5;
/// How many more combinations of names get a simplex before the best is looked at closely.
const SKETCHES: usize = 1;
/// A name that costs this multiple of another is not tried again.
const HOPELESS: f64 = 1.3;
/// Names are gone through again where they have gained this.
const WORTH: f64 = 0.95;
/// Names that have lost are worth another look where all else has gained this.
const MUCH: f64 = 0.8;
/// Smaller gains than this neither keep a simplex going nor change a name: clocks are no better.
const CLEAR: f64 = 0.99;

pub(crate) struct NelderMead {
    pub seed: u64,
}

impl Search for NelderMead {
    fn explore(&self, ground: &Ground<'_>, ask: &mut Ask<'_>) -> Option<()> {
        let mut walk = Walk::new(ground.space, ask);
        let mut rng = Rng::new(self.seed);
        let mut start = ground.space.start();
        loop {
            // It has its simplex now, wherever names lead from there: else it would stay promising for ever.
            walk.done.insert(walk.names(&start));
            // Numbers first: many names only matter where something goes in tiles, and where it does they are few.
            let numbered = walk.simplex(&start, 0.5)?;
            let numbered = walk.further(&start, numbered)?;
            let named = walk.try_names(numbered)?;
            let mut best = walk.sketch(named)?;
            for _ in 0..SKETCHES {
                let Some(other) = walk.promising() else { break };
                let other = walk.sketch(other)?;
                if walk.cost(&other)? < walk.cost(&best)? {
                    best = other;
                }
            }
            walk.finish(best)?;
            start = walk.promising().unwrap_or_else(|| feasible(ground, &mut rng));
        }
    }
}

/// Single steps only, from where it starts: for many numbers of which each
/// matters little.
pub struct Nearby;

impl Search for Nearby {
    fn explore(&self, ground: &Ground<'_>, ask: &mut Ask<'_>) -> Option<()> {
        let start = ground.space.start();
        Walk::new(ground.space, ask).neighbours(start).map(drop)
    }
}

/// A random point that is feasible, as far as a few draws can tell.
fn feasible(ground: &Ground<'_>, rng: &mut Rng) -> Point {
    let draws: Vec<_> = (0..32).map(|_| ground.space.random(rng)).collect();
    let found = draws.iter().find(|point| (ground.predict)(point).is_finite());
    found.unwrap_or(&draws[0]).clone()
}

/// A search under way.
struct Walk<'a, 'b> {
    space: &'a Space,
    ask: &'a mut Ask<'b>,
    known: BTreeMap<Point, f64>,
    /// Combinations of names that have had a simplex.
    done: BTreeSet<Vec<usize>>,
    /// Names (parameter and rung) that were far worse than another once: not tried again.
    hopeless: BTreeSet<(usize, usize)>,
    /// Names that have lost since the best cost was this: not tried again before much is gained.
    lost: BTreeSet<(usize, usize)>,
    since: f64,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(space: &'a Space, ask: &'a mut Ask<'b>) -> Self {
        let (known, done) = (BTreeMap::new(), BTreeSet::new());
        let (hopeless, lost) = (BTreeSet::new(), BTreeSet::new());
        Walk { space, ask, known, done, hopeless, lost, since: f64::INFINITY }
    }
}

impl Walk<'_, '_> {
    /// Always asked: who answers remembers, and knows when nothing new is asked any more.
    fn cost(&mut self, point: &Point) -> Option<f64> {
        let cost = (self.ask)(point)?;
        self.known.insert(point.clone(), cost);
        Some(cost)
    }

    fn names(&self, point: &Point) -> Vec<usize> {
        self.space.axes(false).into_iter().map(|axis| point.0[axis]).collect()
    }

    /// The cheapest point whose combination of names has had no simplex yet.
    fn promising(&self) -> Option<Point> {
        let best = self.known.values().copied().fold(f64::INFINITY, f64::min);
        let open = self.known.iter().filter(|(point, _)| !self.done.contains(&self.names(point)));
        let (point, &cost) = open.min_by(|a, b| a.1.total_cmp(b.1))?;
        (cost < PROMISING * best).then(|| point.clone())
    }

    /// A wide simplex for the names of a point, and the names that suit where
    /// it ends: enough to see what a combination of names is worth.
    fn sketch(&mut self, start: Point) -> Option<Point> {
        self.done.insert(self.names(&start));
        let here = self.simplex(&start, 0.5)?;
        self.try_names(here)
    }

    /// From a good point down to one that neither names nor numbers improve.
    fn finish(&mut self, start: Point) -> Option<Point> {
        let mut here = start;
        let mut reach = 0.25;
        loop {
            let before = self.cost(&here)?;
            here = self.neighbours(here)?;
            here = self.simplex(&here, reach)?;
            here = self.try_names(here)?;
            if self.cost(&here)? >= before {
                return Some(here);
            }
            reach /= 2.0;
        }
    }

    /// Each name in turn, the others as they are, the best of each kept; over
    /// again as long as much is gained, since names depend on each other.
    fn try_names(&mut self, mut here: Point) -> Option<Point> {
        loop {
            let before = here.clone();
            let cost = self.cost(&here)?;
            if cost < MUCH * self.since {
                self.lost.clear();
                self.since = cost;
            }
            for axis in self.space.axes(false) {
                let from = here.clone();
                for rung in (0..self.space.rungs(axis)).filter(|rung| *rung != from.0[axis]) {
                    if self.hopeless.contains(&(axis, rung)) || self.lost.contains(&(axis, rung)) {
                        continue;
                    }
                    let mut point = from.clone();
                    point.0[axis] = rung;
                    let (cost, best) = (self.cost(&point)?, self.cost(&here)?);
                    if cost < CLEAR * best {
                        self.lost.insert((axis, here.0[axis]));
                        here = point;
                        continue;
                    }
                    self.lost.insert((axis, rung));
                    if cost > HOPELESS * best && cost.is_finite() {
                        self.hopeless.insert((axis, rung));
                    }
                }
            }
            // Not where both are infeasible either.
            let gained = self.cost(&here)? < WORTH * self.cost(&before)?;
            if !gained {
                return Some(here);
            }
        }
    }

    /// Single steps along each numbered axis, as long as they help: on a
    /// lattice a simplex may get stuck beside the minimum.
    fn neighbours(&mut self, mut here: Point) -> Option<Point> {
        let axes = self.space.axes(true);
        let mut at = 0;
        let mut useless = 0;
        while useless < axes.len() {
            let axis = axes[at % axes.len()];
            at += 1;
            useless += 1;
            for up in [true, false] {
                while let Some(next) = step(self.space, &here, axis, up)
                    && self.cost(&next)? < self.cost(&here)?
                {
                    here = next;
                    useless = 0;
                }
            }
        }
        Some(here)
    }

    /// Single steps on from where a simplex has come to, along each axis on which it has moved.
    fn further(&mut self, start: &Point, mut here: Point) -> Option<Point> {
        let from = here.clone();
        for axis in self.space.axes(true).into_iter().filter(|&axis| from.0[axis] != start.0[axis]) {
            while let Some(next) = step(self.space, &here, axis, from.0[axis] > start.0[axis])
                && self.cost(&next)? < self.cost(&here)?
            {
                here = next;
            }
        }
        Some(here)
    }

    /// The simplex, from around `start` until it has shrunk to a point; the
    /// best point seen.
    fn simplex(&mut self, start: &Point, reach: f64) -> Option<Point> {
        let axes = self.space.axes(true);
        let mut simplex = self.first_simplex(start, &axes, reach)?;
        let (mut best, mut useless) = (f64::INFINITY, 0);
        while useless <= axes.len() / 2 {
            simplex.sort_by(|a, b| a.cost.total_cmp(&b.cost));
            if extent(&simplex) < 1.0 {
                break;
            }
            useless += 1;
            if simplex[0].cost < CLEAR * best {
                (best, useless) = (simplex[0].cost, 0);
            }
            self.improve(&mut simplex, start, &axes)?;
        }
        let best = simplex.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let best = best.map_or(start.clone(), |corner| lattice(self.space, start, &axes, &corner.at));
        Some(if self.cost(&best)? < self.cost(start)? { best } else { start.clone() })
    }

    /// The start, and for each axis a point some rungs away on the roomier
    /// side; nearer, or on the other side, where that one is infeasible.
    fn first_simplex(&mut self, start: &Point, axes: &[usize], reach: f64) -> Option<Vec<Corner>> {
        let origin: Vec<f64> = axes.iter().map(|&axis| start.0[axis] as f64).collect();
        let mut simplex = vec![Corner { cost: self.cost(start)?, at: origin.clone() }];
        for (i, &axis) in axes.iter().enumerate() {
            let last = (self.space.rungs(axis) - 1) as f64;
            let step = (last * reach).round().max(1.0);
            let side = if origin[i] <= last / 2.0 { 1.0 } else { -1.0 };
            let mut corner = Corner { cost: f64::INFINITY, at: origin.clone() };
            for step in [side * step, -side * step, side, -side] {
                let rung = origin[i] + step;
                if corner.cost.is_infinite() && (0.0..=last).contains(&rung) {
                    corner.at[i] = rung;
                    corner.cost = self.cost(&lattice(self.space, start, axes, &corner.at))?;
                }
            }
            simplex.push(corner);
        }
        Some(simplex)
    }

    /// One move: the worst corner (the last) is reflected, and the simplex
    /// grows or shrinks by what is found there.
    fn improve(&mut self, simplex: &mut [Corner], start: &Point, axes: &[usize]) -> Option<()> {
        let worst = simplex.len() - 1;
        let centre: Vec<f64> = (0..axes.len())
            .map(|i| simplex[..worst].iter().map(|corner| corner.at[i]).sum::<f64>() / worst as f64)
            .collect();
        let along = |corner: &Corner, by: f64| -> Vec<f64> {
            let limit = |i: usize| (self.space.rungs(axes[i]) - 1) as f64;
            let moved = centre.iter().zip(&corner.at).map(|(c, w)| c + by * (w - c));
            moved.enumerate().map(|(i, x)| x.clamp(0.0, limit(i))).collect()
        };
        let reflected = along(&simplex[worst], -1.0);
        let expanded = along(&simplex[worst], -2.0);
        let (outside, inside) = (along(&simplex[worst], -0.5), along(&simplex[worst], 0.5));
        let corner = self.corner(start, axes, reflected)?;
        if corner.cost < simplex[0].cost {
            let further = self.corner(start, axes, expanded)?;
            simplex[worst] = if further.cost < corner.cost { further } else { corner };
        } else if corner.cost < simplex[worst.saturating_sub(1)].cost {
            simplex[worst] = corner;
        } else {
            let contracted = if corner.cost < simplex[worst].cost { outside } else { inside };
            let contracted = self.corner(start, axes, contracted)?;
            if contracted.cost < simplex[worst].cost.min(corner.cost) {
                simplex[worst] = contracted;
            } else {
                let best = simplex[0].at.clone();
                for other in &mut simplex[1..] {
                    let at = other.at.iter().zip(&best).map(|(x, b)| (x + b) / 2.0).collect();
                    *other = self.corner(start, axes, at)?;
                }
            }
        }
        Some(())
    }

    fn corner(&mut self, start: &Point, axes: &[usize], at: Vec<f64>) -> Option<Corner> {
        Some(Corner { cost: self.cost(&lattice(self.space, start, axes, &at))?, at })
    }
}

/// A corner of a simplex, in rungs.
struct Corner {
    at: Vec<f64>,
    cost: f64,
}

/// The longest side of the box around a simplex.
fn extent(simplex: &[Corner]) -> f64 {
    let side = |i: usize| {
        let all = simplex.iter().map(|corner| corner.at[i]);
        all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min)
    };
    (0..simplex[0].at.len()).map(side).fold(0.0, f64::max)
}

/// The lattice point nearest to `at`, with the names of `start`.
fn lattice(space: &Space, start: &Point, axes: &[usize], at: &[f64]) -> Point {
    let mut point = start.clone();
    for (&axis, &rung) in axes.iter().zip(at) {
        point.0[axis] = (rung.round().max(0.0) as usize).min(space.rungs(axis) - 1);
    }
    point
}

/// The neighbour on an axis, if there is one.
fn step(space: &Space, from: &Point, axis: usize, up: bool) -> Option<Point> {
    let rung = if up { from.0[axis] + 1 } else { from.0[axis].checked_sub(1)? };
    (rung < space.rungs(axis)).then(|| {
        let mut next = from.clone();
        next.0[axis] = rung;
        next
    })
}
