//! The comparison of the literature on overlapped transforms: blocking, with
//! the work before the exchange hidden (TH), with all of it hidden (NEW).

use std::time::Duration;

use ferrier::tune::{self, Limits, Options, Progress};
use ferrier::{Choice, Comm, Overlap, Real, Tiling};
use serde::Serialize;

use crate::bench::Times;
use crate::blocks::{self, Split};
use crate::contender::Timed;
use crate::failure::{Failure, Outcome};
use crate::overlap;
use crate::report::{self, digits};
use crate::timing::Work;

/// A line of the table of variants.
#[derive(Debug)]
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Do passes after reshapes go by tiles too? `None`: nothing is cut.
    after: Option<bool>,
    /// What is tuned.
    knobs: &'static [&'static str],
}

/// All variants.
pub static VARIANTS: &[Member] = &[
    Member { name: "blocking", summary: "one tile", after: None, knobs: &[] },
    Member {
        name: "th-0",
        summary: "only what comes before an exchange overlaps, usual tiles",
        after: Some(false),
        knobs: &[],
    },
    Member {
        name: "th",
        summary: "the same, tuned",
        after: Some(false),
        knobs: &["tile", "window", "polls"],
    },
    Member {
        name: "new",
        summary: "what comes after it overlaps too, tuned",
        after: Some(true),
        knobs: &["tile", "window", "polls", "cut", "arrays"],
    },
];

/// The member called `name`.
///
/// # Errors
/// Lists the names there are.
pub fn find(name: &str) -> Outcome<&'static Member> {
    VARIANTS.iter().find(|member| member.name == name).ok_or_else(|| {
        let known = VARIANTS.iter().map(|member| member.name).collect::<Vec<_>>().join(", ");
        Failure::new(format!("unknown variant `{name}`; known are: {known}"))
    })
}

/// How a variant did; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct VariantReport {
    name: &'static str,
    #[serde(flatten)]
    times: Times,
    #[serde(flatten)]
    split: Split,
    overlap: Option<Overlap>,
    breakdown: Vec<blocks::Block>,
}

/// Tunes what is to be tuned, within `budget` in all. Collective.
///
/// # Errors
/// Those of the library.
pub fn choices<T: Real>(
    comm: &Comm,
    work: &Work<'_>,
    given: &Choice,
    members: &[&'static Member],
    budget: Duration,
) -> Outcome<Vec<Choice>> {
    let tuned = members.iter().filter(|member| !member.knobs.is_empty()).count().max(1);
    let seconds = budget.as_secs_f64() / tuned as f64;
    let longest = work.task.shape.into_iter().max().unwrap_or(1);
    let mut list = Vec::new();
    for member in members {
        // As others have it: a sixteenth of the axis, two in flight.
        let tiling = |after| Tiling::new((longest / 16).max(1)).after(after);
        let tiling = member.after.map_or(Tiling::default(), tiling);
        let start = given.clone().overlap(Overlap::uniform(tiling));
        let start = overlap::with_messages(comm, &start)?;
        if member.knobs.is_empty() {
            list.push(start);
            continue;
        }
        let limits = Limits { seconds, ..Limits::default() };
        let options = Options::default().limits(limits).only(member.knobs.to_vec());
        let mut watch = |progress: &Progress<'_>| {
            let best = digits(progress.best.seconds * 1e3);
            work.say(comm, format!("tuning {}: {} tried, best {best} ms", member.name, progress.trials));
        };
        list.push(tune::tune::<T>(comm, &work.problem, &start, &options, &mut watch)?.choice);
    }
    Ok(list)
}

/// What is told of each.
pub fn reports(members: &[&'static Member], timed: &[Timed]) -> Vec<VariantReport> {
    let report = |(member, timed): (&&'static Member, &Timed)| VariantReport {
        name: member.name,
        times: Times::new(&timed.forward),
        split: blocks::split(&timed.events, timed.typical_ms),
        overlap: Some(timed.overlap.clone()).filter(overlap::is_cut),
        breakdown: blocks::blocks(&timed.events, timed.typical_ms),
    };
    members.iter().zip(timed).map(report).collect()
}

/// How much of what could be hidden is hidden.
pub fn hidden_fraction(reports: &[VariantReport]) -> Option<f64> {
    let of = |name: &str| reports.iter().find(|report| report.name == name);
    let (blocking, new) = (of("blocking")?, of("new")?);
    let most = blocking.split.overlappable_ms.min(blocking.split.wait_ms);
    let fraction = (blocking.times.median_ms - new.times.median_ms) / most;
    fraction.is_finite().then_some(fraction)
}

/// For people.
pub fn text(reports: &[VariantReport], ndim: usize) -> String {
    let base = reports.first().map_or(f64::NAN, |report| report.times.median_ms);
    let row = |report: &VariantReport| {
        let Split { compute_ms, overlappable_ms, wait_ms } = report.split;
        let Times { best_ms, median_ms } = report.times;
        let mut row = vec![report.name.to_string()];
        row.extend([best_ms, median_ms, base / median_ms, compute_ms, overlappable_ms, wait_ms].map(digits));
        row.push(report.overlap.as_ref().map_or(String::new(), |overlap| overlap::text(overlap, ndim)));
        row
    };
    let rows: Vec<_> = reports.iter().map(row).collect();
    let heads =
        ["variant", "best ms", "median ms", "speed-up", "compute ms", "overlappable ms", "wait ms", "tiles"];
    let mut out = report::columns(&heads, &rows);
    if let Some(fraction) = hidden_fraction(reports) {
        out += &format!("\nnew hides {:.0} % of what could be hidden\n", 100.0 * fraction);
    }
    for report in reports {
        out += &format!("\n{}\n{}", report.name, blocks::table(&report.breakdown));
    }
    out
}
