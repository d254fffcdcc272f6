//! Problems: which transform of which array, distributed how.

mod check;
mod definition;
mod long;
mod queries;

pub use definition::{Problem, Tolerance};
