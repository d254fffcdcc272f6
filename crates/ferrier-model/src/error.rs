//! Errors.

use thiserror::Error;

/// What is wrong with a machine file or a job.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A machine file that is not valid TOML, or has unknown keys or values.
    #[error("machine file: {0}")]
    File(String),
    /// A value that is out of range.
    #[error("machine `{machine}`: {what}")]
    Machine {
        /// The name of the machine.
        machine: String,
        /// What was expected, and what came.
        what: String,
    },
    /// A job that the machine cannot run.
    #[error("{0}")]
    Job(String),
    /// The planner's error.
    #[error(transparent)]
    Plan(#[from] ferrier_plan::Error),
}

/// The result of a fallible function.
pub type Result<T> = std::result::Result<T, Error>;
