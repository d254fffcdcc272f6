//! `ferrier solve helmholtz`: -laplace(u) + u = f, with a known solution.

use std::f64::consts::TAU;

use clap::Args;
use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Choice, Comm, LayoutSpec, Problem};
use ferrier_bench::agree::{RankGroup, agree_result, check_memory, draft};
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
    #[serde(flatten)]
    group: RankGroup,
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
        setup::choice(&common, &frame)
    };
    let choice = session.agree(prepare())?;
    session.first(|| print::check([&args.run.json]))?;
    let report = session.run(&common, |comm| sweep(comm, args, &choice))?;
    session.first(|| print::report(args.run.json.as_deref(), &report, &text(&report)))
}

/// Solves all of them. Collective.
fn sweep(comm: &Comm, args: &HelmholtzArgs, choice: &Choice) -> Outcome<HelmholtzReport> {
    let choice = &args.run.tuned(comm, &problem(args.n, None), choice)?;
    // Unattainable tolerances fail before long work.
    for &tolerance in &args.tolerance {
        draft::<f64>(comm, &problem(args.n, Some(tolerance)), choice.clone())?;
    }
    let exact = TestFunction::new([args.n; 3]);
    let (raw, solution) = solve(comm, choice, &exact, None, args.run.repeat)?;
    let (_, second) = solve(comm, choice, &TestFunction::new([finer(args.n); 3]), None, 0)?;
    let estimate = estimate_discretisation(comm, &solution, &second)?.coarse();
    drop(second);
    let error = raw.solution_error;
    let mut rows = vec![raw];
    for &tolerance in &args.tolerance {
        let (mut row, own) = solve(comm, choice, &exact, Some(tolerance), args.run.repeat)?;
        let (off, norm) = distance(comm, &own, |index| value(&solution, index))?;
        row.deviation = off / norm;
        rows.push(row);
    }
    let good = rows.iter().filter(|row| row.solution_error <= 2.0 * error).filter_map(|row| row.tolerance);
    Ok(HelmholtzReport {
        n: args.n,
        group: RankGroup::new(comm),
        discretisation_error: error,
        discretisation_estimate: estimate,
        finer_n: finer(args.n),
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
    choice: &Choice,
    exact: &TestFunction,
    tolerance: Option<f64>,
    repeat: usize,
) -> Outcome<(HelmholtzRow, Array<f64>)> {
    let n = exact.shape()[0];
    let draft = draft::<f64>(comm, &problem(n, tolerance), choice.clone())?;
    // Right-hand side, solution, the solution to compare with, spectrum.
    let volume = draft.recipe().input.boxes()[comm.rank()].volume();
    check_memory(comm, draft.memory().total() + 4 * size_of::<f64>() * volume)?;
    let plan = draft.build()?;
    let (codec, exchange) = (plan.recipe().codec.clone(), plan.recipe().exchange.clone());
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
    let HelmholtzReport { n, finer_n, .. } = report;
    let RankGroup { ranks, nodes, .. } = report.group;
    let nodes = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
    let ranks = plural(ranks, "rank");
    let [error, estimate] =
        [report.discretisation_error, report.discretisation_estimate].map(|error| format!("{error:.2e}"));
    let mut out = format!("-laplace(u) + u = f on {n}x{n}x{n} points, {ranks}{nodes}\n\n");
    out += &pairs(&[
        ("discretisation error", error),
        ("as estimated", format!("{estimate}, from a second grid of {finer_n} points")),
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
    let (difference, between) = ("difference from first", "between ranks");
    let heads = ["tolerance", "codec", "solution error", difference, "at most", "ms", between, ""];
    out += &columns(&heads, report.rows.iter().map(row));
    if report.suggested.is_some() {
        out += "\n<- the largest tolerance that does not double the discretisation error\n";
    }
    out
}
