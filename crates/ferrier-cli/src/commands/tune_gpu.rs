//! `ferrier tune --device cuda`: search for the fastest choice on GPUs.

use std::path::Path;

use ferrier::Choice;
use ferrier::tune::{Options, SearchResult};

use super::tune_report::TuneReport;
use crate::arguments::{ProblemArgs, setup};
use crate::cuda;
use crate::failure::Outcome;
use crate::print;
use crate::session::Session;

/// How the result is printed.
pub struct Printed<'a> {
    /// The file for JSON.
    pub json: Option<&'a Path>,
    /// Whether the tried choices are wanted.
    pub explain: bool,
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
    let report = TuneReport {
        default_ms,
        best_ms,
        speed_up: default_ms / best_ms,
        trials: found.measured,
        seconds: found.seconds,
        method: &options.method,
        choice,
        wisdom: None,
        tried: &found.trials,
        cross: Vec::new(),
        random: None,
    };
    let stored = ("stored", "no: give these options to plans on GPUs".into());
    print::report(printed.json, &report, &report.text(printed.explain, Some(stored)))
}
