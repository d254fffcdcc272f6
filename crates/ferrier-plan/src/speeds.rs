//! Speeds of a machine, by which the planner compares recipes.

use serde::{Deserialize, Serialize};

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
}

impl MachineSpeeds {
    /// Sets the seconds of a small message.
    #[must_use]
    pub fn latency_s(mut self, seconds: f64) -> Self {
        self.latency_s = seconds;
        self
    }

    /// Sets the bytes per second that a rank sends.
    #[must_use]
    pub fn wire_bytes_s(mut self, rate: f64) -> Self {
        self.wire_bytes_s = rate;
        self
    }

    /// Sets the bytes per second of a pass over memory.
    #[must_use]
    pub fn memory_bytes_s(mut self, rate: f64) -> Self {
        self.memory_bytes_s = rate;
        self
    }
}

impl Default for MachineSpeeds {
    fn default() -> Self {
        MachineSpeeds { latency_s: 2e-6, wire_bytes_s: 4e9, memory_bytes_s: 10e9 }
    }
}
