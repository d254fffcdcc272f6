//! How the command fails: one line and an exit code.

use std::fmt::Display;
use std::path::Path;

/// Exit code of bad input and of everything the machine refuses.
pub const BAD_INPUT: u8 = 2;
/// Exit code of a result that is not right.
pub const WRONG_RESULT: u8 = 1;

/// A failure, ready to be printed.
#[derive(Debug)]
pub struct Failure {
    /// One line, without the leading `ferrier: `.
    pub message: String,
    /// What the process exits with.
    pub code: u8,
    /// Every rank has this failure: the first one prints it.
    pub agreed: bool,
    /// The library's error behind it, which knows what is only the echo of another's.
    pub error: Option<ferrier::Error>,
}

/// `Result` with a [`Failure`].
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Bad input, or a machine that refuses.
    pub fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), code: BAD_INPUT, agreed: false, error: None }
    }

    /// A transform that came out wrong.
    pub fn wrong(message: impl Display) -> Self {
        Failure { code: WRONG_RESULT, ..Failure::new(message) }
    }

    /// As the library hands it from one in-process rank to the others.
    pub fn into_error(self) -> ferrier::Error {
        self.error.unwrap_or_else(|| ferrier::Error::other(self.message))
    }

    /// Did the ranks fail to talk to each other? All else that the library
    /// finds before it starts to work is the same on every rank.
    pub fn is_alone(&self) -> bool {
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

/// The failure of doing `what` to the file at `path`.
pub fn io_failure(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {}", path.display(), io_text(error)))
}

/// The system's words for an error, without Rust's "(os error 28)".
pub fn io_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// `Err` with a [`Failure`].
pub fn fail<T>(message: impl Display) -> Outcome<T> {
    Err(Failure::new(message))
}
