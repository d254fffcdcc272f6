//! Planning on all ranks: drafts, agreement, tuning, wisdom.

mod agree;
#[cfg(feature = "cuda")]
mod cuda;
mod draft;
mod effort;
mod entry_ref;
mod forecast;

mod online_tuner;
mod pipeline;
#[expect(clippy::module_inception, reason = "the planner itself")]
mod planner;
mod samples;
mod speeds;
mod target;
pub mod tune;
pub mod wisdom;

pub(crate) use agree::{
    agree, compare_texts, default_exchange, encodes_in_nodes, gather_boxes, gather_strides, machine,
    memory_policy, threads,
};
pub use draft::Draft;
pub(crate) use forecast::{Forecast, mechanism};
pub use pipeline::Pipeline;
pub use planner::Planner;
pub use speeds::{MEASURE_TIME, measure_speeds};
pub use target::Target;
