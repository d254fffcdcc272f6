//! Transforms timed in turn: several plans, and other libraries.

mod breakdown;
mod candidate;
mod comparison;
mod measure;
mod options;
mod peer_timer;
mod report;
mod results;
mod sweep;
mod tables;
mod variants;

pub use comparison::Comparison;
pub use measure::references;
pub use options::ContestOptions;
pub use options::Labels;
pub use report::{BenchReport, title};
pub use results::{CandidateResult, ContestResult, PeerResult, join_steps, worse};
pub use variants::{VARIANTS, VariantEntry, find_variant};
