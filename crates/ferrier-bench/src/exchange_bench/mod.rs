//! Exchanges alone: their bandwidth on the reshapes of a transform and over message sizes, over lists of options, and
//! around computation.

mod measure;
mod overlap;
mod study;

pub use measure::{ExchangeBench, ExchangeReport, ReshapeTimes};
pub use overlap::OverlapTimes;
pub use study::{ExchangeRow, ExchangeStudy};
