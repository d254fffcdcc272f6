//! The report of a contest, as JSON and as text.

use ferrier::codec::RAW;
use serde::Serialize;

use super::breakdown::{self, BreakdownRow, breakdown};
use super::measure::Comparison;
use super::options::{ContestOptions, Labels};
use super::results::{CandidateResult, ContestResult, PeerResult, StepReport};
use super::sweep::{self, SweepPoint};
use super::variants::{self, VariantReport};
use crate::agree::RankGroup;
use crate::failure::{Outcome, fail};
use crate::table::{bytes, columns, digits, notes_text, pairs, plural, shape_text, wisdom_line};
use crate::tiling::{is_tiled, overlap_text};
use crate::timing::Times;

/// A peer in the same run.
#[derive(Debug, Serialize)]
struct PeerReport<'a> {
    #[serde(flatten)]
    peer: &'a PeerResult,
    /// Times of the faster plan.
    #[serde(flatten)]
    times: Times,
    /// The peer's median over Ferrier's.
    ratio: f64,
}

/// The report of a contest; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct BenchReport<'a> {
    #[serde(flatten)]
    labels: &'a Labels,
    /// `f32` or `f64`.
    precision: &'static str,
    #[serde(flatten)]
    result: &'a ContestResult,
    /// Number of arrays.
    batch: usize,
    /// Did transforms run in place?
    in_place: bool,
    /// Timed repetitions.
    repeat: usize,
    /// Times of forward transforms.
    forward: Times,
    /// Times of backward transforms.
    backward: Times,
    /// Speed of forward transforms.
    gflops: f64,
    #[serde(flatten)]
    fastest: &'a CandidateResult,
    /// Copy speed of the memory.
    copy_gb_s: f64,
    /// Time of three passes at the copy speed over the time of the transform.
    limit_fraction: f64,
    /// The time by kinds of work, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    breakdown: Vec<BreakdownRow>,
    /// The same for the backward transform.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    breakdown_backward: Vec<BreakdownRow>,
    /// The points of a sweep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<SweepPoint>,
    /// The variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variants: Vec<VariantReport<'a>>,
    /// The wait that `new` saves over that which could be saved: see [`variants::hidden_fraction`].
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_fraction: Option<f64>,
    /// The peers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    peers: Vec<PeerReport<'a>>,
}

impl<'a> BenchReport<'a> {
    /// The report of the fastest candidate. `with_breakdown`: with the time by kinds of work.
    ///
    /// # Errors
    /// There is no candidate.
    pub fn new(
        options: &'a ContestOptions<'_>,
        comparison: &Comparison,
        result: &'a ContestResult,
        copy_gb_s: f64,
        with_breakdown: bool,
    ) -> Outcome<BenchReport<'a>> {
        let problem = &options.peer_problem;
        let Some(fastest) = result.fastest() else { return fail("nothing was measured") };
        let forward = Times::new(&fastest.forward);
        let (mut sweep, mut variants) = (Vec::new(), Vec::new());
        match comparison {
            Comparison::One(_) | Comparison::Tuned(_) | Comparison::Several(_) => {}
            Comparison::Sweep(_, tilings, _) => {
                sweep = sweep::points(tilings, &result.candidates, problem.ndim);
            }
            Comparison::Variants(_, entries, _) => {
                variants = variants::reports(entries, &result.candidates, &result.tunings);
            }
        }
        let [there, back] = fastest.traced.each_ref().map(|traced| match with_breakdown {
            true => breakdown(traced),
            false => Vec::new(),
        });
        let (array_bytes, flops) = (problem.input_bytes() as f64, problem.flops());
        let seconds = forward.median_ms / 1e3;
        let peers = result.peers.iter().map(|peer| {
            let times = Times::new(&peer.seconds);
            PeerReport { peer, times, ratio: times.median_ms / forward.median_ms }
        });
        Ok(BenchReport {
            labels: &options.labels,
            precision: problem.precision.name(),
            result,
            batch: problem.batch,
            in_place: options.in_place,
            repeat: fastest.forward.len(),
            forward,
            backward: Times::new(&fastest.backward),
            gflops: flops / seconds / 1e9,
            fastest,
            copy_gb_s,
            limit_fraction: 3.0 * 2.0 * array_bytes / (copy_gb_s * 1e9) / seconds,
            breakdown: there,
            breakdown_backward: back,
            sweep,
            hidden_fraction: variants::hidden_fraction(&variants),
            variants,
            peers: peers.collect(),
        })
    }

    /// Variants and peers: name, times, milliseconds of planning, seconds of tuning.
    pub fn others(&self) -> Vec<(String, Times, Option<f64>, Option<f64>)> {
        let peers = self.peers.iter();
        let peers = peers.map(|peer| (peer.peer.name.into(), peer.times, Some(peer.peer.planning_ms), None));
        self.variants.iter().map(VariantReport::summary).chain(peers).collect()
    }

    /// A chart of the sweep, as SVG; `None` if there is no sweep.
    pub fn sweep_svg(&self, title: String) -> Option<String> {
        let longest = self.labels.shape.iter().copied().max().unwrap_or(1);
        (!self.sweep.is_empty()).then(|| sweep::svg(&self.sweep, title, longest))
    }

    /// The report as text. `profile`: with a table of the steps.
    pub fn text(&self, profile: bool) -> String {
        let mut out = self.heading();
        let (fastest, ndim) = (self.fastest, self.labels.shape.len());
        if !self.sweep.is_empty() {
            out += &format!("{}\nthe fastest:\n", sweep::text(&self.sweep));
        }
        if !self.variants.is_empty() {
            out += &format!("{}\nthe fastest:\n", variants::text(&self.variants, ndim));
        }
        out += &self.times_table();
        out.push('\n');
        let limit = 100.0 * self.limit_fraction;
        let bound = match fastest.error_bound > 0.0 {
            true => format!(" (at most {:.1e})", fastest.error_bound),
            false => String::new(),
        };
        let mut rows = vec![
            ("speed", format!("{} GFlop/s", digits(self.gflops))),
            ("of the memory limit", format!("{limit:.0} % (3 passes at {} GB/s)", digits(self.copy_gb_s))),
            ("error, round trip", error_text(fastest.error_l2)),
            ("error, spectrum", format!("{:.2e}{bound}", fastest.error_forward)),
            ("memory per rank", bytes(fastest.memory)),
            ("between ranks", bytes(fastest.wire_bytes)),
        ];
        if is_tiled(&fastest.overlap) {
            rows.push(("tiles", overlap_text(&fastest.overlap, ndim)));
        }
        if let ([tuning], true) = (&self.result.tunings[..], self.variants.is_empty()) {
            rows.push(("tuning of tiles", format!("{} s", digits(tuning.seconds))));
        }
        rows.push(("planning", format!("{} ms", digits(fastest.planning_ms))));
        out += &pairs(&rows);
        out += &wisdom_line(fastest.wisdom.as_ref());
        if let Some((prediction, origin)) = &fastest.prediction {
            out += &format!("\n{}", self.prediction_table(prediction.seconds() * 1e3));
            out += &format!("predicted with {origin}\n");
        }
        if profile {
            out += &format!("\n{}", self.profile_table());
        }
        if !self.breakdown.is_empty() {
            out += &format!("\nforward\n{}", breakdown::text(&self.breakdown));
            out += &format!("\nbackward\n{}", breakdown::text(&self.breakdown_backward));
        }
        out
    }

    /// The transform, the GPU and the notes.
    fn heading(&self) -> String {
        let Labels { shape, kind, wire, in_layout, out_layout, .. } = self.labels;
        let CandidateResult { exchange, codec, kernel, notes, .. } = self.fastest;
        let (RankGroup { ranks, nodes, threads, .. }, gpu) = (self.result.group, &self.result.gpu);
        let batch = if self.batch == 1 { String::new() } else { format!(", batch {}", self.batch) };
        let in_place = if self.in_place { ", in place" } else { "" };
        let wire = wire.as_ref().map_or(String::new(), |wire| format!(", wire {wire}"));
        let codec = if codec == RAW { String::new() } else { format!(", codec {codec}") };
        let nodes = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
        let (shape, precision) = (shape_text(shape), self.precision);
        let (ranks, threads) = (plural(ranks, "rank"), plural(threads, "thread"));
        let mut out =
            format!("{shape} {kind} {precision}{batch}{in_place}: {ranks}{nodes} of {threads}{wire}, ");
        out += &format!("exchange {exchange}{codec}, kernel {kernel}, {in_layout} in, {out_layout} out\n");
        if let Some(gpu) = gpu {
            out += &format!("on {gpu}, timed by GPU events\n");
        }
        out += &notes_text(notes);
        out.push('\n');
        out
    }

    /// Times of both directions and of the peers.
    fn times_table(&self) -> String {
        let row = |name: String, times: Times, ratio: Option<f64>| {
            vec![name, digits(times.best_ms), digits(times.median_ms), ratio.map_or(String::new(), digits)]
        };
        let base = (!self.peers.is_empty()).then_some(1.0);
        let mut rows =
            vec![row("forward".into(), self.forward, base), row("backward".into(), self.backward, None)];
        for PeerReport { peer, times, ratio } in &self.peers {
            let name = format!("{} ({}, {})", peer.name, peer.version, peer.placement);
            let mut row = row(name, *times, Some(*ratio));
            row.push(digits(peer.planning_ms / 1e3));
            rows.push(row);
        }
        if base.is_some() {
            rows[0].push(digits(self.fastest.planning_ms / 1e3));
        }
        let heads = ["", "best ms", "median ms", "ratio", "planning s"];
        columns(if base.is_none() { &heads[..3] } else { &heads }, rows)
    }

    /// Per step: predicted and measured time, and their ratio.
    fn prediction_table(&self, total_ms: f64) -> String {
        let row = |name: &str, predicted: Option<f64>, measured: f64| {
            let shown = |value: Option<f64>| value.map_or("-".into(), digits);
            let ratio = predicted.map(|predicted| predicted / measured);
            vec![name.to_string(), shown(predicted), digits(measured), shown(ratio)]
        };
        let steps = self.fastest.steps.iter();
        let steps = steps.map(|step| row(&step.time.name, step.predicted_ms, step.time.ms));
        let all = row("forward", Some(total_ms), self.forward.median_ms);
        columns(&["step", "predicted ms", "measured ms", "ratio"], steps.chain([all]))
    }

    /// Per step: time, bytes, speed, fraction of the copy speed, GFlop/s.
    fn profile_table(&self) -> String {
        let row = |StepReport { time: step, .. }: &StepReport| {
            let speed = step.bytes as f64 / step.ms / 1e6;
            let flops = step.flops / step.ms / 1e6;
            let copy = format!("{:.0} %", 100.0 * speed / self.copy_gb_s);
            let flops = if flops > 0.0 { digits(flops) } else { String::new() };
            vec![step.name.clone(), digits(step.ms), bytes(step.bytes), digits(speed), copy, flops]
        };
        let heads = ["step", "ms", "bytes", "GB/s", "of copy", "GFlop/s"];
        columns(&heads, self.fastest.steps.iter().map(row))
    }
}

/// The error of a round trip, which is unknown if modes are dropped.
fn error_text(error: f64) -> String {
    if error.is_nan() { "not all modes are kept".into() } else { format!("{error:.2e}") }
}

/// The title of charts of a candidate. `tiles`: with its tiles, if there is more than one.
pub fn title(options: &ContestOptions<'_>, candidate: &CandidateResult, tiles: bool) -> String {
    let labels = &options.labels;
    let tiles = match tiles && is_tiled(&candidate.overlap) {
        true => format!(", tiles of {}", overlap_text(&candidate.overlap, options.peer_problem.ndim)),
        false => String::new(),
    };
    let wire = labels.wire.as_ref().map_or(String::new(), |wire| format!(" over {wire}"));
    format!(
        "{} {} {}, {}, {}{wire}{tiles}",
        shape_text(&labels.shape),
        labels.kind,
        options.peer_problem.precision.name(),
        plural(options.ranks, "rank"),
        candidate.exchange,
    )
}
