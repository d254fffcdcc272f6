//! Output on stdout, on stderr and as JSON.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::failure::{Failure, Outcome, io_text};
use crate::files::text as text_file;

/// Prints to stdout. A closed pipe (`| head -1`) is not a failure.
///
/// # Errors
/// stdout cannot be written for another reason, such as a full disk.
pub fn say(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(newline.as_bytes()))
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {}", io_text(&error))))
        }
        _ => Ok(()),
    }
}

/// A bar drawn by a template. indicatif draws nothing where stderr is not a terminal. Without a ticking
/// thread, which would disturb timings.
pub fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Prints a failure to stderr, on one line.
pub fn complain(failure: &Failure) {
    let _ = writeln!(io::stderr().lock(), "ferrier: {}", failure.line());
}

/// Is this `-`, which means stdout?
pub fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path.as_os_str() == "-")
}

/// Checks that these files can be written; `-` is stdout. Called before long work.
///
/// # Errors
/// It cannot be written.
pub fn check<const N: usize>(paths: [&Option<PathBuf>; N]) -> Outcome {
    let files = paths.into_iter().flatten().filter(|path| path.as_os_str() != "-");
    files.map(PathBuf::as_path).try_for_each(text_file::check)
}

/// Writes text to a file, or to stdout if the path is `-`.
///
/// # Errors
/// It cannot be written; a file then keeps its contents.
pub fn write(path: &Path, text: &str) -> Outcome {
    if is_stdout(Some(path)) { say(text) } else { text_file::write(path, text) }
}

/// Writes a text to its file, if there is one.
///
/// # Errors
/// As [`write`].
pub fn optional(path: Option<&Path>, text: impl FnOnce() -> String) -> Outcome {
    path.map_or(Ok(()), |path| write(path, &text()))
}

/// Writes `value` as JSON to a file, or to stdout if the path is `-`.
///
/// # Errors
/// As [`write`].
pub fn json(path: &Path, value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
    write(path, &(text + "\n"))
}

/// Writes a report as JSON if a path is given, and prints its text unless the JSON is on stdout.
///
/// # Errors
/// As [`write`].
pub fn report(path: Option<&Path>, report: &impl Serialize, text: &str) -> Outcome {
    path.map_or(Ok(()), |path| json(path, report))?;
    if is_stdout(path) { Ok(()) } else { say(text) }
}
