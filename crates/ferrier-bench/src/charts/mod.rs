//! Charts and timelines.

pub mod chart;
pub(crate) mod events;
pub mod scaling;
pub mod spread;
pub mod timeline;
pub mod trace;
