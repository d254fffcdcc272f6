//! `ferrier bench` with lists of tiles: every combination, a table, a drawing.

use ferrier::Tiling;
use serde::Serialize;

use crate::bench::Times;
use crate::blocks::{self, Split};
use crate::chart::Chart;
use crate::contender::Timed;
use crate::report::{self, digits};

/// One combination; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct Point {
    tiles: usize,
    window: usize,
    polls: usize,
    /// The user's axis; null: the planner's.
    cut: Option<usize>,
    #[serde(flatten)]
    times: Times,
    backward: Times,
    #[serde(flatten)]
    split: Split,
}

/// What is told of each; axes are counted as the user does.
pub fn points(tilings: &[Tiling], timed: &[Timed], ndim: usize) -> Vec<Point> {
    let point = |(tiling, timed): (&Tiling, &Timed)| Point {
        tiles: tiling.tile,
        window: tiling.window,
        polls: tiling.polls,
        cut: tiling.cut.map(|axis| axis + ndim - 3),
        times: Times::new(&timed.forward),
        backward: Times::new(&timed.backward),
        split: blocks::split(&timed.events, timed.typical_ms),
    };
    tilings.iter().zip(timed).map(point).collect()
}

fn cut(point: &Point) -> String {
    point.cut.map_or("auto".into(), |axis| axis.to_string())
}

/// For people.
pub fn text(points: &[Point]) -> String {
    let row = |point: &Point| {
        let whole = if point.tiles == 0 { "0 (one)".into() } else { point.tiles.to_string() };
        let mut row = vec![whole, point.window.to_string(), point.polls.to_string(), cut(point)];
        let Split { compute_ms, wait_ms, .. } = point.split;
        let Times { best_ms, median_ms } = point.times;
        row.extend([best_ms, median_ms, point.backward.median_ms, compute_ms, wait_ms].map(digits));
        row
    };
    let rows: Vec<_> = points.iter().map(row).collect();
    let heads =
        ["tiles", "window", "polls", "cut", "best ms", "median ms", "backward ms", "compute ms", "wait ms"];
    report::columns(&heads, &rows)
}

/// Time against the length of a tile, a line for each of the rest.
pub fn svg(points: &[Point], title: String, longest: usize) -> String {
    let mut chart = Chart::new(title, "indices in a tile", "ms, median");
    let name = |point: &Point| format!("window {}, polls {}, cut {}", point.window, point.polls, cut(point));
    let mut names: Vec<String> = points.iter().map(name).collect();
    names.dedup();
    for line in names {
        let own = points.iter().filter(|point| name(point) == line);
        // A single tile is as long as the axis.
        let across = |point: &Point| if point.tiles == 0 { longest } else { point.tiles } as f64;
        let mut places: Vec<_> = own.map(|point| (across(point), point.times.median_ms)).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.line(&line, places);
    }
    chart.svg(|tile| format!("{tile}"))
}
