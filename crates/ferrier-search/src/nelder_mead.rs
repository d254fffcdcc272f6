//! Search `nelder-mead`: the simplex of Nelder and Mead on a lattice.
//!
//! The simplex moves in the space of levels, so that a step of a log-scale parameter is a factor, and is evaluated at
//! the nearest lattice point. Categorical parameters are varied one at a time, and each promising combination of
//! categories gets a simplex of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::leading::leading;
use crate::rng::Rng;
use crate::search::{Objective, Search, SearchInput};
use crate::space::{Point, Space};

/// A combination of categories is promising up to this multiple of the best cost.
const PROMISING: f64 = 1.5;
/// Further combinations of categories that get a coarse search before the best one is refined.
const COARSE_SEARCHES: usize = 1;
/// A category that costs this multiple of another one is not tried again.
const HOPELESS: f64 = 1.3;
/// Categories are varied again after an improvement to this fraction of the cost.
const REPEAT: f64 = 0.95;
/// Rejected categories are tried again after the best cost has improved to this fraction.
const RETRY: f64 = 0.8;
/// Improvements must reach this fraction of the cost to count: smaller ones are within the measurement noise.
const SIGNIFICANT: f64 = 0.99;

/// Points of the cost model that are evaluated first.
const LEADING: usize = 8;

pub(crate) struct NelderMead {
    pub seed: u64,
}

impl Search for NelderMead {
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()> {
        let mut state = SearchState::new(input.space, objective);
        let mut rng = Rng::new(self.seed);
        let mut start = input.space.start();
        let mut least = state.cost(&start)?;
        // The fastest points of the cost model come first, so that a short search finds them.
        for point in leading(input, LEADING) {
            let cost = state.cost(&point)?;
            if cost < SIGNIFICANT * least {
                (start, least) = (point, cost);
            }
        }
        // Numbers alone: most of them matter little, and single steps find out which in fewer trials than a simplex.
        if input.space.axes(false).is_empty() {
            start = state.neighbours(start)?;
        }
        loop {
            // Marked before the categories change, otherwise this combination would stay promising.
            state.done.insert(state.categories(&start));
            // Ordered parameters first: many categories only matter with tiles.
            let numbered = state.simplex(&start, 0.5)?;
            let numbered = state.extend(&start, numbered)?;
            let named = state.vary_categories(numbered)?;
            let mut best = state.coarse(named)?;
            for _ in 0..COARSE_SEARCHES {
                let Some(other) = state.promising() else { break };
                let other = state.coarse(other)?;
                if state.cost(&other)? < state.cost(&best)? {
                    best = other;
                }
            }
            state.refine(best)?;
            start = state.promising().unwrap_or_else(|| feasible(input, &mut rng));
        }
    }
}

/// The plain method, as the literature describes it for transforms: the start and one neighbour of it for each
/// number are the first simplex, and the search ends when it has shrunk to a point.
pub(crate) struct Simplex;

impl Search for Simplex {
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()> {
        SearchState::new(input.space, objective).simplex(&input.space.start(), 0.0).map(drop)
    }
}

/// Coordinate descent by single steps from the start point: for many ordered parameters of little influence.
#[derive(Clone, Copy, Debug)]
pub struct CoordinateDescent;

impl Search for CoordinateDescent {
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()> {
        let start = input.space.start();
        SearchState::new(input.space, objective).neighbours(start).map(drop)
    }
}

/// A random point, feasible if one of 32 draws is.
fn feasible(input: &SearchInput<'_>, rng: &mut Rng) -> Point {
    let draws: Vec<_> = (0..32).map(|_| input.space.random(rng)).collect();
    let found = draws.iter().find(|point| (input.predict)(point).is_finite());
    found.unwrap_or(&draws[0]).clone()
}

/// The state of a search.
struct SearchState<'a, 'b> {
    space: &'a Space,
    objective: &'a mut Objective<'b>,
    known: BTreeMap<Point, f64>,
    /// Combinations of categories that have had a simplex.
    done: BTreeSet<Vec<usize>>,
    /// Categories (parameter and level) that were far worse than another one: not tried again.
    hopeless: BTreeSet<(usize, usize)>,
    /// Categories rejected since `reference`.
    rejected: BTreeSet<(usize, usize)>,
    /// The cost at which `rejected` was last cleared.
    reference: f64,
}

impl<'a, 'b> SearchState<'a, 'b> {
    fn new(space: &'a Space, objective: &'a mut Objective<'b>) -> Self {
        let (known, done) = (BTreeMap::new(), BTreeSet::new());
        let (hopeless, rejected) = (BTreeSet::new(), BTreeSet::new());
        SearchState { space, objective, known, done, hopeless, rejected, reference: f64::INFINITY }
    }
}

impl SearchState<'_, '_> {
    /// Always evaluates the objective: the session caches costs, and stops a search that proposes nothing new.
    fn cost(&mut self, point: &Point) -> Option<f64> {
        let cost = (self.objective)(point)?;
        self.known.insert(point.clone(), cost);
        Some(cost)
    }

    fn categories(&self, point: &Point) -> Vec<usize> {
        self.space.axes(false).into_iter().map(|axis| point.0[axis]).collect()
    }

    /// The cheapest point whose combination of categories has had no simplex yet.
    fn promising(&self) -> Option<Point> {
        let best = self.known.values().copied().fold(f64::INFINITY, f64::min);
        let open = self.known.iter().filter(|(point, _)| !self.done.contains(&self.categories(point)));
        let (point, &cost) = open.min_by(|a, b| a.1.total_cmp(b.1))?;
        (cost < PROMISING * best).then(|| point.clone())
    }

    /// A coarse search: a wide simplex for the categories of a point, then one variation of the categories.
    fn coarse(&mut self, start: Point) -> Option<Point> {
        self.done.insert(self.categories(&start));
        let here = self.simplex(&start, 0.5)?;
        self.vary_categories(here)
    }

    /// Descends to a point that no single change improves.
    fn refine(&mut self, start: Point) -> Option<Point> {
        let mut here = start;
        let mut reach = 0.25;
        loop {
            let before = self.cost(&here)?;
            here = self.neighbours(here)?;
            here = self.simplex(&here, reach)?;
            here = self.vary_categories(here)?;
            if self.cost(&here)? >= before {
                return Some(here);
            }
            reach /= 2.0;
        }
    }

    /// Varies one categorical parameter at a time and keeps the best; repeats while the improvement is large, since
    /// parameters interact.
    fn vary_categories(&mut self, mut here: Point) -> Option<Point> {
        loop {
            let before = here.clone();
            let cost = self.cost(&here)?;
            if cost < RETRY * self.reference {
                self.rejected.clear();
                self.reference = cost;
            }
            for axis in self.space.axes(false) {
                let from = here.clone();
                for level in (0..self.space.levels(axis)).filter(|level| *level != from.0[axis]) {
                    if self.hopeless.contains(&(axis, level)) || self.rejected.contains(&(axis, level)) {
                        continue;
                    }
                    let mut point = from.clone();
                    point.0[axis] = level;
                    let (cost, best) = (self.cost(&point)?, self.cost(&here)?);
                    if cost < SIGNIFICANT * best {
                        self.rejected.insert((axis, here.0[axis]));
                        here = point;
                        continue;
                    }
                    self.rejected.insert((axis, level));
                    if cost > HOPELESS * best && cost.is_finite() {
                        self.hopeless.insert((axis, level));
                    }
                }
            }
            // False if both are infeasible.
            let gained = self.cost(&here)? < REPEAT * self.cost(&before)?;
            if !gained {
                return Some(here);
            }
        }
    }

    /// Single steps along each ordered axis while they improve: on a lattice a simplex may stop beside the
    /// minimum.
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

    /// Continues from the result of a simplex by single steps along each axis on which it moved.
    fn extend(&mut self, start: &Point, mut here: Point) -> Option<Point> {
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

    /// Runs a simplex around `start` until it has shrunk to a point; returns the best point.
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
            if simplex[0].cost < SIGNIFICANT * best {
                (best, useless) = (simplex[0].cost, 0);
            }
            self.improve(&mut simplex, start, &axes)?;
        }
        let best = simplex.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let best = best.map_or(start.clone(), |vertex| lattice(self.space, start, &axes, &vertex.at));
        Some(if self.cost(&best)? < self.cost(start)? { best } else { start.clone() })
    }

    /// The start, and for each axis a point some levels away on the side with more levels; nearer, or on the other
    /// side, if that point is infeasible.
    fn first_simplex(&mut self, start: &Point, axes: &[usize], reach: f64) -> Option<Vec<Vertex>> {
        let origin: Vec<f64> = axes.iter().map(|&axis| start.0[axis] as f64).collect();
        let mut simplex = vec![Vertex { cost: self.cost(start)?, at: origin.clone() }];
        for (i, &axis) in axes.iter().enumerate() {
            let last = (self.space.levels(axis) - 1) as f64;
            let step = (last * reach).round().max(1.0);
            let side = if origin[i] <= last / 2.0 { 1.0 } else { -1.0 };
            let mut vertex = Vertex { cost: f64::INFINITY, at: origin.clone() };
            for step in [side * step, -side * step, side, -side] {
                let level = origin[i] + step;
                if vertex.cost.is_infinite() && (0.0..=last).contains(&level) {
                    vertex.at[i] = level;
                    vertex.cost = self.cost(&lattice(self.space, start, axes, &vertex.at))?;
                }
            }
            simplex.push(vertex);
        }
        Some(simplex)
    }

    /// One iteration: reflects the worst vertex (the last), then expands, contracts or shrinks the simplex.
    fn improve(&mut self, simplex: &mut [Vertex], start: &Point, axes: &[usize]) -> Option<()> {
        let worst = simplex.len() - 1;
        let centre: Vec<f64> = (0..axes.len())
            .map(|i| simplex[..worst].iter().map(|vertex| vertex.at[i]).sum::<f64>() / worst as f64)
            .collect();
        let along = |vertex: &Vertex, by: f64| -> Vec<f64> {
            let limit = |i: usize| (self.space.levels(axes[i]) - 1) as f64;
            let moved = centre.iter().zip(&vertex.at).map(|(c, w)| c + by * (w - c));
            moved.enumerate().map(|(i, x)| x.clamp(0.0, limit(i))).collect()
        };
        let reflected = along(&simplex[worst], -1.0);
        let expanded = along(&simplex[worst], -2.0);
        let (outside, inside) = (along(&simplex[worst], -0.5), along(&simplex[worst], 0.5));
        let vertex = self.vertex(start, axes, reflected)?;
        if vertex.cost < simplex[0].cost {
            let further = self.vertex(start, axes, expanded)?;
            simplex[worst] = if further.cost < vertex.cost { further } else { vertex };
        } else if vertex.cost < simplex[worst.saturating_sub(1)].cost {
            simplex[worst] = vertex;
        } else {
            let contracted = if vertex.cost < simplex[worst].cost { outside } else { inside };
            let contracted = self.vertex(start, axes, contracted)?;
            if contracted.cost < simplex[worst].cost.min(vertex.cost) {
                simplex[worst] = contracted;
            } else {
                let best = simplex[0].at.clone();
                for other in &mut simplex[1..] {
                    let at = other.at.iter().zip(&best).map(|(x, b)| (x + b) / 2.0).collect();
                    *other = self.vertex(start, axes, at)?;
                }
            }
        }
        Some(())
    }

    fn vertex(&mut self, start: &Point, axes: &[usize], at: Vec<f64>) -> Option<Vertex> {
        Some(Vertex { cost: self.cost(&lattice(self.space, start, axes, &at))?, at })
    }
}

/// A vertex of a simplex, in levels.
struct Vertex {
    at: Vec<f64>,
    cost: f64,
}

/// The longest side of the box around a simplex.
fn extent(simplex: &[Vertex]) -> f64 {
    let side = |i: usize| {
        let all = simplex.iter().map(|vertex| vertex.at[i]);
        all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min)
    };
    (0..simplex[0].at.len()).map(side).fold(0.0, f64::max)
}

/// The lattice point nearest to `at`, with the categories of `start`.
fn lattice(space: &Space, start: &Point, axes: &[usize], at: &[f64]) -> Point {
    let mut point = start.clone();
    for (&axis, &level) in axes.iter().zip(at) {
        point.0[axis] = (level.round().max(0.0) as usize).min(space.levels(axis) - 1);
    }
    point
}

/// The neighbour on an axis, if there is one.
fn step(space: &Space, from: &Point, axis: usize, up: bool) -> Option<Point> {
    let level = if up { from.0[axis] + 1 } else { from.0[axis].checked_sub(1)? };
    (level < space.levels(axis)).then(|| {
        let mut next = from.clone();
        next.0[axis] = level;
        next
    })
}
