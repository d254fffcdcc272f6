//! One error type. Every variant says what was expected and what came.

use std::fmt;

/// `Result` with Ferrier's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong. Messages are one line, meant for the person at the
/// terminal; the variant is meant for programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shape, axis, batch or scale that no transform can have.
    #[error("{0}")]
    Problem(String),

    /// Boxes that do not tile the shape, a grid that does not fit the ranks.
    #[error("{0}")]
    Layout(String),

    /// A choice (grid, order of axes, number of ranks) that does not fit the problem.
    #[error("{0}")]
    Choice(String),

    /// A member of a seam (exchange, kernel, ...) that does not exist.
    #[error("unknown {what} `{name}`; known are: {known}")]
    UnknownName {
        /// What was named: "exchange", "kernel".
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },

    /// Bytes from another rank that its codec cannot have written.
    #[error("what came from rank {rank} cannot be decoded: {message}")]
    Codec {
        /// The rank that sent them.
        rank: usize,
        /// What is wrong with them.
        message: String,
    },

    /// A transform lost more than the problem allows.
    #[error("{0}")]
    Tolerance(String),

    /// An array handed to a plan is not the one the plan was made for.
    #[error("{0}")]
    Array(String),

    /// Memory that could not be had.
    #[error("out of memory: {bytes} bytes for {what} could not be allocated")]
    Memory {
        /// How much was asked for.
        bytes: usize,
        /// What it was for.
        what: &'static str,
    },

    /// Ranks called with different problems, choices or precisions.
    #[error("ranks disagree: {0}")]
    Disagreement(String),

    /// A rank panicked; every other rank of the group gets this error too.
    #[error("rank {rank} panicked: {message}")]
    RankPanicked {
        /// The rank that panicked.
        rank: usize,
        /// Its message.
        message: String,
    },

    /// A rank failed or left while this one was waiting for it.
    #[error("rank {rank} left while rank {waiting} was waiting for it: {message}")]
    RankLeft {
        /// The rank that is gone.
        rank: usize,
        /// The rank that waited.
        waiting: usize,
        /// Why it left, as far as is known.
        message: String,
    },

    /// The transport failed (a thread that could not start, later an MPI error).
    #[error("{0}")]
    Transport(String),

    /// A GPU, its driver or one of its libraries that is missing or fails.
    #[error("{0}")]
    Device(String),

    /// A file of wisdom that cannot be used or written.
    #[error("{0}")]
    Wisdom(String),

    /// An error of the caller's own code inside [`Ranks::run`](crate::Ranks::run).
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Wraps an error of the caller's own, to be returned from the closure of
    /// [`Ranks::run`](crate::Ranks::run).
    pub fn other(error: impl fmt::Display) -> Self {
        Error::Other(error.to_string())
    }

    /// Is this only the echo of another rank's failure?
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self, Error::RankLeft { .. })
    }
}

impl From<ferrier_plan::Error> for Error {
    fn from(error: ferrier_plan::Error) -> Self {
        use ferrier_plan::Error as Plan;
        match error {
            Plan::Problem(invalid) => Error::Problem(invalid.message),
            Plan::Layout(invalid) => Error::Layout(invalid.message),
            Plan::Choice(invalid) => Error::Choice(invalid.message),
            Plan::UnknownName { what, name, known } => Error::UnknownName { what, name, known },
            error => Error::Other(error.to_string()),
        }
    }
}

impl From<ferrier_search::UnknownMethod> for Error {
    fn from(error: ferrier_search::UnknownMethod) -> Self {
        Error::UnknownName { what: "method", name: error.name, known: error.known }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Other(error.to_string())
    }
}
