//! Charts and timelines.

pub mod chart;
pub mod spread;
pub mod timeline;
pub mod trace;
mod transfers;
