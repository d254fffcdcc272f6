//! What `ferrier tune` reports, on cores and on GPUs.

use std::path::Path;

use ferrier::Choice;
use ferrier::tune::{Trial, TrialStatus};
use ferrier_bench::charts::spread::Spread;
use ferrier_bench::table::{columns, digits, left_columns, pairs};
use ferrier_bench::tiling::{is_tiled, paper_text};
use serde::Serialize;

use super::choice_text::choice_text;

/// An entry of another wisdom file for the problem.
#[derive(Debug, Serialize)]
pub struct Cross {
    pub cpu: String,
    pub transport: String,
    pub choice: Choice,
    /// Times of the own and the other choice, run in turn here; null if the other cannot run here.
    pub own_ms: Option<f64>,
    pub their_ms: Option<f64>,
}

/// The report of the command; the keys are part of the contract.
#[derive(Serialize)]
pub struct TuneReport<'a> {
    pub default_ms: f64,
    pub best_ms: f64,
    pub speed_up: f64,
    pub trials: usize,
    pub seconds: f64,
    pub method: &'a str,
    pub choice: &'a Choice,
    /// The file in which the choice is stored; wisdom is of CPUs.
    pub wisdom: Option<&'a Path>,
    pub tried: &'a [Trial],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<&'a Spread>,
}

impl TuneReport<'_> {
    /// As text; `explain`: with all that was tried, `stored`: a line on where the choice went.
    pub fn text(&self, explain: bool, stored: Option<(&'static str, String)>) -> String {
        let mut out = String::new();
        if explain {
            out += &self.explained();
            out.push('\n');
        }
        if let Some(spread) = self.random {
            return out + &spread.text();
        }
        let row = |name: &str, ms: f64, times: f64| vec![name.to_string(), digits(ms), digits(times)];
        let rows = [row("default", self.default_ms, 1.0), row("best", self.best_ms, self.speed_up)];
        out += &columns(&["", "ms", "speed-up"], rows);
        out.push('\n');
        let mut rows = vec![
            ("trials", format!("{} ({})", self.trials, self.method)),
            ("seconds", digits(self.seconds)),
            ("choice", choice_text(self.choice)),
        ];
        if let Some(overlap) = self.choice.overlap.as_ref().filter(|overlap| is_tiled(overlap)) {
            rows.push(("in the literature's names", paper_text(overlap)));
        }
        rows.extend(stored);
        out + &pairs(&rows)
    }

    /// The tried choices, fastest first, and their verdicts.
    fn explained(&self) -> String {
        let mut trials: Vec<_> = self.tried.iter().collect();
        trials.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let row = |trial: &Trial| {
            let ms = if trial.seconds.is_finite() { digits(trial.seconds * 1e3) } else { "-".into() };
            vec![trial.text.clone(), ms, status_text(&trial.status)]
        };
        let rows: Vec<_> = trials.into_iter().map(row).collect();
        left_columns(&["tried", "ms", "verdict"], &rows)
    }
}

fn status_text(status: &TrialStatus) -> String {
    match status {
        TrialStatus::Default => "the default, where the search starts".into(),
        TrialStatus::Improved => "the best so far when it ran".into(),
        TrialStatus::Slower => "not faster than the best so far".into(),
        TrialStatus::Stopped => "stopped: far slower than the best so far".into(),
        TrialStatus::Unconfirmed => "not faster when run in turn with the best".into(),
        TrialStatus::Infeasible(reason) => format!("not run: {reason}"),
    }
}

/// The entries of another file beside the own choice.
pub fn crossed(cross: &[Cross]) -> String {
    if cross.is_empty() {
        return "the other file has no entry for this problem\n".into();
    }
    let row = |cross: &Cross| {
        let machine = format!("{} ({})", cross.cpu, cross.transport);
        match (cross.own_ms, cross.their_ms) {
            (Some(own), Some(theirs)) => vec![machine, digits(theirs), digits(own), digits(theirs / own)],
            _ => vec![machine, "cannot run here".into(), String::new(), String::new()],
        }
    };
    columns(&["wisdom of", "its choice, ms", "own choice, ms", "ratio"], cross.iter().map(row))
}
