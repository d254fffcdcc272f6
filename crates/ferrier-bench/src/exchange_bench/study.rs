//! Exchanges over lists of options, as one table.

use serde::Serialize;

use super::measure::{ExchangeReport, ExchangeSpeed, ReshapeTimes};
use crate::agree::RankGroup;
use crate::charts::chart::Chart;
use crate::table::{columns, digits, distinct};

/// A reshape under an exchange, in a study; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
pub struct ExchangeRow {
    /// The options that vary, and their values.
    varied: Vec<(String, String)>,
    #[serde(flatten)]
    group: RankGroup,
    #[serde(flatten)]
    times: ReshapeTimes,
}

impl ExchangeRow {
    /// The rows of a report.
    pub fn of(report: &ExchangeReport, varied: &[(String, String)]) -> Vec<ExchangeRow> {
        let all = report.reshapes.iter().chain(&report.sizes);
        let row = |times: &ReshapeTimes| ExchangeRow {
            varied: varied.to_vec(),
            group: report.group,
            times: times.clone(),
        };
        all.map(row).collect()
    }
}

/// Exchanges over lists of options; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct ExchangeStudy {
    /// What all rows have in common.
    pub title: String,
    /// All measurements.
    pub rows: Vec<ExchangeRow>,
}

/// Bytes to each rank that studies over ranks are drawn for, as in the literature.
const DRAWN: u64 = 80_000;

impl ExchangeStudy {
    fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let names = distinct(self.rows.iter().flat_map(|row| &row.varied).map(|(name, _)| name.clone()));
        let names: Vec<String> =
            names.into_iter().filter(|name| name != "ranks" && name != "exchange").collect();
        let mut heads: Vec<String> = ["ranks", "nodes"].map(String::from).to_vec();
        heads.extend(names.clone());
        let rest =
            ["what", "exchange", "bytes per pair", "best ms", "median ms", "GB/s per rank", "GB/s per node"];
        heads.extend(rest.map(String::from));
        let line = |row: &ExchangeRow| {
            let mut cells = vec![row.group.ranks.to_string(), row.group.nodes.to_string()];
            let value = |name: &String| {
                row.varied.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
            };
            cells.extend(names.iter().map(|name| value(name).unwrap_or_default()));
            let ReshapeTimes { what, exchange, bytes_per_pair, speed, .. } = &row.times;
            cells.extend([what.clone(), exchange.to_string(), bytes_per_pair.to_string()]);
            let of = |of: fn(&ExchangeSpeed) -> f64| {
                speed.as_ref().map_or(String::new(), |speed| digits(of(speed)))
            };
            cells.extend([of(|speed| speed.times.best_ms), of(|speed| speed.times.median_ms)]);
            cells.extend([of(|speed| speed.gb_s_per_rank), of(|speed| speed.gb_s_per_node)]);
            cells
        };
        (heads, self.rows.iter().map(line).collect())
    }

    /// A table of all rows.
    pub fn text(&self) -> String {
        let (heads, cells) = self.cells();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        format!("{}\n\n{}", self.title, columns(&heads, cells))
    }

    /// All rows as comma-separated values.
    pub fn csv(&self) -> String {
        let (heads, cells) = self.cells();
        let heads = heads.iter().map(|head| head.replace([' ', '/'], "_").to_lowercase()).collect();
        let quoted = |cell: &String| if cell.contains(',') { format!("\"{cell}\"") } else { cell.clone() };
        let line = |cells: &Vec<String>| cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&heads).chain(&cells).map(line).collect()
    }

    /// Bandwidth of a node for 80 KB to each rank, over ranks, with a line for each exchange, as SVG.
    pub fn svg(&self) -> String {
        let title = format!("{}: 80 KB from each rank to each other", self.title);
        let mut chart = Chart::new(title, "ranks", "GB/s per node");
        let name = |row: &ExchangeRow| {
            let kept = row.varied.iter().filter(|(name, _)| name != "ranks" && name != "exchange");
            let words = kept.map(|(name, value)| format!("{name} {value}"));
            std::iter::once(row.times.exchange.to_string()).chain(words).collect::<Vec<_>>().join(", ")
        };
        let drawn = || self.rows.iter().filter(|row| row.times.bytes_per_pair == DRAWN);
        for line in distinct(drawn().map(name)) {
            let own = drawn().filter(|row| name(row) == line);
            let point = |row: &ExchangeRow| Some((row.group.ranks as f64, row.times.speed?.gb_s_per_node));
            let mut points: Vec<_> = own.filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            chart.line(&line, points);
        }
        chart.svg(|ranks| format!("{ranks}"))
    }
}
