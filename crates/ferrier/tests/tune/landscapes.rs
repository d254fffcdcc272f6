//! Costs made up to be like those of real transforms.

use ferrier::tune::{Parameter, Point, Space};

/// Seconds at a point, without noise; infinite where it is infeasible.
pub type Cost = fn(&Space, &Point) -> f64;

/// A landscape and how unsteady its clock is.
pub struct Landscape {
    pub name: &'static str,
    pub space: fn() -> Space,
    pub cost: Cost,
    pub noise: f64,
    /// By how much the machine is slower at times.
    pub drift: f64,
}

pub fn number(space: &Space, point: &Point, name: &str) -> f64 {
    space.value(point, name).map_or(1.0, |value| value.number() as f64)
}

pub fn is(space: &Space, point: &Point, name: &str, value: &str) -> bool {
    space.value(point, name).is_some_and(|v| v.name() == value)
}

/// The space of a pipelined transform of 256^3.
pub fn pipeline() -> Space {
    Space::new([
        Parameter::category("exchange", ["all_to_allv", "point_to_point", "ring", "hierarchical"]),
        Parameter::category("cut", ["axis", "planes"]),
        Parameter::category("progress", ["polls", "thread"]),
        Parameter::log_scale("tiles", 1, 256).from(16),
        Parameter::linear("window", 1, 6).from(2),
        Parameter::log_scale("polls", 1, 128).from(8),
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
pub fn overlap(space: &Space, point: &Point) -> f64 {
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
    1e-2 * (3.0 + (number(space, point, "unpack") / 2.0).log2().powi(2))
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

/// What `ferrier tune` has to search between two ranks: the start is one tile, where half of the parameters say nothing.
pub fn wired() -> Space {
    Space::new([
        Parameter::category(
            "exchange",
            ["all_to_allv", "all_to_all", "point_to_point", "ring", "hierarchical"],
        ),
        Parameter::category("kernel", ["native", "rustfft"]),
        Parameter::category("axes", ["auto", "0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"]),
        Parameter::category("grid", ["auto", "slab", "pencil"]),
        Parameter::category("fuse", ["auto", "yes", "no"]),
        Parameter::category("stream", ["auto", "yes", "no"]),
        Parameter::category("pockets", ["auto", "yes", "no"]),
        Parameter::category("memory", ["fast", "small"]),
        Parameter::log_scale("ranks", 1, 2).from(2),
        Parameter::log_scale("tile", 1, 64).from(64),
        Parameter::log_scale("window", 1, 8).from(2),
        Parameter::log_scale("polls", 0, 128).from(8),
        Parameter::category("cut", ["auto", "0", "1", "2"]),
        Parameter::category("progress", ["poll", "thread"]),
    ])
}

pub fn wire(space: &Space, point: &Point) -> f64 {
    let pick = |name: &str, costs: &[f64]| {
        let at = space.parameters().iter().position(|p| p.name() == name).unwrap();
        costs[point.0[at]]
    };
    let get = |name| number(space, point, name);
    let tiles = (64.0 / get("tile")).ceil();
    let alone = if get("ranks") == 1.0 { 2.0 } else { 1.0 };
    let compute = 1.3
        * alone
        * pick("kernel", &[1.0, 1.5])
        * pick("axes", &[1.0, 1.1, 1.15, 1.1, 1.2, 1.1, 1.0])
        * pick("grid", &[1.0, 1.0, 1.05])
        * pick("fuse", &[1.0, 1.0, 1.1])
        * pick("stream", &[1.0, 1.15, 1.0])
        * pick("pockets", &[1.0, 1.1, 1.0])
        * pick("memory", &[1.0, 1.02]);
    let moved = pick("axes", &[1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 1.0]) * alone;
    let flight = 2.1 * moved * pick("exchange", &[1.0, 1.05, 1.0, 1.1, 1.0]);
    if tiles == 1.0 {
        return 1e-3 * (compute + flight);
    }
    let even = pick("cut", &[1.0, 0.6, 1.0, 0.5]);
    let thread = is(space, point, "progress", "thread");
    let (looked, price) = match thread {
        true => (0.9, 0.5 * compute),
        false => (1.0 - 0.4 / (1.0 + get("polls")), 4e-4 * tiles * get("polls")),
    };
    let hidden = even * looked * (1.0 - 1.0 / tiles) * (1.0 - 0.4_f64.powf(get("window")));
    1e-3 * (compute * (1.0 + 0.004 * tiles) + flight + 0.012 * tiles - flight.min(compute) * hidden + price)
}

pub const LANDSCAPES: &[Landscape] = &[
    Landscape { name: "wire", space: wired, cost: wire, noise: 0.0, drift: 0.0 },
    Landscape { name: "wire, drifting", space: wired, cost: wire, noise: 0.04, drift: 1.5 },
    Landscape { name: "overlap, drifting", space: pipeline, cost: overlap, noise: 0.03, drift: 1.0 },
    Landscape { name: "overlap", space: pipeline, cost: overlap, noise: 0.0, drift: 0.0 },
    Landscape { name: "overlap, noisy", space: pipeline, cost: overlap, noise: 0.03, drift: 0.0 },
    Landscape { name: "plateaus", space: pipeline, cost: plateaus, noise: 0.02, drift: 0.0 },
    Landscape { name: "one parameter", space: pipeline, cost: single, noise: 0.02, drift: 0.0 },
    Landscape { name: "names", space: names, cost: choices, noise: 0.02, drift: 0.0 },
];
