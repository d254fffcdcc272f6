//! Errors as the command prints them: one line and an exit code.

use std::fmt::Display;

pub use ferrier::io::io_text;

/// Exit code of bad input and of refused system calls.
pub const BAD_INPUT: u8 = 2;
/// Exit code of a wrong result.
pub const WRONG_RESULT: u8 = 1;

/// A failure, ready to be printed.
#[derive(Debug)]
pub struct Failure {
    /// One line, without the leading `ferrier: `.
    pub message: String,
    /// The exit code of the process.
    pub code: u8,
    /// Every rank has this failure: only the first one prints it.
    pub agreed: bool,
    /// The library's error, if there is one. It tells the cause from its consequences on other ranks.
    pub error: Option<ferrier::Error>,
}

/// `Result` with a [`Failure`].
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Bad input, or a refused system call.
    pub fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), code: BAD_INPUT, agreed: false, error: None }
    }

    /// A wrong result.
    pub fn wrong(message: impl Display) -> Self {
        Failure { code: WRONG_RESULT, ..Failure::new(message) }
    }

    /// The library's error, which in-process ranks return to each other.
    pub fn into_error(self) -> ferrier::Error {
        self.error.unwrap_or_else(|| ferrier::Error::other(self.message))
    }

    /// Did communication between the ranks fail? All other errors that the
    /// library returns before it starts to work are the same on every rank.
    pub fn is_communication(&self) -> bool {
        use ferrier::Error::{RankLeft, RankPanicked, Transport};
        matches!(self.error, Some(Transport { .. } | RankLeft { .. } | RankPanicked { .. }))
    }

    /// The message on one line, whatever file names or libraries put in it.
    pub fn line(&self) -> String {
        let mut line = String::with_capacity(self.message.len());
        for c in self.message.trim().chars() {
            if c.is_control() {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
        line
    }
}

impl From<ferrier::PlanError> for Failure {
    fn from(error: ferrier::PlanError) -> Self {
        ferrier::Error::from(error).into()
    }
}

impl From<ferrier::Error> for Failure {
    fn from(error: ferrier::Error) -> Self {
        Failure { error: Some(error.clone()), ..Failure::new(error) }
    }
}

/// `Err` with a [`Failure`].
///
/// # Errors
/// Always.
pub fn fail<T>(message: impl Display) -> Outcome<T> {
    Err(Failure::new(message))
}

/// The entry called `name` of a table; `what` is the noun of its entries.
///
/// # Errors
/// Lists the known names.
pub fn find<T>(
    what: &str,
    table: &'static [T],
    named: fn(&T) -> &'static str,
    name: &str,
) -> Outcome<&'static T> {
    table.iter().find(|entry| named(entry) == name).ok_or_else(|| {
        let known = table.iter().map(named).collect::<Vec<_>>().join(", ");
        Failure::new(format!("unknown {what} `{name}`; known are: {known}"))
    })
}
