//! What can be wrong with a problem, a layout or a choice.

/// `Result` with the planning [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why something cannot be planned. Messages are one line.
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

    /// A name that does not exist.
    #[error("unknown {what} `{name}`; known are: {known}")]
    UnknownName {
        /// What was named: "exchange", "kernel", "kind".
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },
}
