//! `ferrier bench --apply`: what an operator costs, fused with the transforms and not.

use std::f64::consts::TAU;

use ferrier::spectral::{self, WaveNumbers};
use ferrier::wisdom::Known;
use ferrier::{Array, Comm, Data, Device, LayoutSpec, Operator, Planner, Precision, Problem, Real};
use serde::Serialize;

use crate::args::BenchArgs;
use crate::bench::{Times, precision};
use crate::failure::{Failure, Outcome, fail};
use crate::noise::Noise;
use crate::parts::Number;
use crate::report::{self, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::timing::{median, timed};
use crate::view::rounded;

/// An operator that can be timed.
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    which: Which,
}

#[derive(Clone, Copy)]
enum Which {
    Laplacian,
    Inverse,
    Gaussian,
    Shift,
}

/// All of them.
pub static OPERATORS: &[Member] = &[
    Member { name: "laplacian", summary: "each mode times -k^2", which: Which::Laplacian },
    Member { name: "poisson", summary: "the inverse of the Laplacian", which: Which::Inverse },
    Member { name: "gaussian", summary: "a smooth filter", which: Which::Gaussian },
    Member { name: "shift", summary: "by a part of a point, each mode times a phase", which: Which::Shift },
];

impl Member {
    /// The operator, of these wave numbers.
    ///
    /// # Errors
    /// It is not for these axes.
    pub fn operator<T: Real>(&self, waves: &WaveNumbers) -> ferrier::Result<Box<dyn Operator<T>>> {
        Ok(match self.which {
            Which::Laplacian => Box::new(spectral::laplacian(waves)),
            Which::Inverse => Box::new(spectral::inverse_laplacian(waves)),
            Which::Gaussian => Box::new(spectral::gaussian(waves, 0.1)),
            Which::Shift => Box::new(spectral::shift(waves, [0.1; 3])?),
        })
    }
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
pub struct Report {
    shape: Vec<usize>,
    kind: &'static str,
    precision: &'static str,
    device: String,
    /// The name of the GPU, where it ran on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    operator: &'static str,
    ranks: usize,
    threads: usize,
    transport: &'static str,
    exchange: String,
    repeat: usize,
    /// Forward, operator and backward in one trip.
    apply: Times,
    /// Forward and backward.
    pair: Times,
    /// Forward, a pass over the spectrum that multiplies, and backward. (On a GPU the
    /// multiplication goes with the last pass of forward.)
    separate: Times,
    /// Medians of `apply` over those of the other two.
    apply_over_pair: f64,
    apply_over_separate: f64,
    /// Distance of the two results over their norm. (On a GPU the second one's
    /// operator ran on the CPU.)
    difference: f64,
    /// Where the plan's choices are from; null where nobody tuned such trips.
    wisdom: Option<Known>,
}

/// What is to be timed.
pub struct Work {
    pub problem: Problem,
    pub choice: ferrier::Choice,
    pub member: &'static Member,
    pub device: Device,
    repeat: Option<usize>,
}

/// The seconds of each repetition, the slowest rank's.
#[derive(Default)]
pub struct Laps {
    pub apply: Vec<f64>,
    pub pair: Vec<f64>,
    pub separate: Vec<f64>,
}

/// What all repetitions should take, about.
const WANTED_SECONDS: f64 = 2.0;

impl Work {
    /// Takes turns: `lap` times each of the three once. The first turn is to warm up.
    ///
    /// # Errors
    /// Those of `lap`.
    pub fn laps(&self, mut lap: impl FnMut() -> Outcome<[f64; 3]>) -> Outcome<Laps> {
        let first: f64 = lap()?.iter().sum();
        let repeat = self.repeat.unwrap_or((WANTED_SECONDS / first).ceil().clamp(5.0, 300.0) as usize);
        let mut laps = Laps::default();
        for _ in 0..repeat {
            let [apply, pair, separate] = lap()?;
            laps.apply.push(apply);
            laps.pair.push(pair);
            laps.separate.push(separate);
        }
        Ok(laps)
    }

    /// What is told of a run.
    pub fn report(&self, comm: &Comm, recipe: &ferrier::Recipe, laps: &Laps, difference: f64) -> Report {
        let Laps { apply, pair, separate } = laps;
        Report {
            shape: Vec::new(),
            kind: if recipe.is_real() { "r2c" } else { "c2c" },
            precision: recipe.precision.name(),
            device: self.device.to_string(),
            gpu: None,
            operator: self.member.name,
            ranks: comm.size(),
            threads: comm.threads(),
            transport: comm.transport_name(),
            exchange: recipe.exchange().into(),
            repeat: apply.len(),
            apply_over_pair: median(apply) / median(pair),
            apply_over_separate: median(apply) / median(separate),
            apply: Times::new(apply),
            pair: Times::new(pair),
            separate: Times::new(separate),
            difference,
            wisdom: None,
        }
    }
}

impl Report {
    /// The same, measured on a GPU.
    pub fn on(mut self, gpu: &str) -> Self {
        self.gpu = Some(gpu.into());
        self
    }
}

/// The distance of two arrays over the norm of the second, over all ranks; wrong
/// where it is more than `most`. Collective.
///
/// # Errors
/// It is; the same on every rank.
pub fn difference<T: Real + Number>(comm: &Comm, one: &[T], other: &[T], most: f64) -> Outcome<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        let (a, b): (f64, f64) = (a.widened(), b.widened());
        distance += (a - b) * (a - b);
        norm += b * b;
    }
    let sums = comm.sum(&[distance, norm])?;
    let difference = (sums[0] / sums[1].max(f64::MIN_POSITIVE)).sqrt();
    match difference <= most {
        true => Ok(difference),
        false => {
            session::agree(comm, Err(Failure::wrong(format!("the two results differ by {difference:.1e}"))))
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Bad input; a result that is wrong (exit code 1).
pub fn run(args: &BenchArgs, name: &str, session: &Session) -> Outcome {
    let common = &args.problem.common;
    let work = session.agree(prepare(args, name, session))?;
    session.first(|| report::check_json(args.json.as_deref()))?;
    let reports = match (work.device, precision(&args.problem)) {
        (Device::Cpu, Precision::F32) => session.run(common, |comm| measure::<f32>(comm, &work)),
        (Device::Cpu, Precision::F64) => session.run(common, |comm| measure::<f64>(comm, &work)),
        (_, Precision::F32) => session.run(common, |comm| crate::gpu::apply::<f32>(comm, &work)),
        (_, Precision::F64) => session.run(common, |comm| crate::gpu::apply::<f64>(comm, &work)),
    }?;
    session.first(|| {
        let Some(mut report) = reports.into_iter().next() else { return fail("no rank came back") };
        report.shape = args.problem.shape.lengths().to_vec();
        match args.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, &report),
            path => {
                path.map_or(Ok(()), |path| report::json(path, &report))?;
                report::say(&text(&report))
            }
        }
    })
}

fn prepare(args: &BenchArgs, name: &str, session: &Session) -> Outcome<Work> {
    let Some(member) = OPERATORS.iter().find(|member| member.name == name) else {
        let known: Vec<_> = OPERATORS.iter().map(|member| member.name).collect();
        return fail(format!("unknown operator `{name}`; known are: {}", known.join(", ")));
    };
    if !args.against.is_empty() || !args.variants.is_empty() || args.in_place || args.exchange_only {
        return fail("--apply goes without --against, --variants, --in-place, --exchange-only");
    }
    if args.repeat == Some(0) {
        return fail("--repeat 0: at least 1 repetition is needed");
    }
    let ranks = session.size(&args.problem.common)?;
    let (problem, _) = setup::problem(&args.problem, ranks)?;
    let problem = problem.output(LayoutSpec::unconstrained()).operators(true);
    let choice = setup::choice(&args.problem.common, &args.problem.shape)?;
    let device = args.problem.common.device;
    Ok(Work { problem, choice, member, device, repeat: args.repeat })
}

/// Noise.
pub fn fill<T: Real + Number>(input: &mut Array<T>, recipe: &ferrier::Recipe) {
    let noise = Noise::new(recipe.shape, 1);
    match recipe.is_real() {
        true => input.fill_real(|b, index| rounded::<T>(noise.at(b, index)).re),
        false => input.fill_complex(|b, index| rounded(noise.at(b, index))),
    }
}

/// What every rank does. Collective.
fn measure<T: Real + Number>(comm: &Comm, work: &Work) -> Outcome<Report> {
    let choice = crate::overlap::with_messages(comm, &work.choice)?;
    let draft = Planner::new(&work.problem).choice(choice).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let (recipe, wisdom) = (draft.recipe().clone(), draft.wisdom().cloned());
    let volumes = [&recipe.input, &recipe.output].map(|layout| layout.boxes()[comm.rank()].volume());
    let numbers = (3 * volumes[0] + volumes[1]) * 2 * recipe.batch;
    setup::check_room(comm, draft.memory().total() + numbers * size_of::<T>())?;
    let mut plan = draft.build()?;
    let mut input = plan.make_input()?;
    let (mut fused, mut back, mut spectrum) = (plan.make_input()?, plan.make_input()?, plan.make_output()?);
    fill(&mut input, &recipe);
    let waves = WaveNumbers::new(&recipe, [TAU; 3])?;
    let operator = work.member.operator::<T>(&waves)?;
    let operator = &*operator;
    let threads = comm.threads();
    let laps = work.laps(|| {
        let apply = timed(comm, || plan.apply(&input, &mut fused, &operator))?;
        let pair = timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?;
        let separate = timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            spectrum.apply(operator, threads);
            plan.backward(&spectrum, &mut back)
        })?;
        Ok([apply, pair, separate])
    })?;
    // They are the same to the last bit, but nobody promised that of all kernels.
    let most = 8.0 * recipe.precision.epsilon();
    let difference = difference(comm, fused.numbers(), back.numbers(), most)?;
    Ok(Report { wisdom, ..work.report(comm, &recipe, &laps, difference) })
}

fn text(report: &Report) -> String {
    let shape = report.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let row = |name: &str, times: &Times| {
        vec![
            name.into(),
            digits(times.best_ms),
            digits(times.median_ms),
            digits(report.apply.median_ms / times.median_ms),
        ]
    };
    let rows = [
        row("apply", &report.apply),
        row("forward + backward", &report.pair),
        row("forward, multiply, backward", &report.separate),
    ];
    let gpu = report.gpu.as_ref().map_or(String::new(), |gpu| format!("on {gpu}, by its own events\n"));
    format!(
        "{shape} {} {}, {}: ranks {}, threads {}, exchange {}\n{gpu}\n{}{}",
        report.kind,
        report.precision,
        report.operator,
        report.ranks,
        report.threads,
        report.exchange,
        report::columns(&["", "best ms", "median ms", "apply over it"], &rows),
        crate::plan::wisdom_line(report.wisdom.as_ref())
    )
}
