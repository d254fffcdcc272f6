//! `ferrier tune`: try choices, keep the fastest, remember it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ferrier::tune::{self, Limits, METHODS, Options, Outcome, Progress, Trial, Verdict};
use ferrier::wisdom::{Entry, Wisdom};
use ferrier::{Choice, Comm, LayoutSpec, Planner, Precision, Problem, Real};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::{ProblemArgs, table};
use crate::bench::precision;
use crate::failure::{Failure, Outcome as Ended, fail};
use crate::report::{self, digits};
use crate::session::Session;
use crate::setup;
use crate::spread::Spread;

/// How long to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EffortName {
    /// Some seconds, at most 60 trials.
    Measure,
    /// A minute, or what --budget says.
    Patient,
}

/// `ferrier tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Tune trips there and back with an operator in the middle, as `bench --apply` runs them, instead of
    /// transforms
    #[arg(long)]
    pub apply: bool,
    /// How hard to try
    #[arg(long, value_enum, default_value_t = EffortName::Measure)]
    pub effort: EffortName,
    /// Time for it, such as 60s, 5m or 500ms [default: 10s, patient: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// The most choices to run [default: 60, patient: as many as there is time for]
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    #[arg(long, value_name = "NAME", default_value = METHODS[0].name, help = table("How to search", METHODS.iter().map(|m| (m.name, m.summary))))]
    pub method: String,
    /// File of wisdom to remember it in [default: FERRIER_WISDOM, else the user's own]
    #[arg(long, value_name = "FILE")]
    pub wisdom: Option<PathBuf>,
    /// List what was tried, and why it lost
    #[arg(long)]
    pub explain: bool,
    /// Instead of searching, run N choices at random and show how their times are spread
    #[arg(long, value_name = "N", conflicts_with_all = ["method", "trials", "cross"])]
    pub random: Option<usize>,
    /// Draw the spread of --random
    #[arg(long, value_name = "FILE", requires = "random")]
    pub svg: Option<PathBuf>,
    /// Compare with what this file of wisdom knows about the problem, from whatever machine
    #[arg(long, value_name = "FILE")]
    pub cross: Option<PathBuf>,
    /// Seed of searches that draw lots
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the result as JSON; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
}

/// A time such as `60s`, `1.5m`, `500ms` or `90`.
///
/// # Errors
/// Anything else.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write 60s, 5m or 500ms");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number * scale;
    // A year: longer than anybody waits, short enough for clocks.
    if seconds > 0.0 && seconds < 3.2e7 { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

/// What a machine of another file made of the problem.
#[derive(Debug, Serialize)]
struct Cross {
    cpu: String,
    transport: String,
    choice: Choice,
    /// Ours and theirs, run in turn here; null where theirs does not work here.
    own_ms: Option<f64>,
    their_ms: Option<f64>,
}

/// All that is known; the keys are part of the contract.
#[derive(Serialize)]
struct Report<'a> {
    default_ms: f64,
    best_ms: f64,
    speed_up: f64,
    trials: usize,
    seconds: f64,
    method: &'a str,
    choice: &'a Choice,
    wisdom: Option<&'a Path>,
    tried: &'a [Trial],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cross: Vec<Cross>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random: Option<&'a Spread>,
}

/// What all ranks do.
struct Job<'a> {
    problem: &'a Problem,
    choice: &'a Choice,
    options: Options,
    /// The file to remember it in; `None`: the user's.
    wisdom: Option<&'a Path>,
    remember: bool,
    foreign: Option<&'a Wisdom>,
    bar: &'a ProgressBar,
}

/// What came out, on rank 0.
struct Done {
    outcome: Outcome,
    /// Where it was written, or why not.
    written: Result<Option<PathBuf>, ferrier::Error>,
    foreign: Vec<Entry>,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be written to.
pub fn run(args: &TuneArgs, session: &Session) -> Ended {
    let common = &args.problem.common;
    let prepare = || {
        setup::cpu_only(common, "tuning")?;
        let (mut problem, _) = setup::problem(&args.problem, session.size(common)?)?;
        if args.apply {
            problem = problem.output(LayoutSpec::unconstrained()).operators(true);
            problem.check()?;
        }
        let foreign = args.cross.as_deref().map(read_foreign).transpose()?;
        Ok((problem, setup::choice(common, &args.problem.shape)?, options(args)?, foreign))
    };
    let (problem, choice, options, foreign) = session.agree(prepare())?;
    session.first(|| {
        report::check_json(args.json.as_deref())?;
        args.svg.as_deref().map_or(Ok(()), crate::output::check_text)
    })?;
    let bar = progress_bar();
    let job = Job {
        problem: &problem,
        choice: &choice,
        options,
        wisdom: args.wisdom.as_deref(),
        remember: args.random.is_none(),
        foreign: foreign.as_ref(),
        bar: &bar,
    };
    let done = match precision(&args.problem) {
        Precision::F32 => session.run(common, |comm| work::<f32>(comm, &job)),
        Precision::F64 => session.run(common, |comm| work::<f64>(comm, &job)),
    };
    bar.finish_and_clear();
    let done = done?.into_iter().flatten().next();
    session.first(|| done.map_or_else(|| fail("no rank came back"), |done| tell(args, done)))
}

fn options(args: &TuneArgs) -> Ended<Options> {
    tune::find(&args.method)?;
    let patient = args.effort == EffortName::Patient;
    let seconds = args.budget.map_or(if patient { 60.0 } else { 10.0 }, |time| time.as_secs_f64());
    let trials = args.trials.unwrap_or(if patient { usize::MAX } else { 60 });
    if trials == 0 || args.random == Some(0) {
        return fail("at least 1 choice must be tried, got 0");
    }
    let limits = Limits { seconds, trials, ..Limits::default() };
    let mut options = Options::default().method(&args.method).limits(limits).seed(args.seed);
    if let Some(count) = args.random {
        options.method = "random".into();
        // Every one is timed to its end, however slow; and the default is not one of them.
        options.limits.patience = f64::INFINITY;
        options.limits.trials = count.saturating_add(1);
        options.limits.seconds = args.budget.map_or(f64::INFINITY, |time| time.as_secs_f64());
    }
    Ok(options)
}

fn read_foreign(path: &Path) -> Ended<Wisdom> {
    if !path.exists() {
        return fail(format!("--cross {}: there is no such file", path.display()));
    }
    Ok(Wisdom::read(path)?)
}

/// A bar on a terminal, nothing elsewhere. Without a tick of its own, which
/// would be a thread that disturbs.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(1000);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Tunes and remembers. Collective.
fn work<T: Real>(comm: &Comm, job: &Job<'_>) -> Ended<Option<Done>> {
    let choice = crate::overlap::with_messages(comm, job.choice)?;
    let draft = Planner::new(job.problem).choice(choice.clone()).without_wisdom().draft::<T>(comm)?;
    let recipe = draft.recipe();
    let arrays = [&recipe.input, &recipe.output].map(|layout| layout.boxes()[comm.rank()].volume());
    let numbers = arrays.iter().sum::<usize>() * 2 * recipe.batch;
    // Two plans at a time run against each other.
    setup::check_room(comm, 2 * draft.memory().total() + numbers * size_of::<T>())?;
    drop(draft);
    let mut options = job.options.clone();
    let mut foreign = Vec::new();
    if let Some(wisdom) = job.foreign {
        let (problem, _) = ferrier::wisdom::keys::<T>(comm, job.problem, &choice)?;
        foreign = wisdom.entries().filter(|entry| entry.problem == problem).cloned().collect();
        options.rivals = foreign.iter().map(|entry: &Entry| entry.choice.clone()).collect();
    }
    let limits = options.limits;
    let mut watch = |progress: &Progress<'_>| {
        let done = (progress.seconds / limits.seconds).max(progress.trials as f64 / limits.trials as f64);
        job.bar.set_position((1000.0 * done.min(1.0)) as u64);
        job.bar.set_message(format!(
            "{} tried in {:.0} s, best {} ms ({})",
            progress.trials,
            progress.seconds,
            digits(progress.best.seconds * 1e3),
            progress.best.text
        ));
    };
    let outcome = tune::tune::<T>(comm, job.problem, &choice, &options, &mut watch)?;
    let written = match job.remember {
        true => ferrier::wisdom::learn::<T>(comm, job.problem, &choice, &outcome, job.wisdom),
        false => Ok(None),
    };
    Ok((comm.rank() == 0).then_some(Done { outcome, written, foreign }))
}

/// Prints and writes what came out.
fn tell(args: &TuneArgs, done: Done) -> Ended {
    let Done { outcome, written, foreign } = done;
    let spread = args.random.map(|_| Spread::new(&outcome));
    let written = written.unwrap_or_else(|error| {
        report::complain(&Failure::new(format!("warning: {error}; what was learned is not remembered")));
        None
    });
    let cross = foreign.into_iter().zip(&outcome.rivals).map(|(entry, times)| Cross {
        cpu: entry.machine.cpu,
        transport: entry.machine.transport,
        choice: entry.choice,
        own_ms: times.map(|times| times[0]),
        their_ms: times.map(|times| times[1]),
    });
    let cross: Vec<Cross> = cross.collect();
    if let (Some(path), Some(spread)) = (&args.svg, &spread) {
        crate::output::write_text(path, &spread.svg(&args.problem.shape.to_string()))?;
    }
    let said = text(args, &outcome, written.as_deref(), &cross, spread.as_ref());
    let report = Report {
        default_ms: outcome.default_ms,
        best_ms: outcome.best_ms,
        speed_up: outcome.speed_up(),
        trials: outcome.measured,
        seconds: outcome.seconds,
        method: &outcome.method,
        choice: &outcome.choice,
        wisdom: written.as_deref(),
        tried: &outcome.trials,
        cross,
        random: spread.as_ref(),
    };
    match args.json.as_deref() {
        Some(path) if path.as_os_str() == "-" => report::json(path, &report),
        path => {
            path.map_or(Ok(()), |path| report::json(path, &report))?;
            report::say(&said)
        }
    }
}

fn text(
    args: &TuneArgs,
    outcome: &Outcome,
    written: Option<&Path>,
    cross: &[Cross],
    spread: Option<&Spread>,
) -> String {
    let mut out = String::new();
    if args.explain {
        out += &explained(outcome);
        out.push('\n');
    }
    if let Some(spread) = spread {
        return out + &spread.text();
    }
    out += &report::columns(
        &["", "ms", "speed-up"],
        &[
            vec!["default".into(), digits(outcome.default_ms), digits(1.0)],
            vec!["best".into(), digits(outcome.best_ms), digits(outcome.speed_up())],
        ],
    );
    out.push('\n');
    let mut rows = vec![
        ("trials", format!("{} ({})", outcome.measured, outcome.method)),
        ("seconds", digits(outcome.seconds)),
        ("choice", described(&outcome.choice)),
    ];
    if let Some(path) = written {
        rows.push(("remembered in", path.display().to_string()));
    }
    out += &report::pairs(&rows);
    if args.cross.is_some() {
        out.push('\n');
        out += &crossed(cross);
    }
    out
}

/// What a choice decides, in words.
pub fn described(choice: &Choice) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    let usual = serde_json::to_value(Choice::default()).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten().filter(|(name, value)| usual[*name] != **value);
    let words: Vec<_> =
        fields.map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"'))).collect();
    if words.is_empty() { "the planner's own".into() } else { words.join(", ") }
}

/// What was tried, fastest first, and why it lost.
fn explained(outcome: &Outcome) -> String {
    let mut trials: Vec<_> = outcome.trials.iter().collect();
    trials.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let rows: Vec<_> = trials
        .into_iter()
        .map(|trial| {
            let ms = if trial.seconds.is_finite() { digits(trial.seconds * 1e3) } else { "-".into() };
            vec![trial.text.clone(), ms, verdict(&trial.verdict)]
        })
        .collect();
    in_words(&["tried", "ms", "what became of it"], &rows)
}

/// A table whose columns are words: each begins where its header does.
pub fn in_words(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|text| text.to_string()).collect();
    let all = || std::iter::once(&header).chain(rows);
    let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:width$} "));
        cells.collect::<String>().trim_end().to_string() + "\n"
    };
    all().map(line).collect()
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Default => "where the search began".into(),
        Verdict::Improved => "the best so far when it was run".into(),
        Verdict::Slower => "not faster than the best so far".into(),
        Verdict::Stopped => "stopped: far slower than the best so far".into(),
        Verdict::Unconfirmed => "not faster when run in turn with the best".into(),
        Verdict::Infeasible(reason) => format!("not run: {reason}"),
    }
}

fn crossed(cross: &[Cross]) -> String {
    if cross.is_empty() {
        return "the other file knows nothing about this problem\n".into();
    }
    let row = |cross: &Cross| {
        let who = format!("{} ({})", cross.cpu, cross.transport);
        match (cross.own_ms, cross.their_ms) {
            (Some(own), Some(theirs)) => vec![who, digits(theirs), digits(own), digits(theirs / own)],
            _ => vec![who, "does not work here".into(), String::new(), String::new()],
        }
    };
    let rows: Vec<_> = cross.iter().map(row).collect();
    report::columns(&["wisdom of", "theirs, ms", "ours, ms", "ratio"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [("60s", 60.0), ("1.5m", 90.0), ("500ms", 0.5), ("2", 2.0), ("1h", 3600.0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "s", "-1s", "0", "5 parsecs", "nan", "1e300s", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
