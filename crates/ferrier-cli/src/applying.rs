//! `ferrier bench --apply`: what an operator costs, fused with the transforms and not.

use std::f64::consts::TAU;

use ferrier::spectral::{self, Waves};
use ferrier::wisdom::Known;
use ferrier::{Comm, LayoutSpec, Operator, Planner, Precision, Problem, Real};
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
    fn operator<T: Real>(&self, waves: &Waves) -> ferrier::Result<Box<dyn Operator<T>>> {
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
struct Report {
    shape: Vec<usize>,
    kind: &'static str,
    precision: &'static str,
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
    /// Forward, a pass over the spectrum that multiplies, and backward.
    separate: Times,
    /// Medians of `apply` over those of the other two.
    apply_over_pair: f64,
    apply_over_separate: f64,
    /// Distance of the two results over their norm.
    difference: f64,
    /// Where the plan's choices are from; null where nobody tuned such trips.
    wisdom: Option<Known>,
}

/// What is to be timed.
struct Work {
    problem: Problem,
    choice: ferrier::Choice,
    member: &'static Member,
    repeat: Option<usize>,
}

/// What all repetitions should take, about.
const WANTED_SECONDS: f64 = 2.0;

/// Runs the command.
///
/// # Errors
/// Bad input; a result that is wrong (exit code 1).
pub fn run(args: &BenchArgs, name: &str, session: &Session) -> Outcome {
    let common = &args.problem.common;
    let work = session.agree(prepare(args, name, session))?;
    session.first(|| report::check_json(args.json.as_deref()))?;
    let reports = match precision(&args.problem) {
        Precision::F32 => session.run(common, |comm| measure::<f32>(comm, &work)),
        Precision::F64 => session.run(common, |comm| measure::<f64>(comm, &work)),
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
    let problem = problem.output(LayoutSpec::best()).operators(true);
    let choice = setup::choice(&args.problem.common, &args.problem.shape)?;
    Ok(Work { problem, choice, member, repeat: args.repeat })
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
    let noise = Noise::new(recipe.shape, 1);
    match recipe.is_real() {
        true => input.fill_real(|b, index| rounded::<T>(noise.at(b, index)).re),
        false => input.fill_complex(|b, index| rounded(noise.at(b, index))),
    }
    let waves = Waves::new(&recipe, [TAU; 3])?;
    let operator = work.member.operator::<T>(&waves)?;
    let operator = &*operator;
    let threads = comm.threads();
    let [mut apply, mut pair, mut separate] = [const { Vec::new() }; 3];
    let mut repeat = work.repeat.unwrap_or(usize::MAX);
    let mut turn = 0;
    // The first turn is to warm up.
    while turn <= repeat {
        apply.push(timed(comm, || plan.apply(&input, &mut fused, &operator))?);
        pair.push(timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?);
        separate.push(timed(comm, || {
            plan.forward(&input, &mut spectrum)?;
            spectrum.apply(operator, threads);
            plan.backward(&spectrum, &mut back)
        })?);
        if turn == 0 && work.repeat.is_none() {
            repeat = (WANTED_SECONDS / (apply[0] + pair[0] + separate[0])).ceil().clamp(5.0, 300.0) as usize;
        }
        turn += 1;
    }
    for times in [&mut apply, &mut pair, &mut separate] {
        times.remove(0);
    }
    let sums = ferrier::Data::numbers(&fused).iter().zip(ferrier::Data::numbers(&back));
    let (mut distance, mut norm) = (0.0, 0.0);
    for (a, b) in sums {
        let (a, b): (f64, f64) = (a.widened(), b.widened());
        distance += (a - b) * (a - b);
        norm += b * b;
    }
    let sums = comm.sum(&[distance, norm])?;
    let difference = (sums[0] / sums[1].max(f64::MIN_POSITIVE)).sqrt();
    // They are the same to the last bit, but nobody promised that of all kernels.
    if difference.is_nan() || difference > 8.0 * recipe.precision.epsilon() {
        return session::agree(
            comm,
            Err(Failure::wrong(format!("the two results differ by {difference:.1e}"))),
        );
    }
    Ok(Report {
        shape: Vec::new(),
        kind: if recipe.is_real() { "r2c" } else { "c2c" },
        precision: recipe.precision.name(),
        operator: work.member.name,
        ranks: comm.size(),
        threads,
        transport: comm.transport_name(),
        exchange: recipe.exchange.clone(),
        repeat,
        apply_over_pair: median(&apply) / median(&pair),
        apply_over_separate: median(&apply) / median(&separate),
        apply: Times::new(&apply),
        pair: Times::new(&pair),
        separate: Times::new(&separate),
        difference,
        wisdom,
    })
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
    format!(
        "{shape} {} {}, {}: ranks {}, threads {}, exchange {}\n\n{}{}",
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
