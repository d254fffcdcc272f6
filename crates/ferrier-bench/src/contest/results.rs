//! What a contest measures.

use ferrier::cost::Prediction;
use ferrier::{Comm, Overlap, StepTime};
use serde::Serialize;

use super::breakdown::RankEvents;
use crate::agree::RankGroup;
use crate::failure::Failure;
use crate::peers::PeerProblem;
use crate::tiling::is_tiled;
use crate::timing::median;

/// A step of a transform; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// Time of the slowest rank (of several calls, the median), bytes of all ranks.
    #[serde(flatten)]
    pub time: StepTime,
    /// The milliseconds that the cost model predicts, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// The measurements of one plan; the keys are part of the contract. The same on every rank, except
/// `traced`.
#[derive(Debug, Default, Serialize)]
pub struct CandidateResult {
    /// Seconds of each forward transform, on the slowest rank.
    #[serde(skip)]
    pub forward: Vec<f64>,
    /// Seconds of each backward transform.
    #[serde(skip)]
    pub backward: Vec<f64>,
    /// The steps of the forward transform nearest to the median: time of the
    /// slowest rank, bytes of all ranks.
    pub steps: Vec<StepReport>,
    /// The milliseconds of a forward transform that the cost model predicts, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
    /// The prediction, and where its constants come from.
    #[serde(skip)]
    pub prediction: Option<(Prediction, String)>,
    /// The events of each rank in that transform, and in the backward one after it (on rank 0).
    #[serde(skip)]
    pub traced: [RankEvents; 2],
    /// The time of that transform in milliseconds.
    #[serde(skip)]
    pub typical_ms: f64,
    /// Largest relative error of a round trip; NaN if some modes were dropped.
    pub error_l2: f64,
    /// Relative error of the spectrum.
    pub error_forward: f64,
    /// Bytes of memory, on the rank that needs most.
    #[serde(rename = "memory_bytes_per_rank")]
    pub memory: u64,
    /// Bytes sent between ranks in one forward transform, as encoded.
    pub wire_bytes: u64,
    /// The codec.
    pub codec: String,
    /// Bounds of the errors of the spectrum and of a round trip; `None` if the codec loses nothing.
    #[serde(skip)]
    pub bounds: Option<[f64; 2]>,
    /// Bound of the error of the spectrum, with the worst case of rounding.
    pub error_bound: f64,
    /// The exchange, as the planner chose.
    pub exchange: String,
    /// The kernel.
    pub kernel: String,
    /// The tiles.
    #[serde(skip_serializing_if = "is_one_tile")]
    pub overlap: Overlap,
    /// The wisdom that the plan was made from; null if there was none.
    pub wisdom: Option<ferrier::wisdom::EntryRef>,
    /// Time of planning without allocation, in milliseconds.
    pub planning_ms: f64,
    /// The plan's notes.
    pub notes: Vec<String>,
}

fn is_one_tile(overlap: &Overlap) -> bool {
    !is_tiled(overlap)
}

/// The measurements of a peer: its faster plan.
#[derive(Debug, Serialize)]
pub struct PeerResult {
    /// The peer's name.
    pub name: &'static str,
    /// The version of the library.
    pub version: String,
    /// `in place` or `out of place`.
    #[serde(rename = "way")]
    pub placement: &'static str,
    /// Seconds of each transform.
    #[serde(skip)]
    pub seconds: Vec<f64>,
    /// Relative error of its spectrum, measured as Ferrier's.
    pub error_forward: f64,
    /// Time of planning both placements, in milliseconds.
    pub planning_ms: f64,
}

/// The search that a variant of overlap comes from; zeros if there was none. The keys are part of the contract.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct VariantTuning {
    /// Seconds of the search.
    #[serde(rename = "tuning_seconds")]
    pub seconds: f64,
    /// Choices that were run.
    #[serde(rename = "tuning_trials")]
    pub trials: usize,
}

/// The measurements of a contest. The same on every rank, except `peers` (rank 0 only).
#[derive(Debug, Default, Serialize)]
pub struct ContestResult {
    /// One for each choice.
    #[serde(skip)]
    pub candidates: Vec<CandidateResult>,
    /// For each choice of a study the reason why it has no candidate.
    #[serde(skip)]
    pub infeasible: Vec<Option<String>>,
    /// How each candidate was tuned, if candidates are variants of overlap.
    #[serde(skip)]
    pub tunings: Vec<VariantTuning>,
    /// The ranks.
    #[serde(flatten)]
    pub group: RankGroup,
    /// The peers, in the order of the options (on rank 0).
    #[serde(skip)]
    pub peers: Vec<PeerResult>,
    /// Milliseconds in which the threads of all ranks copy as many bytes as the input has; `None` under a launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_ms: Option<f64>,
    /// The name of the GPU, if the candidates ran on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
}

impl CandidateResult {
    /// Adds the predicted times to the steps. Steps of the same name are in the same order.
    pub fn add_prediction(&mut self) {
        let Some((prediction, _)) = &self.prediction else { return };
        self.predicted_ms = Some(prediction.seconds() * 1e3);
        let mut left: Vec<_> = prediction.steps.iter().collect();
        for step in &mut self.steps {
            let found = left.iter().position(|predicted| predicted.name == step.time.name);
            step.predicted_ms = found.map(|at| left.remove(at).seconds * 1e3);
        }
    }
}

/// How much larger than its bound the error at 256 frequencies may be: five standard deviations.
const SAMPLED: f64 = 1.25;

impl ContestResult {
    /// The candidate with the lowest median of forward transforms.
    pub fn fastest(&self) -> Option<&CandidateResult> {
        self.candidates.iter().min_by(|a, b| median(&a.forward).total_cmp(&median(&b.forward)))
    }

    /// The failure of the first wrong result. `whole`: round trips restore the input.
    pub fn first_error(&self, problem: &PeerProblem, whole: bool) -> Option<Failure> {
        let allowed = 4.0 * problem.precision.epsilon() * problem.transformed_points().log2().max(1.0);
        for candidate in &self.candidates {
            let [forward, round_trip] = candidate.bounds.unwrap_or([allowed; 2]);
            // A certificate is as large as the error of the whole spectrum; at some frequencies it may be larger.
            let forward = if candidate.bounds.is_some() { SAMPLED * forward } else { forward };
            for (what, error, allowed) in [
                ("spectrum", candidate.error_forward, forward),
                ("round trip", candidate.error_l2, round_trip),
            ] {
                // A NaN is not within bounds, except that of dropped modes.
                let within = error <= allowed || (what == "round trip" && !whole);
                if !within {
                    return Some(Failure::wrong(format!(
                        "the {what} is wrong: relative error {error:.1e}, {allowed:.1e} is allowed"
                    )));
                }
            }
        }
        // Peers may be less exact; this only detects another transform.
        let other =
            self.peers.iter().find(|peer| peer.error_forward.is_nan() || peer.error_forward > 1e3 * allowed);
        other.map(|peer| {
            Failure::wrong(format!(
                "peer {} does another transform: relative error {:.1e}",
                peer.name, peer.error_forward
            ))
        })
    }
}

/// The larger of two errors; NaN if one is NaN.
pub fn worse(a: f64, b: f64) -> f64 {
    if b.is_nan() || b > a { b } else { a }
}

/// Typical steps of some calls over all ranks: for each step the median of the largest times; the sums of bytes and flops.
/// Collective.
///
/// # Errors
/// A rank failed or left.
pub fn typical_steps<'a>(
    comm: &Comm,
    calls: impl Iterator<Item = &'a Vec<StepTime>>,
) -> ferrier::Result<Vec<StepReport>> {
    let calls: Vec<&Vec<StepTime>> = calls.collect();
    let Some(first) = calls.first() else { return Ok(Vec::new()) };
    let all: Vec<f64> = calls.iter().flat_map(|call| call.iter().map(|step| step.ms)).collect();
    let slowest = comm.max(&all)?;
    let mut joined = join_steps(comm, first)?;
    for (at, step) in joined.iter_mut().enumerate() {
        let times: Vec<f64> = slowest.iter().skip(at).step_by(first.len()).copied().collect();
        step.time.ms = median(&times);
    }
    Ok(joined)
}

/// Steps over all ranks: the largest time, the sums of bytes and flops. Collective.
///
/// # Errors
/// A rank failed or left.
pub fn join_steps(comm: &Comm, own: &[StepTime]) -> ferrier::Result<Vec<StepReport>> {
    let ms = comm.max(&own.iter().map(|step| step.ms).collect::<Vec<_>>())?;
    let bytes = comm.sum(&own.iter().map(|step| step.bytes as f64).collect::<Vec<_>>())?;
    let flops = comm.sum(&own.iter().map(|step| step.flops).collect::<Vec<_>>())?;
    let joined = own.iter().zip(ms.iter().zip(bytes.iter().zip(&flops)));
    Ok(joined
        .map(|(step, (&ms, (&bytes, &flops)))| {
            let time = StepTime { name: step.name.clone(), ms, bytes: bytes as u64, flops };
            StepReport { time, predicted_ms: None }
        })
        .collect())
}
