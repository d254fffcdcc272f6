//! Errors of transforms with each codec, over ranks and over bits on the wire.

mod field;
mod measure;
mod report;

pub use field::{Data, Field};
pub use measure::AccuracyOptions;
pub use report::{AccuracyReport, AccuracyRow};
