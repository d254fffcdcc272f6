//! Errors of planning: an invalid problem, layout or choice.

use std::fmt;

/// `Result` with the planning [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why something cannot be planned. Messages are one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid shape, axis, batch or scale.
    #[error("{0}")]
    Problem(Invalid),

    /// Boxes that do not tile the shape, or a grid that does not fit the number of ranks.
    #[error("{0}")]
    Layout(Invalid),

    /// A choice (grid, order of axes, number of ranks) that does not fit the problem.
    #[error("{0}")]
    Choice(Invalid),

    /// An unknown name.
    #[error("unknown {what} `{name}`; known are: {known}")]
    UnknownName {
        /// What the name stands for: "exchange", "kernel", "kind".
        what: &'static str,
        /// The given name.
        name: String,
        /// The known names, separated by commas.
        known: String,
    },
}

/// An invalid argument. `Display` writes the message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invalid {
    /// The method or field that set the argument, such as `axes` or `grid`.
    pub argument: &'static str,
    /// The whole message, one line.
    pub message: String,
    /// The accepted values, where they can be said in a few words.
    pub expected: Option<String>,
    /// The given value.
    pub got: Option<String>,
}

impl Invalid {
    /// An invalid `argument`, described by `message`.
    pub fn new(argument: &'static str, message: impl Into<String>) -> Invalid {
        Invalid { argument, message: message.into(), expected: None, got: None }
    }

    /// Adds the accepted values.
    #[must_use]
    pub fn expected(mut self, expected: impl fmt::Display) -> Invalid {
        self.expected = Some(expected.to_string());
        self
    }

    /// Adds the given value.
    #[must_use]
    pub fn got(mut self, got: impl fmt::Display) -> Invalid {
        self.got = Some(got.to_string());
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Invalid {}
