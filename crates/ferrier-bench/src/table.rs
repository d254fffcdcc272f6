//! Tables and numbers as text.

use comfy_table::{Cell, CellAlignment, Table, presets};
use ferrier::wisdom::EntryRef;

/// The notes of a plan as lines, except that of the cost model, which every plan has.
pub fn notes_text(notes: &[String]) -> String {
    substitutions(notes).map(|note| format!("note: {note}\n")).collect()
}

/// The notes of a plan that tell of a substitution.
pub fn substitutions(notes: &[String]) -> impl Iterator<Item = &str> {
    notes.iter().map(String::as_str).filter(|note| !note.starts_with("cost model:"))
}

/// A table of two columns without rules: names and values.
pub fn pairs(rows: &[(&str, String)]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for (what, value) in rows {
        table.add_row([*what, value]);
    }
    trimmed(&table)
}

/// A table with a header; all columns but the first are aligned to the right.
pub fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let cell = |(at, text): (usize, String)| match at {
        0 => Cell::new(text),
        _ => Cell::new(text).set_alignment(CellAlignment::Right),
    };
    table.set_header(header.iter().map(|text| text.to_string()).enumerate().map(cell));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(cell));
    }
    trimmed(&table)
}

/// A table with a header; all columns are aligned to the left.
pub fn left_columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|text| text.to_string()).collect();
    let all = || std::iter::once(&header).chain(rows);
    let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:width$} "));
        cells.collect::<String>().trim_end().to_string() + "\n"
    };
    all().map(line).collect()
}

fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

/// A number of bytes with a binary unit: `1.5 MiB`.
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

/// A count with its noun: `1 rank`, `2 ranks`.
pub fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Lengths of axes: `256x256x128`.
pub fn shape_text(lengths: &[usize]) -> String {
    lengths.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

/// Names in the order in which they come first.
pub fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
    list
}

/// The entry of wisdom that a plan was made from, and its age.
pub fn wisdom_line(known: Option<&EntryRef>) -> String {
    match known {
        Some(known) => {
            let age = age(known.age());
            format!("wisdom: used (entry {} of {}, {age} old)\n", known.id, known.file.display())
        }
        None => "wisdom: none\n".into(),
    }
}

/// A number of seconds as text: `5 minutes`.
pub fn age(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(count as usize, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_nouns_agree() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(1536), "1.500 KiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(digits(12.345), "12.3");
        assert_eq!(digits(1.2e-16), "1.2e-16");
        assert_eq!((plural(1, "rank"), plural(0, "rank")), ("1 rank".into(), "0 ranks".into()));
        assert_eq!(shape_text(&[4, 5]), "4x5");
        assert_eq!(left_columns(&["a", "b"], &[vec!["long".into(), "x".into()]]), " a     b\n long  x\n");
    }
}
