//! Studies: transforms timed over lists of ranks, shapes, exchanges, codecs and other options, as one table with
//! speed-up and efficiency.

use serde::Serialize;

use crate::charts::chart::Chart;
use crate::contest::{BenchReport, CandidateResult};
use crate::table::{columns, digits, distinct};
use crate::timing::Times;

/// One measurement of a study; the keys are part of the contract.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StudyRow {
    /// The options that vary, and their values here.
    pub varied: Vec<(String, String)>,
    /// The variant of overlap, or the peer; `None`: Ferrier's plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// Number of ranks, nodes, and threads of a rank.
    pub ranks: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Threads of each rank.
    pub threads: usize,
    /// Times of forward transforms; absent if this combination cannot run.
    #[serde(flatten)]
    pub forward: Option<Times>,
    /// The median of backward transforms.
    pub backward_ms: Option<f64>,
    /// Speed of forward transforms.
    pub gflops: Option<f64>,
    /// Speed over that of the fewest ranks with the same other options; without a list of ranks, over the first row.
    pub speed_up: Option<f64>,
    /// Speed-up over the ratio of ranks.
    pub efficiency: Option<f64>,
    /// Exchange, codec, kernel, and the layouts between reshapes, as the planner chose.
    pub exchange: String,
    /// The codec.
    pub codec: String,
    /// The kernel.
    pub kernel: String,
    /// Bytes between ranks in one forward transform, as encoded.
    pub wire_bytes: u64,
    /// Relative error of the spectrum.
    pub error_forward: Option<f64>,
    /// Milliseconds of planning.
    pub planning_ms: Option<f64>,
    /// Seconds of tuning, of a variant.
    pub tuning_seconds: Option<f64>,
    /// Why this combination cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl StudyRow {
    /// Adds the measurements of a plan. `flops`: of one forward transform.
    pub fn measured(mut self, candidate: &CandidateResult, flops: f64) -> Self {
        let times = Times::new(&candidate.forward);
        self.gflops = Some(flops / times.median_ms / 1e6);
        self.forward = Some(times);
        self.backward_ms = Some(Times::new(&candidate.backward).median_ms);
        (self.exchange, self.codec) = (candidate.exchange.clone(), candidate.codec.clone());
        (self.kernel, self.wire_bytes) = (candidate.kernel.clone(), candidate.wire_bytes);
        self.error_forward = Some(candidate.error_forward);
        self.planning_ms = Some(candidate.planning_ms);
        self
    }

    /// The varied options and the variant or peer, without the number of ranks (and the shape, which grows with it).
    fn series(&self, weak: bool) -> String {
        let kept = self.varied.iter().filter(|(name, _)| name != "ranks" && !(weak && name == "shape"));
        let words = kept.map(|(name, value)| format!("{name} {value}")).chain(self.who.clone());
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The report of a study; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct StudyReport {
    /// The command's words that all rows have in common.
    pub title: String,
    /// Arrays grow with the ranks.
    pub weak: bool,
    /// All measurements.
    pub rows: Vec<StudyRow>,
}

impl StudyReport {
    /// A report of these rows, with speed-up and efficiency.
    pub fn new(title: String, weak: bool, mut rows: Vec<StudyRow>) -> Self {
        let over_ranks = rows.iter().any(|row| row.ranks != rows[0].ranks);
        let reference: Vec<Option<(f64, usize)>> = rows
            .iter()
            .map(|row| {
                let mut same = rows.iter().filter(|other| match over_ranks {
                    true => other.series(weak) == row.series(weak) && (weak || other.shape == row.shape),
                    false => true,
                });
                let base = match over_ranks {
                    true => same.filter(|other| other.gflops.is_some()).min_by_key(|other| other.ranks),
                    false => same.find(|other| other.gflops.is_some()),
                };
                base.and_then(|base| Some((base.gflops?, base.ranks)))
            })
            .collect();
        for (row, reference) in rows.iter_mut().zip(reference) {
            if let (Some(gflops), Some((base, ranks))) = (row.gflops, reference) {
                row.speed_up = Some(gflops / base);
                row.efficiency = Some(gflops / base * ranks as f64 / row.ranks as f64).filter(|_| over_ranks);
            }
        }
        StudyReport { title, weak, rows }
    }

    /// Names of the options that vary.
    fn names(&self) -> Vec<String> {
        distinct(self.rows.iter().flat_map(|row| &row.varied).map(|(name, _)| name.clone()))
    }

    /// The cells of all rows, and their heads.
    fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let names = self.names();
        let who = self.rows.iter().any(|row| row.who.is_some());
        let tuned = self.rows.iter().any(|row| row.tuning_seconds.is_some());
        let mut heads = names.clone();
        heads.extend(who.then(|| "who".into()));
        let rest = [
            "best ms",
            "median ms",
            "backward ms",
            "Gflop/s",
            "speed-up",
            "efficiency",
            "error",
            "bytes between ranks",
            "planning ms",
        ];
        heads.extend(rest.map(String::from));
        heads.extend(tuned.then(|| "tuning s".into()));
        let cells = |row: &StudyRow| {
            let value = |name: &String| {
                row.varied.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
            };
            let mut cells: Vec<String> = names.iter().map(|name| value(name).unwrap_or_default()).collect();
            cells.extend(who.then(|| row.who.clone().unwrap_or_else(|| "ferrier".into())));
            let shown = |value: Option<f64>| value.map_or(String::new(), digits);
            let [best, median] =
                [row.forward.map(|times| times.best_ms), row.forward.map(|times| times.median_ms)];
            let all =
                [best, median, row.backward_ms, row.gflops, row.speed_up, row.efficiency, row.error_forward];
            cells.extend(all.map(shown));
            cells.push(if row.exchange.is_empty() { String::new() } else { row.wire_bytes.to_string() });
            cells.push(shown(row.planning_ms));
            cells.extend(tuned.then(|| shown(row.tuning_seconds)));
            cells
        };
        (heads, self.rows.iter().map(cells).collect())
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let (heads, cells) = self.cells();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut out = format!(
            "{}{}\n\n{}",
            self.title,
            if self.weak { ", weak scaling" } else { "" },
            columns(&heads, cells)
        );
        for row in self.rows.iter().filter(|row| row.note.is_some()) {
            let note = row.note.as_deref().unwrap_or_default();
            out += &format!("\nnot run: {} ranks, {}: {note}\n", row.ranks, row.series(false));
        }
        out
    }

    /// All rows as comma-separated values.
    pub fn csv(&self) -> String {
        let (heads, cells) = self.cells();
        let mut heads: Vec<String> =
            heads.iter().map(|head| head.replace([' ', '/'], "_").to_lowercase()).collect();
        for name in
            ["ranks", "nodes", "threads"].iter().filter(|name| !self.names().contains(&(**name).to_string()))
        {
            heads.push((*name).into());
        }
        let quoted = |cell: &String| if cell.contains(',') { format!("\"{cell}\"") } else { cell.clone() };
        let line = |cells: &[String]| cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        let mut out = line(&heads);
        for (row, mut cells) in self.rows.iter().zip(cells) {
            let more = [("ranks", row.ranks), ("nodes", row.nodes), ("threads", row.threads)];
            let more = more.into_iter().filter(|(name, _)| !self.names().contains(&(*name).to_string()));
            cells.extend(more.map(|(_, count)| count.to_string()));
            out += &line(&cells);
        }
        out
    }

    /// Speed over ranks (or over the elements of the array, or over the rows), with a line for each combination of the
    /// other options, as SVG.
    pub fn svg(&self) -> String {
        let differs =
            |of: &dyn Fn(&StudyRow) -> usize| self.rows.iter().any(|row| of(row) != of(&self.rows[0]));
        let elements = |row: &StudyRow| row.shape.iter().product::<usize>();
        let over_ranks = differs(&|row| row.ranks);
        let over_shapes = !over_ranks && differs(&elements);
        let across = match (over_ranks, over_shapes) {
            (true, _) => "ranks",
            (_, true) => "elements",
            _ => "row",
        };
        let mut chart = Chart::new(self.title.clone(), across, "Gflop/s");
        let series = |row: &StudyRow| match over_ranks || over_shapes {
            true => {
                let all = row.series(self.weak || over_shapes);
                if all.is_empty() { "ferrier".into() } else { all }
            }
            false => "ferrier".into(),
        };
        for line in distinct(self.rows.iter().map(series)) {
            let own = self.rows.iter().enumerate().filter(|(_, row)| series(row) == line);
            let place = |(number, row): (usize, &StudyRow)| {
                let x = match (over_ranks, over_shapes) {
                    (true, _) => row.ranks,
                    (_, true) => elements(row),
                    _ => number + 1,
                };
                Some((x as f64, row.gflops?))
            };
            let mut points: Vec<_> = own.filter_map(place).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            chart.line(&line, points);
        }
        chart.svg(|x| format!("{x}"))
    }
}

/// Rows of the variants and peers of a contest.
pub fn other_rows(base: &StudyRow, report: &BenchReport<'_>, flops: f64) -> Vec<StudyRow> {
    let row = |(who, times, planning_ms, tuning): (String, Times, Option<f64>, Option<f64>)| StudyRow {
        who: Some(who),
        forward: Some(times),
        gflops: Some(flops / times.median_ms / 1e6),
        planning_ms,
        tuning_seconds: tuning,
        ..base.clone()
    };
    report.others().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranks: usize, codec: &str, ms: f64) -> StudyRow {
        let times = Times { best_ms: ms, median_ms: ms };
        StudyRow {
            varied: vec![("ranks".into(), ranks.to_string()), ("codec".into(), codec.into())],
            shape: vec![8, 8, 8],
            ranks,
            forward: Some(times),
            gflops: Some(12.0 / ms),
            ..StudyRow::default()
        }
    }

    #[test]
    fn speed_up_is_that_over_the_fewest_ranks() {
        let rows = vec![row(1, "raw", 12.0), row(1, "f32", 8.0), row(4, "raw", 4.0), row(4, "f32", 4.0)];
        let lost = StudyRow { gflops: None, forward: None, note: Some("why".into()), ..row(8, "raw", 1.0) };
        let report = StudyReport::new("8".into(), false, rows.into_iter().chain([lost]).collect());
        let all: Vec<_> = report.rows.iter().map(|row| (row.speed_up, row.efficiency)).collect();
        assert_eq!(all[..2], [(Some(1.0), Some(1.0)), (Some(1.0), Some(1.0))]);
        assert_eq!(all[2..], [(Some(3.0), Some(0.75)), (Some(2.0), Some(0.5)), (None, None)]);
        assert!(report.text().contains("not run: 8 ranks, codec raw: why"), "{}", report.text());
        assert_eq!(report.csv().lines().count(), 6);
        assert!(report.csv().starts_with("ranks,codec,best_ms,median_ms"), "{}", report.csv());
        assert!(report.svg().contains("codec f32") && !report.svg().contains("NaN"));
    }
}
