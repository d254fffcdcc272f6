//! Optimisers for noisy, expensive functions of names and numbers.
//!
//! A [`Space`] has parameters and constraints; a [`Search`] proposes points and evaluates an [`Objective`]; a
//! [`Session`] caches costs, compares noisy measurements and enforces a budget. Independent of Fourier transforms.
#![forbid(unsafe_code)]

mod gauss;
mod leading;
mod methods;
mod model;
mod nelder_mead;
mod random;
mod rng;
mod search;
mod session;
mod space;

pub use methods::{METHODS, Method, UnknownMethod, find};
pub use nelder_mead::CoordinateDescent;
pub use rng::Rng;
pub use search::{Objective, Search, SearchInput};
pub use session::{
    Comparison, Evaluator, Limits, Progress, SearchResult, Session, Trial, TrialStatus, median,
};
pub use space::{Parameter, Point, Space, Value};
