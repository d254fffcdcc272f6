//! Transforms timed in turn: several plans, and other libraries.

mod breakdown;
mod candidate;
mod measure;
mod options;
mod peer_timer;
mod report;
mod results;
mod sweep;
mod timed_blocks;
mod variants;

pub use breakdown::{BreakdownRow, ComputeSplit, RankEvents, WaitSplit};
pub use candidate::{Arrays, gather_events};
pub use measure::{Comparison, references};
pub use options::{ContestOptions, Labels};
pub use report::{BenchReport, title};
pub use results::{CandidateResult, ContestResult, PeerResult, StepReport, join_steps, worse};
pub use variants::{VARIANTS, VariantEntry, find_variant};
