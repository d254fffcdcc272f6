//! What is printed, and how.

use std::io::{self, Write};
use std::path::Path;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::failure::{Failure, Outcome, io_text};
use crate::output;

/// Prints to stdout. A reader that has gone away (`| head -1`) is no failure.
///
/// # Errors
/// stdout cannot be written for another reason: a full disk.
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

/// Prints a failure to stderr, on one line.
pub fn complain(failure: &Failure) {
    let _ = writeln!(io::stderr().lock(), "ferrier: {}", failure.line());
}

/// Can [`json`] write there?
///
/// # Errors
/// It cannot.
pub fn check_json(path: Option<&Path>) -> Outcome {
    path.filter(|path| path.as_os_str() != "-").map_or(Ok(()), output::check_text)
}

/// Writes `value` as JSON to a file, or to stdout if the path is `-`.
///
/// # Errors
/// It cannot be written; a file is then as it was.
pub fn json(path: &Path, value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
    if path.as_os_str() == "-" { say(&text) } else { output::write_text(path, &(text + "\n")) }
}

/// A table of two columns without lines: what, and how much.
pub fn pairs(rows: &[(&str, String)]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for (what, value) in rows {
        table.add_row([*what, value]);
    }
    trimmed(&table)
}

/// A table with a header; all columns but the first are numbers.
pub fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let cell = |(at, text): (usize, String)| match at {
        0 => Cell::new(text),
        _ => Cell::new(text).set_alignment(CellAlignment::Right),
    };
    table.set_header(header.iter().map(|text| text.to_string()).enumerate().map(cell));
    for row in rows {
        table.add_row(row.iter().cloned().enumerate().map(cell));
    }
    trimmed(&table)
}

fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

/// Bytes for people: `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{} {}", digits(value), units[unit]) }
}

/// Three significant digits, without an exponent where none is needed.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        x if x >= 100.0 => format!("{value:.0}"),
        x if x >= 10.0 => format!("{value:.1}"),
        x if x >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(1536), "1.500 KiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(digits(12.345), "12.3");
        assert_eq!(digits(1.2e-16), "1.2e-16");
    }
}
