//! Optimisers for noisy, expensive functions of names and numbers.
//!
//! A [`Space`] has parameters and rules; a [`Search`] asks for the costs of its points; a [`Session`] remembers
//! answers, judges noise and keeps to a budget. Nothing here knows of Fourier transforms.
#![forbid(unsafe_code)]

mod gauss;
mod model;
mod nelder_mead;
mod random;
mod rng;
mod search;
mod session;
mod space;

pub use nelder_mead::Nearby;
pub use rng::Rng;
pub use search::{Ask, Ground, METHODS, Method, Search, UnknownMethod, find};
pub use session::{Bench, Findings, Limits, Progress, Race, Session, Trial, Verdict, median};
pub use space::{Parameter, Point, Space, Value};
