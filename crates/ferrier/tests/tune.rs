//! The searches on landscapes made up to be like the real one, and the tuner
//! on real transforms.

mod common;

use std::cell::RefCell;

use common::{MODES, Oracle, Run, exchanges};
use ferrier::tune::{
    Bench, Findings, Limits, METHODS, Options, Parameter, Point, Session, Space, Verdict, find, tune,
};
use ferrier::{Choice, Comm, Effort, Plan, Planner, Problem, Result};
use ferrier_test::cases::cases;
use ferrier_test::{Rng, watchdog};

/// Seconds at a point, without noise; infinite where it is infeasible.
type Cost = fn(&Space, &Point) -> f64;

/// A landscape and how unsteady its clock is.
struct Landscape {
    name: &'static str,
    space: fn() -> Space,
    cost: Cost,
    noise: f64,
}

fn number(space: &Space, point: &Point, name: &str) -> f64 {
    space.value(point, name).map_or(1.0, |value| value.number() as f64)
}

fn is(space: &Space, point: &Point, name: &str, value: &str) -> bool {
    space.value(point, name).is_some_and(|v| v.name() == value)
}

/// The space of a pipelined transform of 256^3.
fn pipeline() -> Space {
    Space::new([
        Parameter::category("exchange", ["all_to_allv", "point_to_point", "ring", "hierarchical"]),
        Parameter::category("cut", ["axis", "planes"]),
        Parameter::category("progress", ["polls", "thread"]),
        Parameter::log_scale("tiles", 1, 256).from(16),
        Parameter::linear("window", 1, 6).from(2),
        Parameter::log_scale("polls", 1, 128).from(2),
        Parameter::log_scale("pack", 1, 64).from(32),
        Parameter::log_scale("unpack", 1, 64).from(32),
    ])
    .rule(|space, point| {
        let (tile, window) = (number(space, point, "tiles"), number(space, point, "window"));
        if tile * window <= 256.0 { Ok(()) } else { Err("more tiles in flight than there are".into()) }
    })
    .rule(|space, point| {
        let (tile, pack) = (number(space, point, "tiles"), number(space, point, "pack"));
        if pack <= 4.0 * tile { Ok(()) } else { Err("blocks larger than a tile".into()) }
    })
}

/// Compute and flight that overlap as far as tiles, window and polls let them.
fn overlap(space: &Space, point: &Point) -> f64 {
    let get = |name| number(space, point, name);
    let tiles = (256.0 / get("tiles")).ceil();
    let valley = |name, best: f64, depth: f64| 1.0 + depth * (get(name) / best).log2().powi(2);
    let fused = if is(space, point, "cut", "planes") { 0.85 } else { 1.0 };
    let compute = 60.0 * fused * valley("pack", 8.0, 0.02) * valley("unpack", 16.0, 0.015);
    let exchange = ["all_to_allv", "point_to_point", "ring", "hierarchical"]
        .iter()
        .position(|name| is(space, point, "exchange", name))
        .unwrap_or(0);
    let flight = 50.0 * [1.15, 1.0, 0.95, 1.5][exchange] + 0.08 * tiles * [1.0, 2.0, 1.5, 3.0][exchange];
    let (polled, price) = match is(space, point, "progress", "thread") {
        true => (0.85, 0.12 * compute),
        false => {
            let polls = get("polls") * tiles;
            (polls / (polls + 200.0), 0.0008 * polls)
        }
    };
    let side = if is(space, point, "cut", "planes") { 0.6 } else { 1.0 };
    let hidden = side * polled * (1.0 - 0.5_f64.powf(get("window"))) * (1.0 - 1.0 / tiles);
    let overlapped = flight.min(compute * hidden);
    1e-3 * (compute + flight - overlapped + price)
}

/// Steps instead of slopes: caches hold a block or they do not.
fn plateaus(space: &Space, point: &Point) -> f64 {
    let get = |name| number(space, point, name);
    let step = |name, low: f64, high: f64| if (low..=high).contains(&get(name)) { 0.0 } else { 1.0 };
    let exchange = if is(space, point, "exchange", "ring") { 0.0 } else { 0.6 };
    1e-2 * (4.0
        + step("tiles", 8.0, 64.0)
        + step("pack", 4.0, 16.0)
        + 0.5 * step("unpack", 8.0, 64.0)
        + 0.5 * step("window", 2.0, 4.0)
        + exchange)
}

/// One number decides, the others do nothing.
fn single(space: &Space, point: &Point) -> f64 {
    1e-2 * (3.0 + (number(space, point, "polls") / 64.0).log2().powi(2))
}

/// Only names.
fn names() -> Space {
    Space::new([
        Parameter::category("exchange", ["direct", "all_to_allv", "all_to_all", "point_to_point"]),
        Parameter::category("kernel", ["native", "rustfft"]),
        Parameter::category("axes", ["auto", "0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"]),
        Parameter::category("grid", ["auto", "slab", "pencil", "2x6", "3x4", "4x3", "6x2"]),
        Parameter::category("fuse", ["auto", "yes", "no"]),
        Parameter::log_scale("threads", 1, 6).from(2),
    ])
}

fn choices(space: &Space, point: &Point) -> f64 {
    let pick = |name: &str, costs: &[f64]| {
        let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
        costs[point.0[at]]
    };
    let grid = pick("grid", &[1.1, 1.3, 1.1, 1.25, 1.0, 1.05, 1.4]);
    let axes = pick("axes", &[1.05, 1.2, 1.1, 1.15, 1.0, 1.3, 1.05]);
    let fuse = pick("fuse", &[1.0, 0.95, 1.15]);
    let threads = 1.0 + 0.05 * (number(space, point, "threads") / 4.0).log2().powi(2);
    let exchange = pick("exchange", &[1.0, 1.3, 1.5, 1.2]);
    // A good grid helps only where there are messages.
    let messages = if exchange == 1.0 { grid.sqrt() } else { grid * grid };
    0.02 * messages * axes * fuse * threads * exchange * pick("kernel", &[1.0, 1.6])
}

const LANDSCAPES: &[Landscape] = &[
    Landscape { name: "overlap", space: pipeline, cost: overlap, noise: 0.0 },
    Landscape { name: "overlap, noisy", space: pipeline, cost: overlap, noise: 0.03 },
    Landscape { name: "plateaus", space: pipeline, cost: plateaus, noise: 0.02 },
    Landscape { name: "one parameter", space: pipeline, cost: single, noise: 0.02 },
    Landscape { name: "names", space: names, cost: choices, noise: 0.02 },
];

/// A clock that is never quite right and sometimes quite wrong.
struct Made<'a> {
    space: &'a Space,
    cost: Cost,
    noise: f64,
    rng: RefCell<Rng>,
    /// Points that were run, in order.
    asked: Vec<Point>,
    runs: usize,
}

impl<'a> Made<'a> {
    fn new(space: &'a Space, cost: Cost, noise: f64, seed: u64) -> Self {
        Made { space, cost, noise, rng: RefCell::new(Rng::new(seed)), asked: Vec::new(), runs: 0 }
    }

    fn run(&mut self, point: &Point) -> f64 {
        assert!(self.space.check(point).is_ok(), "an infeasible point was run: {point:?}");
        self.runs += 1;
        let mut rng = self.rng.borrow_mut();
        let mut uniform = || rng.below(1 << 20) as f64 / f64::from(1 << 20);
        let bell = (0..6).map(|_| uniform() - 0.5).sum::<f64>() * 1.4;
        let spike = if self.noise > 0.0 && uniform() < 0.05 { 1.5 } else { 1.0 };
        (self.cost)(self.space, point) * (1.0 + self.noise * bell) * spike
    }
}

impl Bench for Made<'_> {
    fn trial(&mut self, point: &Point, runs: usize, limit: f64) -> Result<Vec<f64>> {
        assert!(!self.asked.contains(point), "a point was tried twice: {point:?}");
        self.asked.push(point.clone());
        let mut times: Vec<f64> = Vec::new();
        while times.len() < runs && times.last().is_none_or(|&last| last <= limit) {
            let time = self.run(point);
            times.push(time);
        }
        Ok(times)
    }

    fn duel(&mut self, one: &Point, other: &Point, rounds: usize) -> Result<[Vec<f64>; 2]> {
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            both[0].push(self.run(one));
            both[1].push(self.run(other));
        }
        Ok(both)
    }
}

fn search(space: &Space, made: &mut Made<'_>, method: &str, trials: usize, seed: u64) -> Findings {
    let limits = Limits { trials, ..Limits::default() };
    let method = find(method).unwrap();
    Session::new(space, made, limits, &mut |_| ()).run(&*method.searcher(seed)).unwrap()
}

/// The best of 200 random feasible points.
fn best_of_200(space: &Space, cost: Cost, seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut draw = || Point(space.parameters().iter().map(|p| rng.below(p.values().len())).collect());
    let feasible = std::iter::repeat_with(&mut draw).filter(|point| space.check(point).is_ok());
    feasible.take(200).map(|point| cost(space, &point)).fold(f64::INFINITY, f64::min)
}

#[test]
fn sixty_trials_come_within_5_percent_of_the_best_of_200() {
    let _watchdog = watchdog(300);
    let mut missed = Vec::new();
    for landscape in LANDSCAPES {
        let space = (landscape.space)();
        for method in METHODS.iter().map(|method| method.name) {
            let mut ratios = Vec::new();
            for seed in 1..=5 {
                let best = best_of_200(&space, landscape.cost, 1000 + seed);
                let mut made = Made::new(&space, landscape.cost, landscape.noise, seed);
                let found = search(&space, &mut made, method, 60, seed);
                assert!(found.measured <= 60 && made.asked.len() <= 60);
                ratios.push((landscape.cost)(&space, &found.point) / best);
            }
            println!("{:16} {method:12} {ratios:.3?}", landscape.name);
            // Random points are there to compare with, not to be good.
            if method != "random" && ratios.iter().any(|&ratio| ratio > 1.05) {
                missed.push(format!("{} on {}: {ratios:.3?}", method, landscape.name));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
