//! The effort of a planner.

use std::time::Duration;

/// How much time a planner may spend on the search for a fast plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// No trials: a model of the machine decides.
    #[default]
    Estimate,
    /// At most 10 seconds and 60 trials, on arrays of the planner.
    Measure,
    /// Trials for this time, on arrays of the planner.
    Patient(Duration),
    /// The first transforms of the plan are the trials; their results are as
    /// accurate as any. While [`Plan::is_tuning`](crate::Plan::is_tuning) is
    /// true, a transform may plan again and allocate, and the recipe, memory
    /// and notes of the plan are those of the last transform. Transforms with
    /// a workspace of the caller are not trials.
    Online,
}
