//! The report of a contest.

use ferrier::Overlap;
use ferrier::wisdom::Known;
use serde::Serialize;

use super::breakdown::{BreakdownRow, breakdown};
use super::comparison::Comparison;
use super::options::ContestOptions;
use super::results::{CandidateResult, ContestResult};
use super::sweep::{self, SweepPoint};
use super::variants::{self, VariantReport};
use crate::failure::{Outcome, fail};
use crate::table::{plural, shape_text};
use crate::tiling::{is_tiled, overlap_text};
use crate::timing::Times;

/// A step of the forward transform.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// The step.
    pub name: String,
    /// Time of the slowest rank.
    pub ms: f64,
    /// Bytes that all ranks read and wrote.
    pub bytes: u64,
    /// Floating-point operations of all ranks.
    pub flops: f64,
}

/// A peer in the same run.
#[derive(Debug, Serialize)]
pub struct PeerReport {
    /// The peer's name.
    pub name: &'static str,
    /// The version of the library.
    pub version: String,
    /// Times of the faster plan.
    #[serde(flatten)]
    pub times: Times,
    /// The peer's median over Ferrier's.
    pub ratio: f64,
    /// `in place` or `out of place`.
    #[serde(rename = "way")]
    pub placement: &'static str,
    /// Relative error of its spectrum.
    pub error_forward: f64,
}

/// The report of a contest; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct BenchReport {
    /// Lengths of the user's axes.
    pub shape: Vec<usize>,
    /// The transform, and the modes to keep.
    pub kind: String,
    /// `f32` or `f64`.
    pub precision: &'static str,
    /// `cpu` or `cuda`.
    pub device: String,
    /// The name of the GPU, if the transform ran on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Threads of each rank.
    pub threads: usize,
    /// `threads` or `mpi`.
    pub transport: String,
    /// The emulated network between ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// The exchange.
    pub exchange: String,
    /// The codec.
    pub codec: String,
    /// The kernel.
    pub kernel: String,
    /// Layout of the input.
    pub in_layout: String,
    /// Layout of the output.
    pub out_layout: String,
    /// Number of arrays.
    pub batch: usize,
    /// Did transforms run in place?
    pub in_place: bool,
    /// Timed repetitions.
    pub repeat: usize,
    /// Times of forward transforms.
    pub forward: Times,
    /// Times of backward transforms.
    pub backward: Times,
    /// Speed of forward transforms.
    pub gflops: f64,
    /// Largest relative error of a round trip.
    pub error_l2: f64,
    /// Relative error of the spectrum.
    pub error_forward: f64,
    /// Bound of the error of the spectrum: loss of the codec and the worst case of rounding.
    pub error_bound: f64,
    /// Memory of the rank that needs most.
    pub memory_bytes_per_rank: u64,
    /// Bytes between ranks in one forward transform.
    pub wire_bytes: u64,
    /// Copy speed of the memory.
    pub copy_gb_s: f64,
    /// Time of three passes at the copy speed over the time of the transform.
    pub limit_fraction: f64,
    /// The plan's notes.
    pub notes: Vec<String>,
    /// The tiles, if there is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// The wisdom that the plan was made from; null if there was none.
    pub wisdom: Option<Known>,
    /// Time of planning without allocation.
    pub planning_ms: f64,
    /// The steps of the forward transform.
    pub steps: Vec<StepReport>,
    /// The time by kinds of work, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<BreakdownRow>,
    /// The points of a sweep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepPoint>,
    /// The variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantReport>,
    /// (blocking - new) over the time that could be overlapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_fraction: Option<f64>,
    /// The peers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerReport>,
}

impl BenchReport {
    /// The report of the fastest candidate. `with_breakdown`: with the time by kinds of work.
    ///
    /// # Errors
    /// There is no candidate.
    pub fn new(
        options: &ContestOptions<'_>,
        comparison: &Comparison,
        result: &ContestResult,
        copy_gb_s: f64,
        with_breakdown: bool,
    ) -> Outcome<BenchReport> {
        let problem = &options.peer_problem;
        let Some(fastest) = result.fastest() else { return fail("nothing was measured") };
        let forward = Times::new(&fastest.forward);
        let (mut sweep, mut variants) = (Vec::new(), Vec::new());
        match comparison {
            Comparison::One(_) => {}
            Comparison::Sweep(_, tilings, _) => {
                sweep = sweep::points(tilings, &result.candidates, problem.ndim);
            }
            Comparison::Variants(_, entries, _) => variants = variants::reports(entries, &result.candidates),
        }
        let breakdown = match with_breakdown {
            true => breakdown(&fastest.events, fastest.typical_ms),
            false => Vec::new(),
        };
        let elements = problem.shape.iter().product::<usize>() as f64 * problem.batch as f64;
        let array_bytes = elements * (problem.precision.bytes() * if problem.real { 1 } else { 2 }) as f64;
        let flops =
            5.0 * elements * problem.transformed_points().log2() * if problem.real { 0.5 } else { 1.0 };
        let seconds = forward.median_ms / 1e3;
        let peers = result.peers.iter().map(|peer| {
            let times = Times::new(&peer.seconds);
            PeerReport {
                name: peer.name,
                version: peer.version.clone(),
                times,
                ratio: times.median_ms / forward.median_ms,
                placement: peer.placement,
                error_forward: peer.error,
            }
        });
        let labels = options.labels.clone();
        Ok(BenchReport {
            shape: labels.shape,
            kind: labels.kind,
            precision: problem.precision.name(),
            device: labels.device,
            gpu: result.gpu.clone(),
            ranks: options.ranks,
            nodes: result.nodes,
            threads: result.threads,
            transport: result.transport.clone(),
            wire: labels.wire,
            exchange: fastest.exchange.clone(),
            codec: fastest.codec.clone(),
            kernel: fastest.kernel.clone(),
            in_layout: labels.in_layout,
            out_layout: labels.out_layout,
            batch: problem.batch,
            in_place: options.in_place,
            repeat: fastest.forward.len(),
            forward,
            backward: Times::new(&fastest.backward),
            gflops: flops / seconds / 1e9,
            error_l2: fastest.error_l2,
            error_forward: fastest.error_forward,
            error_bound: fastest.error_bound,
            memory_bytes_per_rank: fastest.memory,
            wire_bytes: fastest.wire,
            copy_gb_s,
            notes: fastest.notes.clone(),
            overlap: Some(fastest.overlap.clone()).filter(is_tiled),
            wisdom: fastest.wisdom.clone(),
            planning_ms: fastest.planning_ms,
            limit_fraction: 3.0 * 2.0 * array_bytes / (copy_gb_s * 1e9) / seconds,
            steps: fastest.steps.iter().map(step_report).collect(),
            breakdown,
            sweep,
            hidden_fraction: variants::hidden_fraction(&variants),
            variants,
            peers: peers.collect(),
        })
    }

    /// A chart of the sweep, as SVG; `None` if there is no sweep.
    pub fn sweep_svg(&self, title: String) -> Option<String> {
        let longest = self.shape.iter().copied().max().unwrap_or(1);
        (!self.sweep.is_empty()).then(|| sweep::svg(&self.sweep, title, longest))
    }
}

fn step_report(step: &ferrier::StepTime) -> StepReport {
    StepReport { name: step.name.clone(), ms: step.ms, bytes: step.bytes, flops: step.flops }
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
