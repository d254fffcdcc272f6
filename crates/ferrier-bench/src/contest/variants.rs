//! The comparison of the literature on overlapped transforms: blocking, with the work before
//! the exchange overlapped (TH), with the work on both sides overlapped (NEW).

use std::time::Duration;

use ferrier::tune::{self, Limits, Options, Progress};
use ferrier::{Choice, Comm, Overlap, Real, Tiling};
use serde::Serialize;

use super::breakdown::{self, BreakdownRow, ComputeSplit};
use super::options::ContestOptions;
use super::results::CandidateResult;
use crate::failure::{self, Outcome};
use crate::table::{columns, digits};
use crate::tiling::{is_tiled, overlap_text, with_messages};
use crate::timing::Times;

/// A variant: a line of [`VARIANTS`].
#[derive(Debug)]
pub struct VariantEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Do passes after reshapes work by tiles too? `None`: one tile.
    after: Option<bool>,
    /// The tuned knobs.
    knobs: &'static [&'static str],
}

/// All variants.
pub static VARIANTS: &[VariantEntry] = &[
    VariantEntry { name: "blocking", summary: "one tile", after: None, knobs: &[] },
    VariantEntry {
        name: "th-0",
        summary: "only passes before an exchange overlap, default tiles",
        after: Some(false),
        knobs: &[],
    },
    VariantEntry {
        name: "th",
        summary: "as th-0, tuned",
        after: Some(false),
        knobs: &["tile", "window", "polls"],
    },
    VariantEntry {
        name: "new",
        summary: "passes after it overlap too, tuned",
        after: Some(true),
        knobs: &["tile", "window", "polls", "cut", "arrays"],
    },
];

/// The variant called `name`.
///
/// # Errors
/// Lists the known names.
pub fn find_variant(name: &str) -> Outcome<&'static VariantEntry> {
    failure::find("variant", VARIANTS, |entry| entry.name, name)
}

/// The times of a variant; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct VariantReport<'a> {
    name: &'static str,
    #[serde(flatten)]
    times: Times,
    #[serde(flatten)]
    split: ComputeSplit,
    overlap: Option<&'a Overlap>,
    breakdown: Vec<BreakdownRow>,
}

/// The choices of the variants, tuned within `budget` in all. Collective.
///
/// # Errors
/// Those of the library.
pub fn choices<T: Real>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    given: &Choice,
    entries: &[&'static VariantEntry],
    budget: Duration,
) -> Outcome<Vec<Choice>> {
    let tuned = entries.iter().filter(|entry| !entry.knobs.is_empty()).count().max(1);
    let seconds = budget.as_secs_f64() / tuned as f64;
    let longest = options.peer_problem.shape.into_iter().max().unwrap_or(1);
    let mut list = Vec::new();
    for entry in entries {
        // As in the literature: a sixteenth of the axis, two tiles in flight.
        let tiling = |after| Tiling::new((longest / 16).max(1)).after(after);
        let tiling = entry.after.map_or(Tiling::default(), tiling);
        let start = given.clone().overlap(Overlap::uniform(tiling));
        let start = with_messages(comm, &start)?;
        if entry.knobs.is_empty() {
            list.push(start);
            continue;
        }
        let limits = Limits { seconds, ..Limits::default() };
        let tuning = Options::default().limits(limits).only(entry.knobs.to_vec());
        let mut watch = |progress: &Progress<'_>| {
            let best = digits(progress.best.seconds * 1e3);
            options.say(comm, format!("tuning {}: {} tried, best {best} ms", entry.name, progress.trials));
        };
        list.push(tune::tune::<T>(comm, &options.problem, &start, &tuning, &mut watch)?.choice);
    }
    Ok(list)
}

/// A report for each variant.
pub fn reports<'a>(
    entries: &[&'static VariantEntry],
    candidates: &'a [CandidateResult],
) -> Vec<VariantReport<'a>> {
    let report = |(entry, candidate): (&&'static VariantEntry, &'a CandidateResult)| VariantReport {
        name: entry.name,
        times: Times::new(&candidate.forward),
        split: breakdown::split(&candidate.events, candidate.typical_ms),
        overlap: Some(&candidate.overlap).filter(|overlap| is_tiled(overlap)),
        breakdown: breakdown::breakdown(&candidate.events, candidate.typical_ms),
    };
    entries.iter().zip(candidates).map(report).collect()
}

/// The time that `new` saves over the time that could be overlapped.
pub fn hidden_fraction(reports: &[VariantReport<'_>]) -> Option<f64> {
    let of = |name: &str| reports.iter().find(|report| report.name == name);
    let (blocking, new) = (of("blocking")?, of("new")?);
    let most = blocking.split.overlappable_ms.min(blocking.split.wait_ms);
    let fraction = (blocking.times.median_ms - new.times.median_ms) / most;
    fraction.is_finite().then_some(fraction)
}

/// A table of the variants.
pub fn text(reports: &[VariantReport<'_>], ndim: usize) -> String {
    let base = reports.first().map_or(f64::NAN, |report| report.times.median_ms);
    let row = |report: &VariantReport<'_>| {
        let ComputeSplit { compute_ms, overlappable_ms, wait_ms } = report.split;
        let Times { best_ms, median_ms } = report.times;
        let mut row = vec![report.name.to_string()];
        row.extend([best_ms, median_ms, base / median_ms, compute_ms, overlappable_ms, wait_ms].map(digits));
        row.push(report.overlap.map_or(String::new(), |overlap| overlap_text(overlap, ndim)));
        row
    };
    let heads =
        ["variant", "best ms", "median ms", "speed-up", "compute ms", "overlappable ms", "wait ms", "tiles"];
    let mut out = columns(&heads, reports.iter().map(row));
    if let Some(fraction) = hidden_fraction(reports) {
        out += &format!("\nnew hides {:.0} % of the time that could be overlapped\n", 100.0 * fraction);
    }
    for report in reports {
        out += &format!("\n{}\n{}", report.name, breakdown::text(&report.breakdown));
    }
    out
}
