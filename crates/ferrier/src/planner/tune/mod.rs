//! Tuning: measures choices and keeps the fastest.
//!
//! A [`Space`] of named parameters is searched by a [`Search`]; a [`Session`]
//! remembers costs, bounds each trial, repeats those that seem to be faster,
//! and in the end compares the winner with the default, so that the result is
//! never slower. Rank 0 searches; every rank runs the same trials.

mod context;
mod cost_model;
mod names;
mod online;
mod options;
mod per_reshape;
mod trials;
mod tunables;

pub(crate) use context::{completed, works};
pub use ferrier_search::{
    Comparison, Evaluator, Limits, METHODS, Method, Objective, Parameter, Point, Progress, Search,
    SearchInput, SearchResult, Session, Space, Trial, TrialStatus, Value,
};
pub use names::{TILE_TUNABLES, tunable};
pub(crate) use online::{OnlineSearch, SearchStep};
pub use options::{Options, Outcome, find};
pub use trials::tune;

pub use crate::planner::effort::Effort;
