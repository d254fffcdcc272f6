//! What moving bytes costs: what the planner judges walks by.

use serde::{Deserialize, Serialize};

/// How fast a rank moves bytes while all others do the same. The default is
/// what is assumed where nobody has measured it: a good network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineSpeeds {
    /// Seconds that a small message costs.
    pub latency_s: f64,
    /// Bytes a second that leave a rank.
    pub wire_bytes_s: f64,
    /// Bytes a second of a pass over a rank's own memory, each read and written once.
    pub memory_bytes_s: f64,
}

impl Default for MachineSpeeds {
    fn default() -> Self {
        MachineSpeeds { latency_s: 2e-6, wire_bytes_s: 4e9, memory_bytes_s: 10e9 }
    }
}
