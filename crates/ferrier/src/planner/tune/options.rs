//! Options and results of tuning.

use serde::{Deserialize, Serialize};

use crate::planner::effort::Effort;
use crate::{Choice, MachineSpeeds, Result};
use ferrier_search::{Limits, METHODS, Method, Trial};

/// The search method called `name`.
///
/// # Errors
/// [`Error::UnknownName`](crate::Error::UnknownName) lists the names that exist.
pub fn find(name: &str) -> Result<&'static Method> {
    Ok(ferrier_search::find(name)?)
}

/// Seconds of [`Effort::Measure`].
const MEASURE_SECONDS: f64 = 10.0;
/// Trials of [`Effort::Measure`].
const MEASURE_TRIALS: usize = 60;

/// Options of [`tune`](super::tune()).
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Options {
    /// A name from [`METHODS`].
    pub method: String,
    /// Bounds on time and trials.
    pub limits: Limits,
    /// Seed of randomised searches.
    pub seed: u64,
    /// Further choices to compare the winner with at the end, run in turn.
    pub rivals: Vec<Choice>,
    /// Names of the parameters to search, from the values of the given choice;
    /// if empty, all parameters that the given choice leaves open.
    pub only: Vec<&'static str>,
    /// Whether a search over tiles ends with one over the tiles of single reshapes.
    pub refine: bool,
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits { seconds: MEASURE_SECONDS, trials: MEASURE_TRIALS, ..Limits::default() };
        Options {
            method: METHODS[0].name.into(),
            limits,
            seed: 1,
            rivals: Vec::new(),
            only: Vec::new(),
            refine: true,
        }
    }
}

impl Options {
    /// Sets the search method, a name from [`METHODS`].
    pub fn method(mut self, name: impl Into<String>) -> Self {
        self.method = name.into();
        self
    }

    /// Sets the bounds on time and trials.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the seed of randomised searches.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the choices that the winner is compared with.
    pub fn rivals(mut self, rivals: Vec<Choice>) -> Self {
        self.rivals = rivals;
        self
    }

    /// Searches these parameters only: see [`tunable`](super::tunable()).
    pub fn only(mut self, names: Vec<&'static str>) -> Self {
        self.only = names;
        self
    }

    /// Sets whether a search over tiles ends with one over the tiles of single reshapes.
    pub fn refine(mut self, yes: bool) -> Self {
        self.refine = yes;
        self
    }

    /// The options of an effort; `None` if it makes no trials in advance.
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
}

/// The result of tuning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The fastest choice; the given one if none was faster.
    pub choice: Choice,
    /// Milliseconds of a transform (mean of one forward and one backward, the
    /// median of several) before tuning.
    pub default_ms: f64,
    /// The same with `choice`, run in turn with the default.
    pub best_ms: f64,
    /// Number of points that were run.
    pub measured: usize,
    /// Duration of the search.
    pub seconds: f64,
    /// Name of the search method.
    pub method: String,
    /// All trials, the default first.
    pub trials: Vec<Trial>,
    /// The speeds that were measured before the search; its cost model uses them. `None` if results must be
    /// reproducible.
    #[serde(default)]
    pub speeds: Option<MachineSpeeds>,
    /// Milliseconds of `choice` and of each rival, run in turn; `None` for a
    /// rival that does not fit the problem.
    pub rivals: Vec<Option<[f64; 2]>>,
}

impl Outcome {
    /// Ratio of the default's time to the best time.
    pub fn speed_up(&self) -> f64 {
        self.default_ms / self.best_ms
    }
}
