//! Search `model`: Bayesian optimisation with a cost model as prior mean.
//!
//! A Gaussian process over the parameters learns the ratio of measured to predicted cost. The next point is the one
//! of the highest expected improvement. Without a cost model the process learns the cost itself.

use std::collections::HashSet;

use crate::gauss::Process;
use crate::rng::Rng;
use crate::search::{Objective, Search, SearchInput};
use crate::space::{Point, Space};

/// Candidates for each trial.
const POOL: usize = 600;
/// Initial trials before the process is fitted.
const FIRST: usize = 8;
/// The largest number of measurements that the process is fitted to.
const MOST: usize = 120;

pub(crate) struct Model {
    pub seed: u64,
}

impl Search for Model {
    fn explore(&self, input: &SearchInput<'_>, objective: &mut Objective<'_>) -> Option<()> {
        let mut state = SearchState {
            input,
            rng: Rng::new(self.seed),
            seen: HashSet::new(),
            known: Vec::new(),
            scales: vec![0.4; input.space.parameters().len()],
        };
        state.run(input.space.start(), objective)?;
        for point in state.first_points() {
            state.run(point, objective)?;
        }
        while let Some(point) = state.next() {
            state.run(point, objective)?;
        }
        Some(())
    }
}

struct Measurement {
    point: Point,
    /// Logarithms of predicted and of measured cost.
    predicted: f64,
    measured: f64,
}

struct SearchState<'a> {
    input: &'a SearchInput<'a>,
    rng: Rng,
    seen: HashSet<Point>,
    known: Vec<Measurement>,
    scales: Vec<f64>,
}

impl SearchState<'_> {
    fn run(&mut self, point: Point, objective: &mut Objective<'_>) -> Option<()> {
        self.seen.insert(point.clone());
        let predicted = (self.input.predict)(&point);
        let cost = objective(&point)?;
        if cost.is_finite() && predicted.is_finite() {
            self.known.push(Measurement { point, predicted: predicted.ln(), measured: cost.ln() });
        }
        Some(())
    }

    /// Feasible points that were not evaluated yet, with their predicted costs: all points of a small space,
    /// otherwise a random sample and the neighbours of the best points.
    fn pool(&mut self) -> Vec<(Point, f64)> {
        let space = self.input.space;
        let mut points: Vec<Point> = match space.size() {
            size if size <= POOL => (0..size).map(|n| space.nth(n)).collect(),
            _ => (0..POOL / 2).map(|_| space.random(&mut self.rng)).collect(),
        };
        self.known.sort_by(|a, b| a.measured.total_cmp(&b.measured));
        let good: Vec<Point> = self.known.iter().take(3).map(|known| known.point.clone()).collect();
        for point in &good {
            points.extend(space.around(point));
            for _ in 0..POOL / 10 {
                points.push(mutated(space, point, &mut self.rng));
            }
        }
        let mut once = HashSet::new();
        points.retain(|point| !self.seen.contains(point) && once.insert(point.clone()));
        let costed = points.into_iter().map(|point| {
            let cost = (self.input.predict)(&point);
            (point, cost)
        });
        costed.filter(|(_, cost)| cost.is_finite()).collect()
    }

    /// Initial points: half of them the best by the cost model, half of them random.
    fn first_points(&mut self) -> Vec<Point> {
        let mut pool = self.pool();
        let spread = pool.iter().map(|entry| entry.1).fold(0.0, f64::max)
            > 1.01 * pool.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
        let mut first = Vec::new();
        if spread {
            pool.sort_by(|a, b| a.1.total_cmp(&b.1));
            first.extend(pool.iter().take(FIRST / 2).map(|entry| entry.0.clone()));
            pool.drain(..first.len());
        }
        while first.len() < FIRST && !pool.is_empty() {
            first.push(pool.swap_remove(self.rng.below(pool.len())).0);
        }
        first
    }

    /// The point of the highest expected improvement; `None` if no candidate is left.
    fn next(&mut self) -> Option<Point> {
        let pool = self.pool();
        let space = self.input.space;
        let used = &self.known[..self.known.len().min(MOST)];
        let points: Vec<Vec<f64>> = used.iter().map(|known| features(space, &known.point)).collect();
        let categorical: Vec<bool> =
            space.parameters().iter().map(|parameter| !parameter.is_ordered()).collect();
        let ratios: Vec<f64> = used.iter().map(|known| known.measured - known.predicted).collect();
        if points.len() < 2 {
            return pool.into_iter().next().map(|entry| entry.0);
        }
        let process = Process::fit(&points, &categorical, &ratios, self.scales.clone())?;
        self.scales = process.scales().to_vec();
        let best = used[0].measured;
        let gain = |(point, predicted): &(Point, f64)| {
            let (mean, sigma) = process.at(&features(space, point));
            expected_improvement(best - mean - predicted.ln(), sigma)
        };
        let gains: Vec<f64> = pool.iter().map(gain).collect();
        let most = (0..pool.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]))?;
        Some(pool[most].0.clone())
    }
}

/// Expected improvement for a predicted mean `ahead` below the best cost and a standard deviation `sigma`.
fn expected_improvement(ahead: f64, sigma: f64) -> f64 {
    let z = ahead / sigma;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    ahead * normal(z) + sigma * density
}

/// The normal distribution function, accurate to about 1e-4: enough to rank points.
fn normal(z: f64) -> f64 {
    let tail = 1.0 / (1.0 + (1.5976 * z.abs() + 0.070_565_992 * z.abs().powi(3)).exp());
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// A point scaled to the unit cube.
fn features(space: &Space, point: &Point) -> Vec<f64> {
    point.0.iter().enumerate().map(|(axis, &level)| level as f64 / (space.levels(axis) - 1) as f64).collect()
}

/// The point with one or two parameters drawn at random.
fn mutated(space: &Space, point: &Point, rng: &mut Rng) -> Point {
    let mut other = point.clone();
    for _ in 0..=rng.below(2) {
        let axis = rng.below(space.parameters().len());
        other.0[axis] = rng.below(space.levels(axis));
    }
    other
}
