//! `ferrier solve helmholtz`: -laplace(u) + u = f, with a solution that is known.

use std::f64::consts::TAU;

use clap::Args;
use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Choice, Comm, LayoutSpec, Planner, Problem};
use num_complex::Complex;
use serde::Serialize;

use super::RunArgs;
use crate::failure::{Outcome, fail};
use crate::pulse::Pulse;
use crate::report::{self, bytes, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::shape::Frame;
use crate::timing::{median, timed};
use crate::view::{distance, value};

/// `ferrier solve helmholtz`.
#[derive(Args, Debug)]
pub struct HelmholtzArgs {
    /// Points of the cube along each side
    #[arg(long, value_name = "N")]
    pub n: usize,
    /// Relative L2 errors that each of the two transforms may make
    #[arg(long, value_name = "E,..", value_delimiter = ',', default_values_t = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12])]
    pub tolerance: Vec<f64>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What a tolerance costs and gives; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// Null: nothing may be lost.
    tolerance: Option<f64>,
    codec: String,
    exchange: String,
    /// Distance from the true solution over its norm.
    solution_error: f64,
    /// Distance from the solution of the first row over its norm: what the tolerance did.
    deviation: f64,
    /// Of the distance from the exact solution on this grid: what was lost, and rounding at worst.
    error_bound: f64,
    /// Of a solution, in milliseconds.
    median_ms: f64,
    /// Between ranks, both transforms together.
    wire_bytes: u64,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    ranks: usize,
    nodes: usize,
    threads: usize,
    transport: String,
    /// Distance of what the grid can show from the true solution.
    discretisation_error: f64,
    /// The same as one finds it without knowing the solution, from a second grid.
    discretisation_estimate: f64,
    /// Points of that grid along each side.
    finer_n: usize,
    /// The largest tolerance with which the error is at most twice that of the discretisation.
    suggested: Option<f64>,
    rows: Vec<Row>,
}

/// What is to be solved.
struct Work {
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
    let common = args.run.way.common(args.run.ranks);
    let prepare = || {
        session.size(&common)?;
        let frame = Frame::new(&[args.n; 3])?;
        if args.run.repeat == 0 {
            return fail("--repeat 0: at least 1 repetition is needed");
        }
        let tolerances = args.tolerance.clone();
        Ok(Work { n: args.n, tolerances, repeat: args.run.repeat, choice: setup::choice(&common, &frame)? })
    };
    let work = session.agree(prepare())?;
    session.first(|| report::check_json(args.run.json.as_deref()))?;
    let reports = session.run(&common, |comm| sweep(comm, &work))?;
    session.first(|| {
        let Some(report) = reports.first() else { return fail("no rank came back") };
        match args.run.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, report),
            path => {
                path.map_or(Ok(()), |path| report::json(path, report))?;
                report::say(&text(report))
            }
        }
    })
}

/// What every rank does. Collective.
fn sweep(comm: &Comm, work: &Work) -> Outcome<Report> {
    // Before anything takes time: can all of these be kept?
    for &tolerance in &work.tolerances {
        let draft =
            Planner::new(&problem(work.n, Some(tolerance))).choice(work.choice.clone()).draft::<f64>(comm);
        session::agree(comm, draft.map_err(Into::into))?;
    }
    let exact = Pulse::new([work.n; 3]);
    let (raw, solution) = solve(comm, work, &exact, None, work.repeat)?;
    let (_, second) = solve(comm, work, &Pulse::new([finer(work.n); 3]), None, 0)?;
    let estimate = estimate_discretisation(comm, &solution, &second)?.coarse();
    drop(second);
    let error = raw.solution_error;
    let mut rows = vec![raw];
    for &tolerance in &work.tolerances {
        let (mut row, own) = solve(comm, work, &exact, Some(tolerance), work.repeat)?;
        let (off, norm) = distance(comm, &own, |index| value(&solution, index))?;
        row.deviation = off / norm;
        rows.push(row);
    }
    let good = rows.iter().filter(|row| row.solution_error <= 2.0 * error).filter_map(|row| row.tolerance);
    Ok(Report {
        n: work.n,
        ranks: comm.size(),
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        discretisation_error: error,
        discretisation_estimate: estimate,
        finer_n: finer(work.n),
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

/// Points of a grid that is a little finer and has some points in common with one of n.
fn finer(n: usize) -> usize {
    match () {
        () if n.is_multiple_of(4) => n / 4 * 5,
        () if n.is_multiple_of(2) => n / 2 * 3,
        () => n * 2,
    }
}

/// Solves on the grid of `exact`, once untimed. Collective.
fn solve(
    comm: &Comm,
    work: &Work,
    exact: &Pulse,
    tolerance: Option<f64>,
    repeat: usize,
) -> Outcome<(Row, Array<f64>)> {
    let n = exact.shape()[0];
    let draft = Planner::new(&problem(n, tolerance)).choice(work.choice.clone()).draft::<f64>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    // Right-hand side, solution, the solution to compare with, spectrum.
    let volume = draft.recipe().input.boxes()[comm.rank()].volume();
    setup::check_room(comm, draft.memory().total() + 4 * size_of::<f64>() * volume)?;
    let plan = draft.build()?;
    let (codec, exchange) = (plan.recipe().codec().into(), plan.recipe().exchange().into());
    let arrays = plan.make_input().and_then(|f| Ok((f, plan.make_input()?)));
    let (mut f, mut u) = session::agree(comm, arrays.map_err(Into::into))?;
    f.fill_real(|_, index| exact.helmholtz(index));
    let mut solver = Helmholtz::new(plan, [TAU; 3], 1.0)?;
    let cost = solver.solve(&f, &mut u)?;
    let mut seconds = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        seconds.push(timed(comm, || solver.solve(&f, &mut u).map(drop))?);
    }
    let (off, norm) = distance(comm, &u, |index| Complex::from(exact.value(index)))?;
    let (_, norm_f) = distance(comm, &f, |index| Complex::from(exact.helmholtz(index)))?;
    let row = Row {
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

fn text(report: &Report) -> String {
    let Report { n, ranks, nodes, .. } = report;
    let mut out = format!(
        "-laplace(u) + u = f on {n}x{n}x{n} points, {ranks} rank{}{}\n\n",
        if *ranks == 1 { "" } else { "s" },
        if *nodes > 1 { format!(" on {nodes} nodes") } else { String::new() },
    );
    out += &report::pairs(&[
        ("discretisation error", format!("{:.2e}", report.discretisation_error)),
        (
            "as estimated",
            format!(
                "{:.2e}, from a second grid of {} points",
                report.discretisation_estimate, report.finer_n
            ),
        ),
    ]);
    let row = |row: &Row| {
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
    let heads =
        ["tolerance", "codec", "solution error", "off the first", "at most", "ms", "between ranks", ""];
    out += &report::columns(&heads, &report.rows.iter().map(row).collect::<Vec<_>>());
    if report.suggested.is_some() {
        out += "\n<- the largest tolerance that does not double the error of the grid\n";
    }
    out
}
