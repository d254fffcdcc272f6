//! Every combination of several tile sizes, windows, polls and cuts: a table and a chart.

use ferrier::Tiling;
use serde::Serialize;

use super::breakdown::{ComputeSplit, split};
use super::results::CandidateResult;
use crate::charts::chart::Chart;
use crate::table::{columns, digits, distinct};
use crate::timing::Times;

/// One combination; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct SweepPoint {
    tiles: usize,
    window: usize,
    polls: usize,
    /// The user's axis; null: chosen by the planner.
    cut: Option<usize>,
    #[serde(flatten)]
    times: Times,
    backward: Times,
    #[serde(flatten)]
    split: ComputeSplit,
}

/// A point for each tiling. `ndim` is the number of axes that the user has.
pub fn points(tilings: &[Tiling], candidates: &[CandidateResult], ndim: usize) -> Vec<SweepPoint> {
    let point = |(tiling, candidate): (&Tiling, &CandidateResult)| SweepPoint {
        tiles: tiling.tile,
        window: tiling.window,
        polls: tiling.polls,
        cut: tiling.cut.map(|axis| axis + ndim - 3),
        times: Times::new(&candidate.forward),
        backward: Times::new(&candidate.backward),
        split: split(&candidate.traced[0].events, candidate.typical_ms),
    };
    tilings.iter().zip(candidates).map(point).collect()
}

fn cut(point: &SweepPoint) -> String {
    point.cut.map_or("auto".into(), |axis| axis.to_string())
}

/// A table of a sweep.
pub fn text(points: &[SweepPoint]) -> String {
    let row = |point: &SweepPoint| {
        let whole = if point.tiles == 0 { "0 (one)".into() } else { point.tiles.to_string() };
        let mut row = vec![whole, point.window.to_string(), point.polls.to_string(), cut(point)];
        let ComputeSplit { compute_ms, wait_ms, .. } = point.split;
        let Times { best_ms, median_ms } = point.times;
        row.extend([best_ms, median_ms, point.backward.median_ms, compute_ms, wait_ms].map(digits));
        row
    };
    let heads =
        ["tiles", "window", "polls", "cut", "best ms", "median ms", "backward ms", "compute ms", "wait ms"];
    columns(&heads, points.iter().map(row))
}

/// A chart of time against the length of a tile, with a line for each window, polls and cut.
pub fn svg(points: &[SweepPoint], title: String, longest: usize) -> String {
    let mut chart = Chart::new(title, "indices in a tile", "ms, median");
    let name =
        |point: &SweepPoint| format!("window {}, polls {}, cut {}", point.window, point.polls, cut(point));
    for line in distinct(points.iter().map(name)) {
        let own = points.iter().filter(|point| name(point) == line);
        // One tile is as long as the axis.
        let across = |point: &SweepPoint| if point.tiles == 0 { longest } else { point.tiles } as f64;
        let mut places: Vec<_> = own.map(|point| (across(point), point.times.median_ms)).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.line(&line, places);
    }
    chart.svg(|tile| format!("{tile}"))
}
