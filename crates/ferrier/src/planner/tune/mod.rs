//! Tuning: trying choices and keeping the fastest.
//!
//! A [`Space`] of named parameters is searched by a [`Search`]; a [`Session`]
//! remembers, bounds each trial, repeats what seems to be faster, and in the
//! end compares the winner with the default it started from, so that what is
//! returned is never slower. Rank 0 decides; every rank runs the same trials.

mod fine;
mod knobs;
mod online;
mod trials;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use ferrier_search::{
    Ask, Bench, Findings, Ground, Limits, METHODS, Method, Parameter, Point, Progress, Race, Search, Session,
    Space, Trial, Value, Verdict,
};
pub(crate) use knobs::works;
pub(crate) use online::{Next, Online};
pub use trials::tune;

use crate::{Choice, Result};

/// The search method called `name`.
///
/// # Errors
/// [`Error::UnknownName`](crate::Error::UnknownName) lists the names that exist.
pub fn find(name: &str) -> Result<&'static Method> {
    Ok(ferrier_search::find(name)?)
}

/// How hard a planner looks for a fast plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Nothing is run: a model of the machine decides.
    #[default]
    Estimate,
    /// Some seconds of trials on arrays of its own.
    Measure,
    /// Trials for this long.
    Patient(Duration),
    /// The first transforms of the plan are the trials: each goes by another
    /// choice, and is as right as any. Until [`Plan::is_tuning`](crate::Plan::is_tuning)
    /// says no, transforms may plan anew and allocate, and what the plan tells
    /// of itself is that of the last transform. Those that are given a
    /// workspace are no trials.
    Online,
}

/// Seconds of [`Effort::Measure`].
const MEASURE_SECONDS: f64 = 10.0;
/// Trials of [`Effort::Measure`].
const MEASURE_TRIALS: usize = 60;

/// How to tune.
#[derive(Clone, Debug)]
pub struct Options {
    /// A name from [`METHODS`].
    pub method: String,
    /// When to stop.
    pub limits: Limits,
    /// For searches that draw lots.
    pub seed: u64,
    /// More choices to compare with in the end, side by side.
    pub rivals: Vec<Choice>,
    /// Names of the parameters to search, also those that the given choice
    /// decides, where the search then starts; empty: all that it leaves open.
    pub only: Vec<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits { seconds: MEASURE_SECONDS, trials: MEASURE_TRIALS, ..Limits::default() };
        Options { method: METHODS[0].name.into(), limits, seed: 1, rivals: Vec::new(), only: Vec::new() }
    }
}

impl Options {
    /// What an effort stands for; `None` where nothing is to be run.
    pub(crate) fn of(effort: Effort) -> Option<Options> {
        let options = Options::default();
        match effort {
            Effort::Estimate | Effort::Online => None,
            Effort::Measure => Some(options),
            Effort::Patient(time) => {
                let limits = Limits { seconds: time.as_secs_f64(), trials: usize::MAX, ..options.limits };
                Some(Options { limits, ..options })
            }
        }
    }

    /// Is everything as it must be?
    ///
    /// # Errors
    /// An unknown method.
    fn check(&self) -> Result<&'static Method> {
        find(&self.method)
    }
}

/// What tuning found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What is kept; the caller's own choice where nothing was faster.
    pub choice: Choice,
    /// Milliseconds of a transform (mean of one forward and one backward, the
    /// median of several) before tuning.
    pub default_ms: f64,
    /// The same with what is kept, run in turn with the default.
    pub best_ms: f64,
    /// Points that were run.
    pub measured: usize,
    /// How long it took.
    pub seconds: f64,
    /// The name of the method.
    pub method: String,
    /// All that was tried, the default first.
    pub trials: Vec<Trial>,
    /// Milliseconds of what is kept and of each rival, run in turn; a rival
    /// that does not work here has none.
    pub rivals: Vec<Option<[f64; 2]>>,
}

impl Outcome {
    /// How many times as fast as the default.
    pub fn speed_up(&self) -> f64 {
        self.default_ms / self.best_ms
    }
}
