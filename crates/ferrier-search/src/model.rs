//! Search `model`: the model of the machine says where to look first; what is
//! measured corrects it.
//!
//! What is learned is the ratio of measured to predicted cost, by a Gaussian
//! process over the parameters. The next point is the one of which most
//! improvement is expected. Without a model of the machine the process learns
//! the cost itself.

use std::collections::HashSet;

use crate::gauss::Process;
use crate::rng::Rng;
use crate::search::{Ask, Ground, Search};
use crate::space::{Point, Space};

/// Points that are weighed before each trial.
const POOL: usize = 600;
/// Trials before the first are weighed.
const FIRST: usize = 8;
/// The latest and the best points that the process is made of.
const MOST: usize = 120;

pub(crate) struct Model {
    pub seed: u64,
}

impl Search for Model {
    fn explore(&self, ground: &Ground<'_>, ask: &mut Ask<'_>) -> Option<()> {
        let mut state = State {
            ground,
            rng: Rng::new(self.seed),
            seen: HashSet::new(),
            known: Vec::new(),
            scales: vec![0.4; ground.space.parameters().len()],
        };
        state.run(ground.space.start(), ask)?;
        for point in state.first_points() {
            state.run(point, ask)?;
        }
        while let Some(point) = state.next() {
            state.run(point, ask)?;
        }
        Some(())
    }
}

struct Known {
    point: Point,
    /// Logarithms of predicted and of measured cost.
    predicted: f64,
    measured: f64,
}

struct State<'a> {
    ground: &'a Ground<'a>,
    rng: Rng,
    seen: HashSet<Point>,
    known: Vec<Known>,
    scales: Vec<f64>,
}

impl State<'_> {
    fn run(&mut self, point: Point, ask: &mut Ask<'_>) -> Option<()> {
        self.seen.insert(point.clone());
        let predicted = (self.ground.predict)(&point);
        let cost = ask(&point)?;
        if cost.is_finite() && predicted.is_finite() {
            self.known.push(Known { point, predicted: predicted.ln(), measured: cost.ln() });
        }
        Some(())
    }

    /// Feasible points that were not asked for yet, with what they would cost
    /// by the model: all where they are few, else a sample and what lies
    /// around the best.
    fn pool(&mut self) -> Vec<(Point, f64)> {
        let space = self.ground.space;
        let mut points: Vec<Point> = match space.size() {
            size if size <= POOL => (0..size).map(|n| space.nth(n)).collect(),
            _ => (0..POOL / 2).map(|_| space.random(&mut self.rng)).collect(),
        };
        self.known.sort_by(|a, b| a.measured.total_cmp(&b.measured));
        let good: Vec<Point> = self.known.iter().take(3).map(|known| known.point.clone()).collect();
        for point in &good {
            points.extend(around(space, point));
            for _ in 0..POOL / 10 {
                points.push(mutated(space, point, &mut self.rng));
            }
        }
        let mut once = HashSet::new();
        points.retain(|point| !self.seen.contains(point) && once.insert(point.clone()));
        let costed = points.into_iter().map(|point| {
            let cost = (self.ground.predict)(&point);
            (point, cost)
        });
        costed.filter(|(_, cost)| cost.is_finite()).collect()
    }

    /// Half of them the best by the model, half of them anywhere.
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

    /// The point of which most improvement is expected; `None` when there is none left.
    fn next(&mut self) -> Option<Point> {
        let pool = self.pool();
        let space = self.ground.space;
        let used = &self.known[..self.known.len().min(MOST)];
        let points: Vec<Vec<f64>> = used.iter().map(|known| features(space, &known.point)).collect();
        let named: Vec<bool> = space.parameters().iter().map(|parameter| !parameter.is_ordered()).collect();
        let ratios: Vec<f64> = used.iter().map(|known| known.measured - known.predicted).collect();
        if points.len() < 2 {
            return pool.into_iter().next().map(|entry| entry.0);
        }
        let process = Process::fit(&points, &named, &ratios, self.scales.clone())?;
        self.scales = process.scales().to_vec();
        let best = used[0].measured;
        let gain = |(point, predicted): &(Point, f64)| {
            let (mean, sigma) = process.at(&features(space, point));
            expected_gain(best - mean - predicted.ln(), sigma)
        };
        let gains: Vec<f64> = pool.iter().map(gain).collect();
        let most = (0..pool.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]))?;
        Some(pool[most].0.clone())
    }
}

/// Expected improvement where `ahead` is how far below the best so far the
/// expected value lies, and `sigma` how unsure that is.
fn expected_gain(ahead: f64, sigma: f64) -> f64 {
    let z = ahead / sigma;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    ahead * normal(z) + sigma * density
}

/// The normal distribution function, to about 1e-4: enough to rank points.
fn normal(z: f64) -> f64 {
    let tail = 1.0 / (1.0 + (1.5976 * z.abs() + 0.070_565_992 * z.abs().powi(3)).exp());
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// A point as numbers between 0 and 1.
fn features(space: &Space, point: &Point) -> Vec<f64> {
    point.0.iter().enumerate().map(|(axis, &rung)| rung as f64 / (space.rungs(axis) - 1) as f64).collect()
}

/// All points that differ in one parameter, by a rung or by name.
fn around(space: &Space, point: &Point) -> Vec<Point> {
    let mut found = Vec::new();
    for (axis, parameter) in space.parameters().iter().enumerate() {
        let here = point.0[axis];
        let near = |rung: &usize| !parameter.is_ordered() || rung.abs_diff(here) == 1;
        for rung in (0..space.rungs(axis)).filter(|rung| *rung != here).filter(near) {
            let mut other = point.clone();
            other.0[axis] = rung;
            found.push(other);
        }
    }
    found
}

/// The point with one or two parameters drawn anew.
fn mutated(space: &Space, point: &Point, rng: &mut Rng) -> Point {
    let mut other = point.clone();
    for _ in 0..=rng.below(2) {
        let axis = rng.below(space.parameters().len());
        other.0[axis] = rng.below(space.rungs(axis));
    }
    other
}
