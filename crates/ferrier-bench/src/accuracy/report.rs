//! The report of the benchmark.

use serde::Serialize;

use super::field::Data;
use crate::failure::Failure;

/// The errors of one transform; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyRow {
    /// Precision of data and arithmetic.
    pub arithmetic: &'static str,
    /// The codec.
    pub codec: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Of the round trip: distance from the data over their norm.
    pub error_l2: f64,
    /// Of the spectrum: distance from the exact one over its norm.
    pub error_forward: f64,
    /// Bound of the error of the spectrum: loss of the codec and the worst case of rounding.
    pub error_bound: f64,
    /// Bytes between ranks in one forward transform.
    pub wire_bytes: u64,
    /// Bits for each scalar sent between ranks; null if none is sent.
    pub bits: Option<f64>,
}

impl AccuracyRow {
    /// The failure of an error above its bound.
    pub fn above_bound(&self, data: Data) -> Option<Failure> {
        // Values of the smooth function are rounded, its known spectrum is that of exact values.
        let rounding = if self.arithmetic == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let allowed = self.error_bound + if data == Data::Smooth { 4.0 * rounding } else { 0.0 };
        let within = self.error_forward <= allowed;
        (!within).then(|| {
            Failure::wrong(format!(
                "{} with codec {} on {} ranks: the error {:.2e} is above its bound {:.2e}",
                self.arithmetic, self.codec, self.ranks, self.error_forward, self.error_bound
            ))
        })
    }
}

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct AccuracyReport {
    /// Lengths of the user's axes.
    pub shape: Vec<usize>,
    /// `c2c` or `r2c`.
    pub kind: &'static str,
    /// `noise` or `smooth`.
    pub data: &'static str,
    /// The reference that errors of the spectrum are measured against.
    pub exact: &'static str,
    /// Layout of the input.
    pub in_layout: String,
    /// Layout of the output.
    pub out_layout: String,
    /// All transforms.
    pub rows: Vec<AccuracyRow>,
}
