//! `ferrier solve helmholtz`: -laplace(u) + u = f, with a known solution.

use std::f64::consts::TAU;

use clap::Args;
use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Choice, Comm, LayoutSpec, Problem};
use ferrier_bench::agree::{agree_result, check_memory, draft};
use ferrier_bench::table::{bytes, columns, digits, pairs, plural};
use ferrier_bench::test_function::TestFunction;
use ferrier_bench::timing::{median, timed};
use ferrier_bench::view::{distance, value};
use num_complex::Complex;
use serde::Serialize;

use super::run_args::RunArgs;
use crate::arguments::{UserShape, setup};
use crate::failure::Outcome;
use crate::print;
use crate::session::Session;

/// `ferrier solve helmholtz`.
#[derive(Args, Debug)]
pub struct HelmholtzArgs {
    /// Points of the cube along each side
    #[arg(long, value_name = "N")]
    pub n: usize,
    /// Allowed relative L2 errors of each of the two transforms
    #[arg(long, value_name = "E,..", value_delimiter = ',', default_values_t = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])]
    pub tolerance: Vec<f64>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Cost and error of a tolerance; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct HelmholtzRow {
    /// Null: no tolerance, nothing is lost.
    tolerance: Option<f64>,
    codec: String,
    exchange: String,
    /// Distance from the exact solution over its norm.
    solution_error: f64,
    /// Distance from the solution of the first row over its norm: the effect of the tolerance.
    deviation: f64,
    /// Bound of the distance from the exact solution on this grid: loss of the codec and the worst
    /// case of rounding.
    error_bound: f64,
    /// Median time of a solution, in milliseconds.
    median_ms: f64,
    /// Bytes between ranks, both transforms together.
    wire_bytes: u64,
}

/// The report of the command; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct HelmholtzReport {
    n: usize,
    ranks: usize,
    nodes: usize,
    threads: usize,
    transport: String,
    /// Distance of the solution on the grid from the exact one.
    discretisation_error: f64,
    /// The same, estimated from a second grid without the exact solution.
    discretisation_estimate: f64,
    /// Points of that grid along each side.
    finer_n: usize,
    /// The largest tolerance whose error is at most twice that of the discretisation.
    suggested: Option<f64>,
    rows: Vec<HelmholtzRow>,
}

/// The equations to solve, the same on all ranks.
struct HelmholtzTask {
    n: usize,
    tolerances: Vec<f64>,
    repeat: usize,
    choice: Choice,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &HelmholtzArgs, session: &Session) -> Outcome {
    let common = args.run.common();
    let prepare = || {
        session.size(&common)?;
        let frame = UserShape::new(&[args.n; 3])?;
        args.run.check_repeat()?;
        let tolerances = args.tolerance.clone();
        Ok(HelmholtzTask {
            n: args.n,
            tolerances,
            repeat: args.run.repeat,
            choice: setup::choice(&common, &frame)?,
        })
    };
    let task = session.agree(prepare())?;
    session.first(|| print::check(args.run.json.as_deref()))?;
    let report = session.run(&common, |comm| sweep(comm, &task))?;
    session.first(|| print::report(args.run.json.as_deref(), &report, &text(&report)))
}

/// Solves all of them. Collective.
fn sweep(comm: &Comm, task: &HelmholtzTask) -> Outcome<HelmholtzReport> {
    // Unattainable tolerances fail before long work.
    for &tolerance in &task.tolerances {
        draft::<f64>(comm, &problem(task.n, Some(tolerance)), task.choice.clone())?;
    }
    let exact = TestFunction::new([task.n; 3]);
    let (raw, solution) = solve(comm, task, &exact, None, task.repeat)?;
    let (_, second) = solve(comm, task, &TestFunction::new([finer(task.n); 3]), None, 0)?;
    let estimate = estimate_discretisation(comm, &solution, &second)?.coarse();
    drop(second);
    let error = raw.solution_error;
    let mut rows = vec![raw];
    for &tolerance in &task.tolerances {
        let (mut row, own) = solve(comm, task, &exact, Some(tolerance), task.repeat)?;
        let (off, norm) = distance(comm, &own, |index| value(&solution, index))?;
        row.deviation = off / norm;
        rows.push(row);
    }
    let good = rows.iter().filter(|row| row.solution_error <= 2.0 * error).filter_map(|row| row.tolerance);
    Ok(HelmholtzReport {
        n: task.n,
        ranks: comm.size(),
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        discretisation_error: error,
        discretisation_estimate: estimate,
        finer_n: finer(task.n),
        suggested: good.reduce(f64::max),
        rows,
    })
}

fn problem(n: usize, tolerance: Option<f64>) -> Problem {
    let problem = Problem::r2c([n; 3]).output(LayoutSpec::unconstrained());
    match tolerance {
        Some(tolerance) => problem.tolerance(tolerance),
        None => problem,
    }
}

/// Points of a slightly finer grid that shares some points with one of n.
fn finer(n: usize) -> usize {
    match () {
        () if n.is_multiple_of(4) => n / 4 * 5,
        () if n.is_multiple_of(2) => n / 2 * 3,
        () => n * 2,
    }
}

/// Solves on the grid of `exact`, first untimed. Collective.
fn solve(
    comm: &Comm,
    task: &HelmholtzTask,
    exact: &TestFunction,
    tolerance: Option<f64>,
    repeat: usize,
) -> Outcome<(HelmholtzRow, Array<f64>)> {
    let n = exact.shape()[0];
    let draft = draft::<f64>(comm, &problem(n, tolerance), task.choice.clone())?;
    // Right-hand side, solution, the solution to compare with, spectrum.
    let volume = draft.recipe().input.boxes()[comm.rank()].volume();
    check_memory(comm, draft.memory().total() + 4 * size_of::<f64>() * volume)?;
    let plan = draft.build()?;
    let (codec, exchange) = (plan.recipe().codec().into(), plan.recipe().exchange().into());
    let arrays = plan.make_input().and_then(|f| Ok((f, plan.make_input()?)));
    let (mut f, mut u) = agree_result(comm, arrays)?;
    f.fill_real(|_, index| exact.helmholtz(index));
    let mut solver = Helmholtz::new(plan, [TAU; 3], 1.0)?;
    let cost = solver.solve(&f, &mut u)?;
    let mut seconds = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        seconds.push(timed(comm, || solver.solve(&f, &mut u).map(drop))?);
    }
    let (off, norm) = distance(comm, &u, |index| Complex::from(exact.value(index)))?;
    let (_, norm_f) = distance(comm, &f, |index| Complex::from(exact.helmholtz(index)))?;
    let row = HelmholtzRow {
        tolerance,
        codec,
        exchange,
        solution_error: off / norm,
        deviation: 0.0,
        error_bound: solver.error_bound(&cost, norm_f, norm),
        median_ms: median(&seconds) * 1e3,
        wire_bytes: comm.sum(&[cost.wire_bytes as f64])?[0] as u64,
    };
    Ok((row, u))
}

fn text(report: &HelmholtzReport) -> String {
    let HelmholtzReport { n, ranks, nodes, .. } = report;
    let mut out = format!(
        "-laplace(u) + u = f on {n}x{n}x{n} points, {}{}\n\n",
        plural(*ranks, "rank"),
        if *nodes > 1 { format!(" on {nodes} nodes") } else { String::new() },
    );
    out += &pairs(&[
        ("discretisation error", format!("{:.2e}", report.discretisation_error)),
        (
            "as estimated",
            format!(
                "{:.2e}, from a second grid of {} points",
                report.discretisation_estimate, report.finer_n
            ),
        ),
    ]);
    let row = |row: &HelmholtzRow| {
        let mark = if row.tolerance.is_some() && row.tolerance == report.suggested { "<-" } else { "" };
        vec![
            row.tolerance.map_or("none".into(), |tolerance| format!("{tolerance:e}")),
            row.codec.clone(),
            format!("{:.2e}", row.solution_error),
            format!("{:.1e}", row.deviation),
            format!("{:.1e}", row.error_bound),
            digits(row.median_ms),
            bytes(row.wire_bytes),
            mark.into(),
        ]
    };
    out.push('\n');
    let heads = [
        "tolerance",
        "codec",
        "solution error",
        "difference from first",
        "at most",
        "ms",
        "between ranks",
        "",
    ];
    out += &columns(&heads, report.rows.iter().map(row));
    if report.suggested.is_some() {
        out += "\n<- the largest tolerance that does not double the discretisation error\n";
    }
    out
}
