//! `ferrier tune`: search for the fastest choice and store it as wisdom.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ferrier::tune::{self, Limits, METHODS, Options, Progress, TILE_TUNABLES};
use ferrier::wisdom::{Entry, Wisdom};
use ferrier::{Choice, Comm, DeviceSpec, LayoutSpec, Overlap, Planner, Problem, Real, Tiling};
use ferrier_bench::agree::{check_memory, local_volumes};
use ferrier_bench::charts::spread::Spread;
use ferrier_bench::in_precision;
use ferrier_bench::table::digits;
use ferrier_bench::tiling::{paper_start, with_messages};
use indicatif::ProgressBar;

use super::tune_report::{Cross, TuneReport, crossed};
use super::{measure_machine, tune_gpu};
use crate::arguments::{ProblemArgs, duration, setup, table};
use crate::failure::{Failure, Outcome, fail};
use crate::print;
use crate::session::Session;

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EffortName {
    /// Some seconds, at most 60 trials.
    Measure,
    /// A minute, or the time of --budget.
    Patient,
}

/// Where a search starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StartName {
    /// The planner's choice
    Planner,
    /// The default point of Song and Hollingsworth (2014)
    Paper,
}

/// The ten parameters of that paper.
const PAPER: [&str; 10] = ["T", "W", "Px", "Pz", "Uy", "Uz", "Fy", "Fp", "Fu", "Fx"];

/// `ferrier tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Tune calls that apply an operator between a forward and a backward transform, as in
    /// `bench --apply`
    #[arg(long)]
    pub apply: bool,
    /// Instead of searching, measure the constants of the cost model on these ranks, in about a second or as long as
    /// --budget says, and store them as wisdom: plans are made by them from then on
    #[arg(long, conflicts_with_all = ["apply", "random", "cross", "explain"])]
    pub measure_machine: bool,
    /// Effort of the search
    #[arg(long, value_enum, default_value_t = EffortName::Measure)]
    pub effort: EffortName,
    /// Time of the search, such as 60s, 5m or 500ms [default: 10s, patient: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// The most choices to run [default: 60; patient: no limit]
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    #[arg(long, value_name = "NAME", help = table("How to search", METHODS.iter().map(|m| (m.name, m.summary))) + " [default: nelder-mead; simplex with --start paper]")]
    pub method: Option<String>,
    /// Search only these parameters, such as T,W or tile,window,polls: of the literature on overlap T, W, Px, Pz, Uy, Uz,
    /// Fy, Fp, Fu, Fx (here FFTy and Pack are one pass, and Unpack and FFTx), or Ferrier's own
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub tune_only: Vec<String>,
    /// Where the search starts: the planner's choice, or the default point of the literature (T = Nz/16, W = 2, sub-tiles
    /// of 8192 elements, F = p/2), whose ten parameters are searched then
    #[arg(long, value_enum, default_value_t = StartName::Planner)]
    pub start: StartName,
    /// Wisdom file to store the result in [default: FERRIER_WISDOM, else the user's file]
    #[arg(long, value_name = "FILE")]
    pub wisdom: Option<PathBuf>,
    /// List all tried choices and their verdicts
    #[arg(long)]
    pub explain: bool,
    /// Instead of searching, run N random choices and print a histogram of their times; with --tune-only, search after
    /// that, and print and draw the cumulative distribution and the percentile of the result
    #[arg(long, value_name = "N", conflicts_with_all = ["method", "trials", "cross"])]
    pub random: Option<usize>,
    /// Draw the histogram, or the cumulative distribution, of --random
    #[arg(long, value_name = "FILE", requires = "random")]
    pub svg: Option<PathBuf>,
    /// Compare with the entries of this wisdom file for the problem, from any machine
    #[arg(long, value_name = "FILE")]
    pub cross: Option<PathBuf>,
    /// Seed of random searches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the result as JSON; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
}

/// The search, the same on all ranks.
struct TuneTask {
    problem: Problem,
    choice: Choice,
    options: Options,
    foreign: Option<Wisdom>,
}

/// The result, on rank 0.
struct Done {
    outcome: tune::Outcome,
    /// The search after random choices.
    tuned: Option<tune::Outcome>,
    /// The wisdom file that was written, or the error.
    written: Result<Option<PathBuf>, ferrier::Error>,
    foreign: Vec<Entry>,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be written to.
pub fn run(args: &TuneArgs, session: &Session) -> Outcome {
    let common = &args.problem.common;
    if args.measure_machine {
        return measure_machine::run(common, args.budget, [&args.wisdom, &args.json], session);
    }
    if common.device != DeviceSpec::Cpu {
        let search = session.agree(gpu_options(args))?;
        let printed = tune_gpu::Printed { json: args.json.as_deref(), explain: args.explain };
        return tune_gpu::run(&args.problem, session, &search, &printed);
    }
    let prepare = || {
        let (mut problem, _) = setup::problem(&args.problem, session.size(common)?)?;
        if args.apply {
            problem = problem.output(LayoutSpec::unconstrained()).operators(true);
            problem.check()?;
        }
        let foreign = args.cross.as_deref().map(read_foreign).transpose()?;
        let options = options(args)?;
        let mut choice = setup::choice(common, &args.problem.shape)?;
        let ranks = session.size(common)?;
        let tiling = match args.start {
            StartName::Paper => paper_start(problem.lengths(), ranks),
            StartName::Planner => Tiling::new((problem.lengths().into_iter().max().unwrap_or(1) / 16).max(1)),
        };
        let tiles = options.only.iter().any(|name| TILE_TUNABLES.contains(name));
        if tiles && ranks < 2 {
            return fail(
                "tiles can be tuned on at least 2 ranks (--ranks 2, or mpiexec -n 2): one rank sends nothing",
            );
        }
        if tiles && choice.overlap.is_none() {
            choice.overlap = Some(Overlap::uniform(tiling));
        }
        Ok(TuneTask { problem, choice, options, foreign })
    };
    let task = session.agree(prepare())?;
    session.first(|| print::check([&args.json, &args.svg]))?;
    let bar = match std::io::stderr().is_terminal() {
        true => print::styled(ProgressBar::new(1000), "{bar:30} {msg}"),
        false => ProgressBar::hidden(),
    };
    let work = |comm: &Comm| in_precision!(args.problem.precision, T => work::<T>(comm, args, &task, &bar));
    let done = session.run(common, work);
    bar.finish_and_clear();
    let done = done?;
    session.first(|| done.map_or(Ok(()), |done| print_result(args, done)))
}

fn options(args: &TuneArgs) -> Outcome<Options> {
    let method = match (&args.method, args.start) {
        (Some(name), _) => name.as_str(),
        (None, StartName::Planner) => METHODS[0].name,
        (None, StartName::Paper) => "simplex",
    };
    tune::find(method)?;
    let names: Vec<&str> = match (&args.tune_only[..], args.start) {
        ([], StartName::Paper) => PAPER.to_vec(),
        (names, _) => names.iter().map(String::as_str).collect(),
    };
    let mut only = names.into_iter().map(tune::tunable).collect::<Result<Vec<_>, _>>()?;
    only.sort_unstable();
    only.dedup();
    let patient = args.effort == EffortName::Patient;
    let seconds = args.budget.map_or(if patient { 60.0 } else { 10.0 }, |time| time.as_secs_f64());
    let trials = args.trials.unwrap_or(if patient { usize::MAX } else { 60 });
    if trials == 0 || args.random == Some(0) {
        return fail("at least 1 choice must be tried, got 0");
    }
    let limits = Limits { seconds, trials, ..Limits::default() };
    let refine = only.is_empty();
    let mut options =
        Options::default().method(method).limits(limits).seed(args.seed).only(only).refine(refine);
    if let Some(count) = args.random {
        options.method = "random".into();
        // All choices are timed completely; the default is not one of the N.
        options.limits.patience = f64::INFINITY;
        options.limits.trials = count.saturating_add(1);
        // With a search after them, the budget is that of the search.
        let budget = args.budget.filter(|_| args.tune_only.is_empty());
        options.limits.seconds = budget.map_or(f64::INFINITY, |time| time.as_secs_f64());
    }
    Ok(options)
}

/// The options of a search on GPUs.
fn gpu_options(args: &TuneArgs) -> Outcome<Options> {
    let paper = args.start == StartName::Paper;
    if args.apply || args.random.is_some() || args.cross.is_some() || args.wisdom.is_some() || paper {
        return fail(format!(
            "--device {}: --apply, --random, --cross, --wisdom and --start paper are for the CPU",
            args.problem.common.device
        ));
    }
    options(args)
}

fn read_foreign(path: &Path) -> Outcome<Wisdom> {
    if !path.exists() {
        return fail(format!("--cross {}: there is no such file", path.display()));
    }
    Ok(Wisdom::read(path)?)
}

/// Tunes and stores the result. Collective.
fn work<T: Real>(comm: &Comm, args: &TuneArgs, task: &TuneTask, bar: &ProgressBar) -> Outcome<Option<Done>> {
    let problem = &task.problem;
    let choice = with_messages(comm, &task.choice)?;
    let draft = Planner::new(problem).choice(choice.clone()).without_wisdom().draft::<T>(comm)?;
    let recipe = draft.recipe();
    let scalars = local_volumes(comm, recipe).iter().sum::<usize>() * 2 * recipe.batch;
    // Two plans exist at a time.
    check_memory(comm, 2 * draft.memory().total() + scalars * size_of::<T>())?;
    drop(draft);
    let mut options = task.options.clone();
    let mut foreign = Vec::new();
    if let Some(wisdom) = &task.foreign {
        let (key, _) = ferrier::wisdom::keys::<T>(comm, problem, &choice)?;
        foreign = wisdom.entries().filter(|entry| entry.problem == key).cloned().collect();
        options.rivals = foreign.iter().map(|entry: &Entry| entry.choice.clone()).collect();
    }
    let limits = options.limits;
    let mut watch = |progress: &Progress<'_>| {
        let done = (progress.seconds / limits.seconds).max(progress.trials as f64 / limits.trials as f64);
        bar.set_position((1000.0 * done.min(1.0)) as u64);
        let Progress { trials, seconds, best, .. } = progress;
        let ms = digits(best.seconds * 1e3);
        bar.set_message(format!("{trials} tried in {seconds:.0} s, best {ms} ms ({})", best.text));
    };
    let outcome = tune::tune::<T>(comm, problem, &choice, &options, &mut watch)?;
    let tuned = match args.random.filter(|_| !task.options.only.is_empty()) {
        Some(_) => {
            let limits = Limits {
                seconds: args.budget.map_or(10.0, |time| time.as_secs_f64()),
                trials: 60,
                ..Limits::default()
            };
            let method = args.method.as_deref().unwrap_or(METHODS[0].name);
            let search = Options::default()
                .method(method)
                .limits(limits)
                .only(task.options.only.clone())
                .refine(false);
            Some(tune::tune::<T>(comm, problem, &choice, &search, &mut |_| ())?)
        }
        None => None,
    };
    let written = match args.random {
        None => ferrier::wisdom::learn::<T>(comm, problem, &choice, &outcome, args.wisdom.as_deref()),
        Some(_) => Ok(None),
    };
    Ok((comm.rank() == 0).then_some(Done { outcome, tuned, written, foreign }))
}

/// Prints and writes the result.
fn print_result(args: &TuneArgs, done: Done) -> Outcome {
    let Done { outcome, tuned, written, foreign } = done;
    let spread = args.random.map(|_| Spread::new(&outcome, tuned.as_ref()));
    let written = written.unwrap_or_else(|error| {
        print::complain(&Failure::new(format!("warning: {error}; the result is not stored")));
        None
    });
    let cross = foreign.into_iter().zip(&outcome.rivals).map(|(entry, times)| Cross {
        cpu: entry.machine.cpu,
        transport: entry.machine.transport,
        choice: entry.choice,
        own_ms: times.map(|times| times[0]),
        their_ms: times.map(|times| times[1]),
    });
    if let (Some(path), Some(spread)) = (&args.svg, &spread) {
        print::write(path, &spread.svg(&args.problem.shape.to_string()))?;
    }
    let report = TuneReport {
        default_ms: outcome.default_ms,
        best_ms: outcome.best_ms,
        speed_up: outcome.speed_up(),
        trials: outcome.measured,
        seconds: outcome.seconds,
        method: &outcome.method,
        choice: &outcome.choice,
        wisdom: written.as_deref(),
        tried: &outcome.trials,
        cross: cross.collect(),
        random: spread.as_ref(),
    };
    let stored = written.as_ref().map(|path| ("stored in", path.display().to_string()));
    let mut said = report.text(args.explain, stored);
    if args.cross.is_some() && spread.is_none() {
        said.push('\n');
        said += &crossed(&report.cross);
    }
    print::report(args.json.as_deref(), &report, &said)
}
