//! `ferrier accuracy` for people, for tables and as a drawing.

use super::{Report, Row};
use crate::chart::Chart;
use crate::report::{self, bytes};

/// Numbers of ranks, ascending.
fn ranks(report: &Report) -> Vec<usize> {
    let mut ranks: Vec<_> = report.rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// What tells rows of one number of ranks apart.
fn name(row: &Row) -> String {
    match &*row.codec {
        "raw" => format!("all {}", row.arithmetic),
        codec => format!("{} wire {codec}", row.arithmetic),
    }
}

/// Names in the order of their first rows.
fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in report.rows.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A line for each name, a column for each number of ranks.
fn over_ranks(report: &Report, of: impl Fn(&Row) -> f64) -> String {
    let all = ranks(report);
    let mut heads = vec![String::from("ranks")];
    heads.extend(all.iter().map(usize::to_string));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let line = |line: String| {
        let cell = |ranks: &usize| {
            let row = report.rows.iter().find(|row| row.ranks == *ranks && name(row) == line);
            row.map_or(String::new(), |row| format!("{:.2e}", of(row)))
        };
        let cells: Vec<String> = all.iter().map(cell).collect();
        [vec![line], cells].concat()
    };
    report::columns(&heads, &names(report).into_iter().map(line).collect::<Vec<_>>())
}

/// For people.
pub fn text(report: &Report) -> String {
    let shape = report.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let Report { kind, data, in_layout, out_layout, exact, .. } = report;
    let mut out = format!("{shape} {kind}, {data}, {in_layout} in, {out_layout} out; exact: {exact}\n");
    out += &format!("\nerror of the round trip\n{}", over_ranks(report, |row| row.error_l2));
    out += &format!("\nerror of the spectrum\n{}", over_ranks(report, |row| row.error_forward));
    let most = ranks(report).last().copied().unwrap_or(1);
    let line = |row: &Row| {
        vec![
            name(row),
            row.bits.map_or("-".into(), |bits| format!("{bits:.1}")),
            format!("{:.2e}", row.error_forward),
            format!("{:.2e}", row.error_bound),
            bytes(row.wire_bytes),
        ]
    };
    let rows: Vec<_> = report.rows.iter().filter(|row| row.ranks == most).map(line).collect();
    let heads = ["", "bits", "error of the spectrum", "at most", "between ranks"];
    out + &format!("\n{most} rank{}\n{}", if most == 1 { "" } else { "s" }, report::columns(&heads, &rows))
}

/// All rows, comma-separated.
pub fn csv(report: &Report) -> String {
    let mut out = String::from("arithmetic,codec,ranks,error_l2,error_forward,error_bound,wire_bytes,bits\n");
    for row in &report.rows {
        let Row { arithmetic, codec, ranks, error_l2, error_forward, error_bound, wire_bytes, bits } = row;
        let bits = bits.map_or(String::new(), |bits| format!("{bits:.4}"));
        out += &format!(
            "{arithmetic},{codec},{ranks},{error_l2:e},{error_forward:e},{error_bound:e},{wire_bytes},{bits}\n"
        );
    }
    out
}

/// The line of the drawing that a row belongs to.
fn family(row: &Row) -> String {
    match &*row.codec {
        "raw" => name(row),
        "f32" | "f16" | "bf16" => "casts".into(),
        codec => codec.split([':', '=']).next().unwrap_or(codec).into(),
    }
}

/// Error against bits, a line for each family of codecs, for the most ranks.
pub fn svg(report: &Report) -> String {
    let most = ranks(report).last().copied().unwrap_or(1);
    let shape = report.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let title = format!("{shape} {}, {}, {most} ranks: error of the spectrum", report.kind, report.data);
    let mut chart = Chart::new(title, "bits on the wire for each number", "relative L2 error");
    let own = || report.rows.iter().filter(|row| row.ranks == most);
    let mut families: Vec<String> = Vec::new();
    for family in own().map(family) {
        if !families.contains(&family) {
            families.push(family);
        }
    }
    for line in families {
        let rows = own().filter(|row| family(row) == line);
        // Headers of chunks move points by less than can be seen.
        let mut points: Vec<_> = rows
            .filter_map(|row| row.bits.map(|bits| ((bits * 10.0).round() / 10.0, row.error_forward)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart.line(&line, points);
    }
    chart.svg(|bits| if bits % 8.0 == 0.0 { format!("{bits}") } else { String::new() })
}
