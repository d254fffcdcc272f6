//! The cost model: predicted seconds of passes, exchanges and whole transforms on a machine that is given as data.
//!
//! A [`Machine`] says what a node is: cores, caches, and [`Constants`] such as bytes per second of a core from memory
//! or seconds of a message. Constants are assumed for the processor's family, or measured and kept with wisdom.
//! Nothing here looks at the machine at hand, so that predictions for other machines are made in the same way.
//!
//! Three levels, from exact to cheap:
//!
//! - [`predict`] takes a complete [`Recipe`](crate::Recipe) and gives the seconds of each step of a call, with the
//!   names and in the order of `ferrier::Plan::profile`. Tiles overlap with passes as [`order`](crate::order) says.
//! - [`PassShape`] and [`ExchangeShape`] describe one pass and one exchange of one rank; their `seconds` are what
//!   [`predict`] sums up.
//! - [`Estimator`] makes these shapes from candidate layouts, before there is a recipe: for pruning a search.
//!
//! **A pass** loads, transforms and stores lines in blocks. Its time is that of the arithmetic and that of memory, of
//! which a part overlaps ([`Constants::overlap`]). The time of memory is summed over both ends ([`Access`]): bytes at
//! the speed of the cache or memory that holds the array, a cost of each contiguous run, cache lines that are
//! touched more than once because runs are shorter than they are, and rows that meet in few sets of a cache.
//! **An exchange** costs a latency, a gap for each message, and bytes at the speed of the node's memory or network.

mod access;
mod build;
mod cache_shape;
mod call;
mod constants;
mod estimate;
mod exchange;
mod families;
mod fit;
mod machine;
mod pass;
mod predict;
mod setting;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use cache_shape::CacheShape;
pub use call::{CallShapes, scheduled};
pub use constants::{Constants, MeasuredConstants};
pub use estimate::Estimator;
pub use exchange::ExchangeShape;
pub use fit::{Sample, fit};
pub use machine::Machine;
pub use pass::{LineWork, PassCost, PassShape};
pub use predict::{
    CERTIFICATE, CallCosts, ExchangeCost, Prediction, StepCost, pass_name, predict, predict_call,
};
pub use setting::Setting;
