//! The report of the benchmark, as JSON, text, CSV and a chart.

use serde::Serialize;

use super::field::Data;
use crate::charts::chart::Chart;
use crate::failure::Failure;
use crate::table::{bytes, columns, distinct, plural, shape_text};

/// The errors of one transform; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyRow {
    /// Precision of data and arithmetic.
    pub arithmetic: &'static str,
    /// The codec.
    pub codec: String,
    /// The exchange.
    pub exchange: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Of the round trip: distance from the data over their norm.
    pub error_l2: f64,
    /// Of the spectrum: distance from the exact one over its norm.
    pub error_forward: f64,
    /// Bound of the error of the spectrum: loss of the codec and the worst case of rounding.
    pub error_bound: f64,
    /// Bytes between ranks in one forward transform.
    pub wire_bytes: u64,
    /// Bits for each scalar sent between ranks; null if none is sent.
    pub bits: Option<f64>,
    /// Median time of a forward transform, in milliseconds.
    pub median_ms: f64,
}

impl AccuracyRow {
    /// The failure of an error above its bound.
    pub fn above_bound(&self, data: Data) -> Option<Failure> {
        // Values of the smooth function are rounded, its known spectrum is that of exact values.
        let rounding = if self.arithmetic == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let allowed = self.error_bound + if data == Data::Smooth { 4.0 * rounding } else { 0.0 };
        let within = self.error_forward <= allowed;
        (!within).then(|| {
            Failure::wrong(format!(
                "{} with codec {} on {} ranks: the error {:.2e} is above its bound {:.2e}",
                self.arithmetic, self.codec, self.ranks, self.error_forward, self.error_bound
            ))
        })
    }
}

/// The report of the benchmark; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct AccuracyReport {
    /// Lengths of the user's axes.
    pub shape: Vec<usize>,
    /// `c2c` or `r2c`.
    pub kind: &'static str,
    /// `noise` or `smooth`.
    pub data: &'static str,
    /// The reference that errors of the spectrum are measured against.
    pub exact: &'static str,
    /// Layout of the input.
    pub in_layout: String,
    /// Layout of the output.
    pub out_layout: String,
    /// Where arrays lie: `cpu`, `cuda`.
    pub device: String,
    /// The exchanges that were asked for, if several were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<String>,
    /// All transforms.
    pub rows: Vec<AccuracyRow>,
}

/// Numbers of ranks, ascending.
fn ranks(report: &AccuracyReport) -> Vec<usize> {
    let mut ranks: Vec<_> = report.rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The name of a row among those of one number of ranks.
fn name(report: &AccuracyReport, row: &AccuracyRow) -> String {
    let name = match &*row.codec {
        "raw" => format!("all {}", row.arithmetic),
        codec => format!("{} wire {codec}", row.arithmetic),
    };
    // One rank sends nothing: it has one row for all exchanges.
    match report.exchanges.len() > 1 && row.ranks > 1 {
        true => format!("{name}, {}", row.exchange),
        false => name,
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
            let row = report.rows.iter().find(|row| row.ranks == *ranks && name(report, row) == line);
            row.map_or(String::new(), |row| format!("{:.2e}", of(row)))
        };
        let cells: Vec<String> = all.iter().map(cell).collect();
        [vec![line], cells].concat()
    };
    columns(&heads, distinct(report.rows.iter().map(|row| name(report, row))).into_iter().map(line))
}

/// The line of the chart that a row belongs to.
fn family(report: &AccuracyReport, row: &AccuracyRow) -> String {
    let family = match &*row.codec {
        "raw" => return name(report, row),
        "f32" | "f16" | "bf16" => "casts",
        codec => codec.split([':', '=']).next().unwrap_or(codec),
    };
    match report.exchanges.len() > 1 {
        true => format!("{family}, {}", row.exchange),
        false => family.into(),
    }
}

impl AccuracyReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let AccuracyReport { kind, data, in_layout, out_layout, exact, device, .. } = self;
        let place = if device == "cpu" { String::new() } else { format!(" on {device}") };
        let mut out = format!(
            "{} {kind}{place}, {data}, {in_layout} in, {out_layout} out; exact: {exact}\n",
            shape_text(&self.shape)
        );
        out += &format!("\nerror of the round trip\n{}", over_ranks(self, |row| row.error_l2));
        out += &format!("\nerror of the spectrum\n{}", over_ranks(self, |row| row.error_forward));
        let most = ranks(self).last().copied().unwrap_or(1);
        let of_most = || self.rows.iter().filter(|row| row.ranks == most);
        // The acceleration that the bytes allow, and that of the whole transform, against all f64.
        let double = of_most().find(|row| row.arithmetic == "f64" && row.codec == "raw");
        let times = |of: fn(&AccuracyRow) -> f64, row: &AccuracyRow| match double.map(of) {
            Some(all) if all > 0.0 && of(row) > 0.0 => format!("{:.2}", all / of(row)),
            _ => "-".into(),
        };
        let line = |row: &AccuracyRow| {
            vec![
                name(self, row),
                row.bits.map_or("-".into(), |bits| format!("{bits:.1}")),
                format!("{:.2e}", row.error_forward),
                format!("{:.2e}", row.error_bound),
                bytes(row.wire_bytes),
                times(|row| row.wire_bytes as f64, row),
                times(|row| row.median_ms, row),
            ]
        };
        let rows = of_most().map(line);
        let heads =
            ["", "bits", "error of the spectrum", "at most", "between ranks", "faster by bytes", "measured"];
        out + &format!("\n{}\n{}", plural(most, "rank"), columns(&heads, rows))
    }

    /// All rows as comma-separated values.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "arithmetic,codec,ranks,error_l2,error_forward,error_bound,wire_bytes,bits,median_ms,exchange\n",
        );
        for row in &self.rows {
            let AccuracyRow { arithmetic, codec, exchange, ranks, wire_bytes, .. } = row;
            let errors = [row.error_l2, row.error_forward, row.error_bound].map(|error| format!("{error:e}"));
            let bits = row.bits.map_or(String::new(), |bits| format!("{bits:.4}"));
            let ms = row.median_ms;
            out += &format!(
                "{arithmetic},{codec},{ranks},{},{wire_bytes},{bits},{ms:.4},{exchange}\n",
                errors.join(",")
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
        for line in distinct(own().map(|row| family(self, row))) {
            let rows = own().filter(|row| family(self, row) == line);
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
