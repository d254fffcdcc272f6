//! `ferrier simulate`: event simulation of a transform on a machine that is given as a file.

mod simgrid;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ferrier::{Event, EventKind};
use ferrier_bench::charts::{timeline, trace};
use ferrier_bench::table::{columns, digits, pairs};
use ferrier_model::export::goal;
use ferrier_model::sim::{SimEvent, SimEventKind, Simulated, simulate};
use ferrier_model::{Cluster, Job};
use serde::Serialize;

use crate::arguments::{JobArgs, SlowArgs, UserShape};
use crate::failure::{Failure, Outcome, fail};
use crate::print;
use crate::session::Session;

/// What another simulator reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportName {
    /// A folder with a platform, hosts and traces for SimGrid's `smpirun -replay`.
    Simgrid,
    /// A GOAL file for LogGOPSim.
    Goal,
}

/// Who simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// Ferrier.
    Own,
    /// SimGrid's smpirun, where it is installed (Debian: libsimgrid-dev), beside Ferrier.
    Simgrid,
}

/// `ferrier simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// 256 (a cube), 256x256x128, 512x512 (two axes)
    pub shape: UserShape,
    #[command(flatten)]
    pub job: JobArgs,
    /// Number of ranks
    #[arg(long, value_name = "R")]
    pub ranks: usize,
    /// Random delays of passes: their mean, relative to the pass
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub noise: f64,
    /// Seed of the delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub slow: SlowArgs,
    /// Write a timeline: .svg, or .json for Chrome's and Perfetto's viewers
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Ranks of the timeline, from 0 on
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub traced: usize,
    /// Write the input of another simulator
    #[arg(long, value_enum, requires = "to")]
    pub export: Option<ExportName>,
    /// The folder, or the file, of --export
    #[arg(long, value_name = "PATH", requires = "export")]
    pub to: Option<PathBuf>,
    /// Who simulates
    #[arg(long, value_enum, default_value_t = EngineName::Own)]
    pub engine: EngineName,
    /// Write the result as JSON, to stdout without FILE
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// The report of the command; the keys are part of the contract.
#[derive(Serialize)]
struct SimulateReport<'a> {
    #[serde(flatten)]
    simulated: &'a Simulated,
    /// Milliseconds of the closed form.
    model_ms: f64,
    /// Milliseconds of SimGrid; null if it was not asked for.
    simgrid_ms: Option<f64>,
    exchange: &'static str,
    path: String,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be written to; SimGrid is not installed.
pub fn run(args: &SimulateArgs, session: &Session) -> Outcome {
    session.first(|| simulated(args))
}

fn simulated(args: &SimulateArgs) -> Outcome {
    match args.trace.as_deref() {
        Some(path) if !matches!(extension(path), Some("json" | "svg")) => {
            return fail(format!("--trace {}: the name must end in .json or .svg", path.display()));
        }
        _ => print::check([&args.json, &args.trace])?,
    }
    let cluster = args.job.cluster()?;
    let job = args.job.job(&cluster, &args.shape, args.ranks)?;
    let options = args.slow.options().noise(args.noise, args.seed).recorded(if args.trace.is_some() {
        args.traced
    } else {
        0
    });
    let simulated = simulate(&job, &options).map_err(Failure::new)?;
    if let Some(path) = args.trace.as_deref() {
        write_trace(path, &title(args, &cluster), &simulated)?;
    }
    match (args.export, args.to.as_deref()) {
        (Some(ExportName::Simgrid), Some(folder)) => simgrid::write(&job, folder)?,
        (Some(ExportName::Goal), Some(file)) => print::write(file, &goal(&job).map_err(Failure::new)?)?,
        _ => {}
    }
    let simgrid_ms = match args.engine {
        EngineName::Own => None,
        EngineName::Simgrid => Some(1e3 * simgrid::run(&job)?),
    };
    let report = SimulateReport {
        simulated: &simulated,
        model_ms: job.model_with(&args.slow.options()).map_err(Failure::new)?.total_ms,
        simgrid_ms,
        exchange: job.exchange.name(),
        path: job.recipe.path_text(),
    };
    print::report(args.json.as_deref(), &report, &text(args, &job, &report))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn title(args: &SimulateArgs, cluster: &Cluster) -> String {
    format!("{} on {} ranks of {}, simulated", args.shape, args.ranks, cluster.name)
}

fn text(args: &SimulateArgs, job: &Job<'_>, report: &SimulateReport<'_>) -> String {
    let simulated = report.simulated;
    let row = |step: &ferrier_model::sim::SimStep| {
        let share = format!("{:.1} %", 100.0 * step.ms / simulated.total_ms);
        vec![step.name.clone(), digits(step.ms), digits(step.most_ms), share]
    };
    let heads = ["step", "ms, mean", "ms, most", "share"];
    let mut out = format!("{}: exchange {}\n\n", title(args, job.cluster), report.exchange);
    out += &columns(&heads, simulated.steps.iter().map(row));
    out.push('\n');
    let mut rows = vec![
        ("last rank done after", format!("{} ms", digits(simulated.total_ms))),
        ("first rank done after", format!("{} ms", digits(simulated.first_ms))),
        ("speed", format!("{} Gflop/s", digits(simulated.gflops))),
        ("closed form", format!("{} ms", digits(report.model_ms))),
    ];
    if let Some(ms) = report.simgrid_ms {
        let error = 100.0 * (simulated.total_ms / ms - 1.0);
        rows.push(("SimGrid", format!("{} ms ({error:+.1} % here)", digits(ms))));
    }
    rows.push(("flows", format!("{}, rates computed {} times", simulated.flows, simulated.updates)));
    rows.push(("layouts and axes", report.path.clone()));
    out + &pairs(&rows)
}

fn write_trace(path: &Path, title: &str, simulated: &Simulated) -> Outcome {
    let events: Vec<Vec<Event>> =
        simulated.events.iter().map(|list| list.iter().map(event).collect()).collect();
    match extension(path) {
        Some("svg") => print::write(path, &timeline::svg(title, &events)),
        _ => print::json(path, &trace::chrome(title, &events)),
    }
}

/// An event in the format of measured ones.
fn event(event: &SimEvent) -> Event {
    let kind = match event.kind {
        SimEventKind::Transform => EventKind::Transform,
        SimEventKind::Copy => EventKind::Copy,
        SimEventKind::Encode => EventKind::Encode,
        SimEventKind::Decode => EventKind::Decode,
        SimEventKind::Post => EventKind::Post,
        SimEventKind::Wait => EventKind::Wait,
        _ => EventKind::Barrier,
    };
    let pass = matches!(kind, EventKind::Transform | EventKind::Copy);
    Event {
        kind,
        name: event.name.clone(),
        reshape: event.tile.map(|tile| tile.0),
        tile: event.tile.map(|tile| tile.1),
        wired: pass && event.tile.is_some(),
        start_ms: 1e3 * event.seconds[0],
        end_ms: 1e3 * event.seconds[1],
        test_ms: 0.0,
        coded_ms: 0.0,
        packet: None,
        bytes: event.bytes as u64,
    }
}
