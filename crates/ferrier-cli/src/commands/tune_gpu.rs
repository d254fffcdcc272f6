//! `ferrier tune --device cuda`: search for the fastest choice on GPUs.

use std::path::Path;

use ferrier::Choice;
use ferrier::tune::{Options, SearchResult, Trial};
use ferrier_bench::table::{columns, digits, pairs};
use serde::Serialize;

use super::choice_text::choice_text;
use crate::arguments::{ProblemArgs, setup};
use crate::cuda;
use crate::failure::Outcome;
use crate::print;
use crate::session::Session;

/// The report; its keys are those of a search on the CPU.
#[derive(Serialize)]
struct GpuTuneReport<'a> {
    default_ms: f64,
    best_ms: f64,
    speed_up: f64,
    trials: usize,
    seconds: f64,
    method: &'a str,
    choice: &'a Choice,
    /// Wisdom is of CPUs.
    wisdom: Option<()>,
    tried: &'a [Trial],
}

/// How the result is printed.
pub struct Printed<'a> {
    /// The file for JSON.
    pub json: Option<&'a Path>,
    /// The tried choices as text, if they are wanted.
    pub explained: Option<fn(&[Trial]) -> String>,
}

/// Searches exchange, kernel, slabs or pencils, tiles and packets. The result is printed, not stored.
///
/// # Errors
/// Bad input; those of the library.
pub fn run(args: &ProblemArgs, session: &Session, options: &Options, printed: &Printed<'_>) -> Outcome {
    let common = &args.common;
    let prepare = || {
        let (problem, _) = setup::problem(args, session.size(common)?)?;
        Ok((problem, setup::choice(common, &args.shape)?))
    };
    let (problem, choice) = session.agree(prepare())?;
    session.first(|| print::check([&printed.json.map(Path::to_path_buf)]))?;
    let (precision, place) = (args.precision, (&choice, common.device));
    let found = session.run(common, |comm| cuda::tuned(comm, &problem, precision, place, options))?;
    session.first(|| found.map_or(Ok(()), |(found, choice)| print_result(printed, &found, &choice, options)))
}

fn print_result(printed: &Printed<'_>, found: &SearchResult, choice: &Choice, options: &Options) -> Outcome {
    let [default_ms, best_ms] = [found.default_seconds, found.best_seconds].map(|seconds| seconds * 1e3);
    let speed_up = default_ms / best_ms;
    let mut text = String::new();
    if let Some(explained) = printed.explained {
        text += &explained(&found.trials);
        text.push('\n');
    }
    let row = |name: &str, ms: f64, times: f64| vec![name.to_string(), digits(ms), digits(times)];
    text +=
        &columns(&["", "ms", "speed-up"], [row("default", default_ms, 1.0), row("best", best_ms, speed_up)]);
    text.push('\n');
    text += &pairs(&[
        ("trials", format!("{} ({})", found.measured, options.method)),
        ("seconds", digits(found.seconds)),
        ("choice", choice_text(choice)),
        ("stored", "no: give these options to plans on GPUs".into()),
    ]);
    let report = GpuTuneReport {
        default_ms,
        best_ms,
        speed_up,
        trials: found.measured,
        seconds: found.seconds,
        method: &options.method,
        choice,
        wisdom: None,
        tried: &found.trials,
    };
    print::report(printed.json, &report, &text)
}
