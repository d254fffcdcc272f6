//! Speeds of a machine, by which the planner compares recipes.

use serde::{Deserialize, Serialize};

use crate::cost::MeasuredConstants;
use crate::setters::setters;

/// Speeds of one rank while all ranks do the same. The default is assumed where nothing was measured: a good
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MachineSpeeds {
    /// Seconds of a small message.
    pub latency_s: f64,
    /// Bytes per second that a rank sends.
    pub wire_bytes_s: f64,
    /// Bytes per second of a pass over a rank's own memory; each byte is read and written once.
    pub memory_bytes_s: f64,
    /// Measured constants of the cost model; none in files of older versions.
    #[serde(default, skip_serializing_if = "MeasuredConstants::is_empty")]
    pub constants: MeasuredConstants,
}

impl MachineSpeeds {
    setters! {
        /// Sets the seconds of a small message.
        latency_s(seconds: f64) = seconds;

        /// Sets the bytes per second that a rank sends.
        wire_bytes_s(rate: f64) = rate;

        /// Sets the bytes per second of a pass over memory.
        memory_bytes_s(rate: f64) = rate;

        /// Sets the measured constants of the cost model.
        constants(constants: MeasuredConstants) = constants;
    }
}

impl Default for MachineSpeeds {
    fn default() -> Self {
        let constants = MeasuredConstants::default();
        MachineSpeeds { latency_s: 2e-6, wire_bytes_s: 4e9, memory_bytes_s: 10e9, constants }
    }
}
