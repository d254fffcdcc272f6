//! Planning on all ranks: drafts, agreement, tuning, wisdom.

mod agree;
mod draft;
mod effort;
mod online_tuner;
mod speeds;
pub mod tune;
pub mod wisdom;

pub(crate) use agree::{agree, default_exchange, encodes_in_nodes, threads};
#[cfg(feature = "cuda")]
pub(crate) use agree::{agree_on, compare};
pub use draft::{Draft, Planner};
pub(crate) use online_tuner::OnlineTuner;
pub use speeds::measure_speeds;
