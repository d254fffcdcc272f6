//! Options of a contest.

use ferrier::{Comm, Problem};
use serde::Serialize;

use crate::peers::{MpiLaunch, PeerEntry, PeerProblem};

/// Options of a contest.
pub struct ContestOptions<'a> {
    /// The transform.
    pub problem: Problem,
    /// Number of ranks.
    pub ranks: usize,
    /// The transform as a peer does it.
    pub peer_problem: PeerProblem,
    /// Number of repetitions; `None`: about a second's worth.
    pub repeat: Option<usize>,
    /// Transforms run in place.
    pub in_place: bool,
    /// Predicted times are reported beside the measured ones.
    pub predict: bool,
    /// The peers to compare with.
    pub peers: Vec<&'static PeerEntry>,
    /// The launch that distributed peers run on.
    pub launch: Option<MpiLaunch<'a>>,
    /// Round trips restore the input: no modes are dropped.
    pub whole: bool,
    /// The user's names, for reports.
    pub labels: Labels,
    /// Shows what is going on.
    pub progress: &'a (dyn Fn(String) + Sync),
}

/// Names of the run as the user wrote them; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct Labels {
    /// Lengths of the user's axes.
    pub shape: Vec<usize>,
    /// `c2c`, `r2c` or a list of kinds, and the modes to keep.
    pub kind: String,
    /// `cpu` or `cuda`.
    pub device: String,
    /// The emulated network between ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Layout of the input.
    pub in_layout: String,
    /// Layout of the output.
    pub out_layout: String,
}

impl ContestOptions<'_> {
    /// Shows what is going on, on rank 0.
    pub(crate) fn say(&self, comm: &Comm, message: String) {
        if comm.rank() == 0 {
            (self.progress)(message);
        }
    }
}
