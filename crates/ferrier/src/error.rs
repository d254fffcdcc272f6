//! The library's error type. Variants carry what a program needs to act: the
//! argument, what was expected, what was given, and the underlying error.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrier_plan::Invalid;

/// `Result` with Ferrier's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An underlying error; shared, since every rank may return a copy.
pub type Cause = Arc<dyn StdError + Send + Sync>;

/// Errors of the library. The text of an error is one line; programs match on
/// the variant and its fields. Two errors are equal if they are the same
/// variant with the same text.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A shape, axis, batch or scale that no transform can have.
    #[error("{0}")]
    Problem(Box<Invalid>),

    /// Boxes that do not tile the shape, a grid that does not fit the ranks.
    #[error("{0}")]
    Layout(Box<Invalid>),

    /// A choice (grid, order of axes, number of ranks) that does not fit the problem.
    #[error("{0}")]
    Choice(Box<Invalid>),

    /// The name of an exchange, kernel, codec, ... that does not exist.
    #[error("unknown {what} `{name}`; known are: {known}")]
    UnknownName {
        /// What was named: "exchange", "kernel".
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },

    /// A message that its codec cannot decode.
    #[error("the message of rank {rank} cannot be decoded: {message}")]
    Codec {
        /// The rank that sent it.
        rank: usize,
        /// What is wrong with it.
        message: String,
        /// The codec's error.
        source: Option<Cause>,
    },

    /// The certified error of a transform exceeds the problem's tolerance.
    #[error("an error of at most {allowed:e} was allowed, but only {reached:e} can be certified: {reason}")]
    Tolerance {
        /// The problem's tolerance.
        allowed: f64,
        /// The bound that was reached.
        reached: f64,
        /// Why it is so large.
        reason: &'static str,
    },

    /// An array or a workspace that does not fit the plan it was given to.
    #[error("the {argument}{} must be {expected}, got {got}", of_rank(*.rank))]
    Array {
        /// The argument: "input", "output", "workspace".
        argument: &'static str,
        /// The rank that was called with it, where there are ranks.
        rank: Option<usize>,
        /// What the plan needs.
        expected: String,
        /// What was given.
        got: String,
    },

    /// Memory that could not be allocated.
    #[error("out of memory: {bytes} bytes for {what} could not be allocated")]
    Memory {
        /// The size of the allocation.
        bytes: usize,
        /// What it was for.
        what: &'static str,
    },

    /// Ranks called with different problems, choices or precisions.
    #[error("ranks disagree: {message}")]
    Disagreement {
        /// The first rank that differs.
        rank: usize,
        /// What differs.
        message: String,
    },

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

    /// The transport failed: an MPI error, a thread that could not be started.
    #[error("{message}")]
    Transport {
        /// What failed, with the text of `source`.
        message: String,
        /// The error of MPI or of the system.
        source: Option<Cause>,
    },

    /// A GPU, its driver or one of its libraries is missing or fails.
    #[error("{message}")]
    Device {
        /// What failed, with the text of `source`.
        message: String,
        /// The error of the driver or library.
        source: Option<Cause>,
    },

    /// A wisdom file that cannot be read or written.
    #[error("{message}")]
    Wisdom {
        /// The file.
        path: PathBuf,
        /// What failed, with the path and the text of `source`.
        message: String,
        /// The error of the file system or of the parser.
        source: Option<Cause>,
    },

    /// A file that cannot be read or written; see [`io`](crate::io).
    #[error("{message}")]
    File {
        /// The file.
        path: PathBuf,
        /// What failed, with the path.
        message: String,
        /// The error of the system.
        source: Option<Cause>,
    },

    /// An error of the operating system.
    #[error(transparent)]
    Io(Arc<std::io::Error>),

    /// An error of the caller's own code inside [`Ranks::run`](crate::Ranks::run).
    #[error(transparent)]
    Other(Cause),
}

fn of_rank(rank: Option<usize>) -> String {
    rank.map_or(String::new(), |rank| format!(" of rank {rank}"))
}

impl Error {
    /// Wraps an error of the caller's own, to be returned from the closure of
    /// [`Ranks::run`](crate::Ranks::run).
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error::Other(Arc::from(error.into()))
    }

    pub(crate) fn problem(argument: &'static str, message: impl Into<String>) -> Self {
        Error::Problem(Box::new(Invalid::new(argument, message)))
    }

    pub(crate) fn choice(argument: &'static str, message: impl Into<String>) -> Self {
        Error::Choice(Box::new(Invalid::new(argument, message)))
    }

    pub(crate) fn transport(message: impl Into<String>) -> Self {
        Error::Transport { message: message.into(), source: None }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn device(message: impl Into<String>) -> Self {
        Error::Device { message: message.into(), source: None }
    }

    pub(crate) fn codec(rank: usize, message: impl Into<String>) -> Self {
        Error::Codec { rank, message: message.into(), source: None }
    }

    pub(crate) fn wisdom(path: &Path, message: impl Into<String>) -> Self {
        Error::Wisdom { path: path.to_path_buf(), message: message.into(), source: None }
    }

    pub(crate) fn array(
        argument: &'static str,
        rank: impl Into<Option<usize>>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Error::Array { argument, rank: rank.into(), expected: expected.into(), got: got.into() }
    }

    /// Records the underlying error, in variants that have a source.
    pub(crate) fn caused_by(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        if let Error::Codec { source, .. }
        | Error::Transport { source, .. }
        | Error::Device { source, .. }
        | Error::Wisdom { source, .. }
        | Error::File { source, .. } = &mut self
        {
            *source = Some(Arc::new(cause));
        }
        self
    }

    /// Is this only the consequence of another rank's failure?
    pub(crate) fn is_echo(&self) -> bool {
        matches!(self, Error::RankLeft { .. })
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for Error {}

impl From<ferrier_plan::Error> for Error {
    fn from(error: ferrier_plan::Error) -> Self {
        use ferrier_plan::Error as Plan;
        match error {
            Plan::Problem(invalid) => Error::Problem(Box::new(invalid)),
            Plan::Layout(invalid) => Error::Layout(Box::new(invalid)),
            Plan::Choice(invalid) => Error::Choice(Box::new(invalid)),
            Plan::UnknownName { what, name, known } => Error::UnknownName { what, name, known },
            error => Error::other(error),
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
        Error::Io(Arc::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_sources_and_fields() {
        let cause = || std::io::Error::other("no such device");
        let error =
            Error::transport(format!("a thread could not be started: {}", cause())).caused_by(cause());
        let source = error.clone();
        assert_eq!(source.source().expect("a source").to_string(), "no such device");
        assert_eq!(error, source);
        let error = Error::array("input", 3, "12 real elements", "11");
        assert_eq!(error.to_string(), "the input of rank 3 must be 12 real elements, got 11");
        let error = Error::array("workspace", None, "64 bytes", "8");
        assert_eq!(error.to_string(), "the workspace must be 64 bytes, got 8");
        let nested = Error::other(Error::from(cause()));
        assert_eq!(nested.to_string(), "no such device");
        assert_ne!(nested, Error::from(cause()));
    }
}
