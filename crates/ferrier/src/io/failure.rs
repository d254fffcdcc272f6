//! Errors of files: texts, and the same error on every rank.

use std::io;
use std::path::Path;

use crate::{Comm, Error, Result};

/// The text of a system error, without Rust's "(os error 28)".
pub fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// A file that cannot be read or written (`verb`), and why.
pub(crate) fn cannot(verb: &str, path: &Path, why: impl std::fmt::Display) -> Error {
    Error::File {
        path: path.into(),
        message: format!("cannot {verb} {}: {why}", path.display()),
        source: None,
    }
}

/// As [`cannot`], for an error of the system.
pub(crate) fn cannot_io(verb: &str, path: &Path, error: io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file has become shorter".to_string(),
        _ => io_text(&error),
    };
    cannot(verb, path, text).caused_by(error)
}

/// The same outcome on every rank: the error of the lowest rank that has one. Its message names the rank where
/// `name_rank` is set and not all ranks have this error. Collective.
pub(crate) fn agree<T>(comm: &Comm, path: &Path, outcome: Result<T>, name_rank: bool) -> Result<T> {
    // Ranks that cannot communicate cannot agree.
    let broken = |error: &Error| {
        matches!(error, Error::Transport { .. } | Error::RankLeft { .. } | Error::RankPanicked { .. })
    };
    if comm.size() == 1 || outcome.as_ref().is_err_and(broken) {
        return outcome;
    }
    let own = outcome.as_ref().err().map_or(String::new(), Error::to_string);
    let all = comm.all_gather(own.as_bytes())?;
    let Some(rank) = all.iter().position(|text| !text.is_empty()) else { return outcome };
    let text = String::from_utf8_lossy(&all[rank]);
    let common = !name_rank || all.iter().all(|other| *other == all[rank]);
    let message = if common { text.into_owned() } else { format!("rank {rank} of {}: {text}", all.len()) };
    match outcome {
        Err(error) if error.to_string() == message => Err(error),
        _ => Err(Error::File { path: path.into(), message, source: None }),
    }
}
