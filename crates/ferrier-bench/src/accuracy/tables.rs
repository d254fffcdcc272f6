//! The report as text, as CSV and as a chart.

use super::report::{AccuracyReport, AccuracyRow};
use crate::charts::chart::Chart;
use crate::table::{bytes, columns, distinct, plural, shape_text};

/// Numbers of ranks, ascending.
fn ranks(report: &AccuracyReport) -> Vec<usize> {
    let mut ranks: Vec<_> = report.rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The name of a row among those of one number of ranks.
fn name(row: &AccuracyRow) -> String {
    match &*row.codec {
        "raw" => format!("all {}", row.arithmetic),
        codec => format!("{} wire {codec}", row.arithmetic),
    }
}

/// A line for each name, a column for each number of ranks.
fn over_ranks(report: &AccuracyReport, of: impl Fn(&AccuracyRow) -> f64) -> String {
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
    columns(&heads, distinct(report.rows.iter().map(name)).into_iter().map(line))
}

/// The line of the chart that a row belongs to.
fn family(row: &AccuracyRow) -> String {
    match &*row.codec {
        "raw" => name(row),
        "f32" | "f16" | "bf16" => "casts".into(),
        codec => codec.split([':', '=']).next().unwrap_or(codec).into(),
    }
}

impl AccuracyReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let AccuracyReport { kind, data, in_layout, out_layout, exact, .. } = self;
        let mut out = format!(
            "{} {kind}, {data}, {in_layout} in, {out_layout} out; exact: {exact}\n",
            shape_text(&self.shape)
        );
        out += &format!("\nerror of the round trip\n{}", over_ranks(self, |row| row.error_l2));
        out += &format!("\nerror of the spectrum\n{}", over_ranks(self, |row| row.error_forward));
        let most = ranks(self).last().copied().unwrap_or(1);
        let line = |row: &AccuracyRow| {
            vec![
                name(row),
                row.bits.map_or("-".into(), |bits| format!("{bits:.1}")),
                format!("{:.2e}", row.error_forward),
                format!("{:.2e}", row.error_bound),
                bytes(row.wire_bytes),
            ]
        };
        let rows = self.rows.iter().filter(|row| row.ranks == most).map(line);
        let heads = ["", "bits", "error of the spectrum", "at most", "between ranks"];
        out + &format!("\n{}\n{}", plural(most, "rank"), columns(&heads, rows))
    }

    /// All rows as comma-separated values.
    pub fn csv(&self) -> String {
        let mut out =
            String::from("arithmetic,codec,ranks,error_l2,error_forward,error_bound,wire_bytes,bits\n");
        for row in &self.rows {
            let AccuracyRow {
                arithmetic,
                codec,
                ranks,
                error_l2,
                error_forward,
                error_bound,
                wire_bytes,
                bits,
            } = row;
            let bits = bits.map_or(String::new(), |bits| format!("{bits:.4}"));
            out += &format!(
                "{arithmetic},{codec},{ranks},{error_l2:e},{error_forward:e},{error_bound:e},{wire_bytes},{bits}\n"
            );
        }
        out
    }

    /// Error against bits, with a line for each family of codecs, for the most ranks, as SVG.
    pub fn svg(&self) -> String {
        let most = ranks(self).last().copied().unwrap_or(1);
        let shape = shape_text(&self.shape);
        let title = format!("{shape} {}, {}, {most} ranks: error of the spectrum", self.kind, self.data);
        let mut chart = Chart::new(title, "bits on the wire for each scalar", "relative L2 error");
        let own = || self.rows.iter().filter(|row| row.ranks == most);
        for line in distinct(own().map(family)) {
            let rows = own().filter(|row| family(row) == line);
            // Headers of chunks are a fraction of a bit.
            let mut points: Vec<_> = rows
                .filter_map(|row| row.bits.map(|bits| ((bits * 10.0).round() / 10.0, row.error_forward)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            chart.line(&line, points);
        }
        chart.svg(|bits| if bits % 8.0 == 0.0 { format!("{bits}") } else { String::new() })
    }
}
