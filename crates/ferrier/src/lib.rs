//! Ferrier.

mod error;
pub mod kernel;
mod real;

pub use error::{Error, Result};
pub use real::{Precision, Real};
