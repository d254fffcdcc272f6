//! What `ferrier bench` tells: for programs, and for people.

use ferrier::Overlap;
use ferrier::codec::RAW;
use ferrier::wisdom::Known;
use serde::Serialize;

use super::Times;
use crate::args::BenchArgs;
use crate::blocks::{self, Block};
use crate::overlap;
use crate::report::{self, bytes, digits};
use crate::sweep;
use crate::variants::{self, VariantReport};

/// A step of the forward transform.
#[derive(Debug, Serialize)]
pub struct StepReport {
    pub name: String,
    pub ms: f64,
    pub bytes: u64,
    pub flops: f64,
}

impl StepReport {
    pub fn new(step: &ferrier::StepTime) -> Self {
        StepReport { name: step.name.clone(), ms: step.ms, bytes: step.bytes, flops: step.flops }
    }
}

/// A peer in the same run.
#[derive(Debug, Serialize)]
pub struct PeerReport {
    pub name: &'static str,
    pub version: String,
    pub best_ms: f64,
    pub median_ms: f64,
    /// The peer's median over ours.
    pub ratio: f64,
    pub way: &'static str,
    pub error_forward: f64,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct Report {
    pub shape: Vec<usize>,
    pub kind: String,
    pub precision: &'static str,
    pub device: String,
    /// The name of the GPU, where it ran on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    pub ranks: usize,
    pub nodes: usize,
    pub threads: usize,
    pub transport: String,
    /// What is pretended to be between ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    pub exchange: String,
    /// As given or chosen.
    pub codec: String,
    pub kernel: String,
    pub in_layout: String,
    pub out_layout: String,
    pub batch: usize,
    pub in_place: bool,
    pub repeat: usize,
    pub forward: Times,
    pub backward: Times,
    pub gflops: f64,
    pub error_l2: f64,
    pub error_forward: f64,
    /// Of the spectrum: what encoding lost and the worst that rounding can do.
    pub error_bound: f64,
    pub memory_bytes_per_rank: u64,
    pub wire_bytes: u64,
    pub copy_gb_s: f64,
    pub limit_fraction: f64,
    pub notes: Vec<String>,
    /// What reshapes go by, where they are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What the plan was made from; null where nothing was known.
    pub wisdom: Option<Known>,
    /// How long planning took, memory not counted.
    pub planning_ms: f64,
    pub steps: Vec<StepReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<Block>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<sweep::Point>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantReport>,
    /// (blocking - new) over what could be hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_fraction: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerReport>,
}

/// Modes that were dropped do not come back.
fn error_text(error: f64) -> String {
    if error.is_nan() { "not all modes are kept".into() } else { format!("{error:.2e}") }
}

/// For people.
pub fn text(args: &BenchArgs, report: &Report) -> String {
    let Report { ranks, nodes, threads, .. } = report;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let shape = report.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let batch = if report.batch == 1 { String::new() } else { format!(", batch {}", report.batch) };
    let wire = report.wire.as_ref().map_or(String::new(), |wire| format!(", wire {wire}"));
    let codec = if report.codec == RAW { String::new() } else { format!(", codec {}", report.codec) };
    let mut out = format!(
        "{shape} {} {}{batch}{}: {}{} of {}{wire}, exchange {}{codec}, kernel {}, {} in, {} out\n",
        report.kind,
        report.precision,
        if report.in_place { ", in place" } else { "" },
        plural(*ranks, "rank"),
        if *nodes > 1 { format!(" on {nodes} nodes") } else { String::new() },
        plural(*threads, "thread"),
        report.exchange,
        report.kernel,
        report.in_layout,
        report.out_layout,
    );
    if let Some(gpu) = &report.gpu {
        out += &format!("on {gpu}, by its own events\n");
    }
    report.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
    out.push('\n');
    let ndim = report.shape.len();
    if !report.sweep.is_empty() {
        out += &format!("{}\nthe fastest:\n", sweep::text(&report.sweep));
    }
    if !report.variants.is_empty() {
        out += &format!("{}\nthe fastest:\n", variants::text(&report.variants, ndim));
    }
    let row = |name: String, times: [f64; 2], ratio: f64| {
        vec![
            name,
            digits(times[0]),
            digits(times[1]),
            if ratio.is_nan() { String::new() } else { digits(ratio) },
        ]
    };
    let own = |name: &str, times: Times, ratio| row(name.into(), [times.best_ms, times.median_ms], ratio);
    let base = if report.peers.is_empty() { f64::NAN } else { 1.0 };
    let mut rows = vec![own("forward", report.forward, base), own("backward", report.backward, f64::NAN)];
    for peer in &report.peers {
        let name = format!("{} ({}, {})", peer.name, peer.version, peer.way);
        rows.push(row(name, [peer.best_ms, peer.median_ms], peer.ratio));
    }
    let heads = ["", "best ms", "median ms", "ratio"];
    out += &report::columns(if base.is_nan() { &heads[..3] } else { &heads }, &rows);
    out.push('\n');
    out += &report::pairs(&[
        ("speed", format!("{} GFlop/s", digits(report.gflops))),
        (
            "of the memory limit",
            format!("{:.0} % (3 passes at {} GB/s)", 100.0 * report.limit_fraction, digits(report.copy_gb_s)),
        ),
        ("error, round trip", error_text(report.error_l2)),
        ("error, spectrum", spectrum_error(report)),
        ("memory per rank", bytes(report.memory_bytes_per_rank)),
        ("between ranks", bytes(report.wire_bytes)),
    ]);
    if let Some(overlap) = &report.overlap {
        out += &report::pairs(&[("tiles", overlap::text(overlap, ndim))]);
    }
    out += &report::pairs(&[("planning", format!("{} ms", digits(report.planning_ms)))]);
    out += &crate::plan::wisdom_line(report.wisdom.as_ref());
    if args.profile {
        out.push('\n');
        out += &profile_table(report);
    }
    if !report.breakdown.is_empty() {
        out.push('\n');
        out += &blocks::table(&report.breakdown);
    }
    out
}

/// The error of the spectrum, and where it is known, what it may be at most.
fn spectrum_error(report: &Report) -> String {
    let bound = match report.error_bound > 0.0 {
        true => format!(" (at most {:.1e})", report.error_bound),
        false => String::new(),
    };
    format!("{:.2e}{bound}", report.error_forward)
}

/// Per step: time, bytes, speed, fraction of the copy speed, GFlop/s.
fn profile_table(report: &Report) -> String {
    let rows: Vec<_> = report
        .steps
        .iter()
        .map(|step| {
            let speed = step.bytes as f64 / step.ms / 1e6;
            let flops = step.flops / step.ms / 1e6;
            let copy = format!("{:.0} %", 100.0 * speed / report.copy_gb_s);
            let flops = if flops > 0.0 { digits(flops) } else { String::new() };
            vec![step.name.clone(), digits(step.ms), bytes(step.bytes), digits(speed), copy, flops]
        })
        .collect();
    report::columns(&["step", "ms", "bytes", "GB/s", "of copy", "GFlop/s"], &rows)
}
