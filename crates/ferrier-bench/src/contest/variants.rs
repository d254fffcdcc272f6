//! The comparison of the literature on overlapped transforms (Song and Hollingsworth, 2014): blocking; with the work
//! before the exchange overlapped (TH); with the work on both sides overlapped (NEW); and both without overlap, each
//! tile waited for as soon as it is started (TH-0, NEW-0).

use std::time::Duration;

use ferrier::tune::{self, Limits, Options, Progress, TILE_TUNABLES};
use ferrier::{Choice, Comm, Overlap, Real, Tiling};
use serde::Serialize;

use super::breakdown::{self, BreakdownRow, ComputeSplit, WaitSplit};
use super::options::ContestOptions;
use super::results::{CandidateResult, VariantTuning};
use crate::failure::{self, Outcome};
use crate::table::{columns, digits};
use crate::tiling::{is_tiled, overlap_text, paper_parameters, paper_text, with_messages};
use crate::timing::Times;

/// What a variant overlaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// One tile.
    Blocking,
    /// Passes before an exchange work by tiles, without a search.
    Usual,
    /// The same, tuned.
    Before,
    /// Passes after it work by tiles too; tuned.
    Both,
}

/// A variant: a line of [`VARIANTS`].
#[derive(Debug)]
pub struct VariantEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    scheme: Scheme,
    /// Are tiles in flight while others are transformed?
    overlaps: bool,
}

/// All variants.
pub static VARIANTS: &[VariantEntry] = &[
    VariantEntry { name: "blocking", summary: "one tile", scheme: Scheme::Blocking, overlaps: true },
    VariantEntry {
        name: "new",
        summary: "passes before and after an exchange overlap, ten parameters tuned",
        scheme: Scheme::Both,
        overlaps: true,
    },
    VariantEntry {
        name: "new-0",
        summary: "the tiles of new without overlap: window 0, no polls",
        scheme: Scheme::Both,
        overlaps: false,
    },
    VariantEntry {
        name: "th",
        summary: "only passes before an exchange overlap, three parameters tuned",
        scheme: Scheme::Before,
        overlaps: true,
    },
    VariantEntry {
        name: "th-0",
        summary: "the tiles of th without overlap",
        scheme: Scheme::Before,
        overlaps: false,
    },
    VariantEntry {
        name: "th-usual",
        summary: "as th, not tuned: a sixteenth of the axis, two tiles in flight",
        scheme: Scheme::Usual,
        overlaps: true,
    },
];

/// The tuned parameters of TH: tile, window, polls.
const BEFORE: &[&str] = &["tile", "window", "polls"];

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
    /// Time outside passes.
    waits: WaitSplit,
    #[serde(flatten)]
    tuning: VariantTuning,
    overlap: Option<&'a Overlap>,
    /// The parameters under the names of the literature.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<(&'static str, usize)>>,
    breakdown: Vec<BreakdownRow>,
}

impl VariantReport<'_> {
    /// Name, times, no planning, seconds of tuning.
    pub fn summary(&self) -> (String, Times, Option<f64>, Option<f64>) {
        (self.name.into(), self.times, None, Some(self.tuning.seconds))
    }
}

/// The choices of the variants, tuned within `budget` in all, and how each was tuned. Collective.
///
/// # Errors
/// Those of the library.
pub fn choices<T: Real>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    given: &Choice,
    entries: &[&'static VariantEntry],
    budget: Duration,
) -> Outcome<(Vec<Choice>, Vec<VariantTuning>)> {
    let is_tuned = |scheme| matches!(scheme, Scheme::Before | Scheme::Both);
    let mut schemes: Vec<Scheme> = Vec::new();
    for entry in entries.iter().filter(|entry| is_tuned(entry.scheme)) {
        if !schemes.contains(&entry.scheme) {
            schemes.push(entry.scheme);
        }
    }
    let seconds = budget.as_secs_f64() / schemes.len().max(1) as f64;
    let longest = options.peer_problem.shape.into_iter().max().unwrap_or(1);
    // As in the literature: a sixteenth of the axis, two tiles in flight.
    let start = |scheme: Scheme| {
        let tiling = match scheme {
            Scheme::Blocking => Tiling::default(),
            _ => Tiling::new((longest / 16).max(1)).after(scheme == Scheme::Both),
        };
        with_messages(comm, &given.clone().overlap(Overlap::uniform(tiling)))
    };
    let mut tuned = Vec::new();
    for scheme in schemes {
        // What matters most comes first: with ten parameters at once a short search would end beside the best tile.
        let both = [BEFORE, &TILE_TUNABLES];
        let (name, stages) = if scheme == Scheme::Both { ("new", &both[..]) } else { ("th", &both[..1]) };
        let (mut choice, mut tuning) = (start(scheme)?, VariantTuning::default());
        for (stage, only) in stages.iter().enumerate() {
            let limits = Limits { seconds: seconds / stages.len() as f64, ..Limits::default() };
            let search =
                Options::default().limits(limits).only(only.to_vec()).refine(stage + 1 == stages.len());
            let mut watch = |progress: &Progress<'_>| {
                let best = digits(progress.best.seconds * 1e3);
                options.say(comm, format!("tuning {name}: {} tried, best {best} ms", progress.trials));
            };
            let found = tune::tune::<T>(comm, &options.problem, &choice, &search, &mut watch)?;
            choice = found.choice;
            tuning.seconds += found.seconds;
            tuning.trials += found.measured;
        }
        tuned.push((scheme, choice, tuning));
    }
    let mut list = (Vec::new(), Vec::new());
    for entry in entries {
        let (choice, tuning) = match tuned.iter().find(|(scheme, ..)| *scheme == entry.scheme) {
            Some((_, choice, tuning)) => (choice.clone(), *tuning),
            None => (start(entry.scheme)?, VariantTuning::default()),
        };
        list.0.push(if entry.overlaps { choice } else { without_overlap(choice) });
        list.1.push(tuning);
    }
    Ok(list)
}

/// The same tiles, each waited for as soon as it is started.
fn without_overlap(mut choice: Choice) -> Choice {
    if let Some(overlap) = &mut choice.overlap {
        for tiling in overlap.forward.iter_mut().chain(&mut overlap.backward) {
            (tiling.window, tiling.polls, tiling.polls_after) = (0, 0, None);
        }
    }
    choice
}

/// A report for each variant.
pub fn reports<'a>(
    entries: &[&'static VariantEntry],
    candidates: &'a [CandidateResult],
    tunings: &[VariantTuning],
) -> Vec<VariantReport<'a>> {
    type Measured<'a, 'b> = ((&'b &'static VariantEntry, &'a CandidateResult), &'b VariantTuning);
    let report = |((entry, candidate), tuning): Measured<'a, '_>| {
        let overlap = Some(&candidate.overlap).filter(|overlap| is_tiled(overlap));
        VariantReport {
            name: entry.name,
            times: Times::new(&candidate.forward),
            split: breakdown::split(&candidate.traced[0].events, candidate.typical_ms),
            waits: breakdown::waits(&candidate.traced[0]),
            tuning: *tuning,
            overlap,
            parameters: overlap.map(paper_parameters),
            breakdown: breakdown::breakdown(&candidate.traced[0]),
        }
    };
    entries.iter().zip(candidates).zip(tunings).map(report).collect()
}

/// The wait that overlap saves over that which it could save: the wait without overlap, or the passes that could run
/// meanwhile if these are shorter. Of `new` against `new-0`, or against `blocking` if that was not run.
pub fn hidden_fraction(reports: &[VariantReport<'_>]) -> Option<f64> {
    let of = |name: &str| reports.iter().find(|report| report.name == name);
    let (without, with) = (of("new-0").or(of("blocking"))?, of("new")?);
    let most = without.split.overlappable_ms.min(without.waits.wait_ms);
    let fraction = (without.waits.wait_ms - with.waits.wait_ms) / most;
    fraction.is_finite().then_some(fraction)
}

/// A table of the variants.
pub fn text(reports: &[VariantReport<'_>], ndim: usize) -> String {
    let base = reports.first().map_or(f64::NAN, |report| report.times.median_ms);
    let row = |report: &VariantReport<'_>| {
        let ComputeSplit { compute_ms, overlappable_ms, .. } = report.split;
        let WaitSplit { post_ms, test_ms, wait_ms, rest_ms, .. } = report.waits;
        let Times { best_ms, median_ms } = report.times;
        let mut row = vec![report.name.to_string()];
        row.extend([best_ms, median_ms, base / median_ms, compute_ms, overlappable_ms].map(digits));
        row.extend([post_ms, test_ms, wait_ms, rest_ms, report.tuning.seconds].map(digits));
        row
    };
    let heads = [
        "variant",
        "best ms",
        "median ms",
        "speed-up",
        "compute ms",
        "overlappable ms",
        "post ms",
        "test ms",
        "wait ms",
        "rest ms",
        "tuning s",
    ];
    let mut out = columns(&heads, reports.iter().map(row));
    out.push('\n');
    for report in reports {
        if let Some(overlap) = report.overlap {
            out += &format!("{}: {}\n", report.name, overlap_text(overlap, ndim));
            out += &format!("  in the literature's names: {}\n", paper_text(overlap));
        }
    }
    if let Some(fraction) = hidden_fraction(reports) {
        out += &format!("\nnew hides {:.0} % of the wait that could be hidden\n", 100.0 * fraction);
    }
    for report in reports {
        out += &format!("\n{}\n{}", report.name, breakdown::text(&report.breakdown));
    }
    out
}
