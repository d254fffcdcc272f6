//! Failures of the command.

use std::path::Path;

pub use ferrier_bench::failure::{BAD_INPUT, Failure, Outcome, fail, io_text};

/// The failure to `verb` (read, write) the file at `path`.
pub fn io_failure(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}: {}", path.display(), io_text(error)))
}
