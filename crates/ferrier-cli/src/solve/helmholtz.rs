//! `ferrier solve helmholtz`: -laplace(u) + u = f, with a solution that is known.

use std::f64::consts::TAU;
use std::path::PathBuf;

use clap::Args;
use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Choice, Comm, LayoutSpec, Planner, Problem};
use serde::Serialize;

use crate::args::WayArgs;
use crate::failure::{Outcome, fail};
use crate::pulse::Pulse;
use crate::report::{self, bytes, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::shape::Frame;
use crate::timing::{median, timed};

/// Timed solutions of each row, unless the user says how many.
const REPEAT: usize = 5;

/// `ferrier solve helmholtz`.
#[derive(Args, Debug)]
pub struct HelmholtzArgs {
    /// Points of the cube along each side
    #[arg(long, value_name = "N")]
    pub n: usize,
    /// Number of ranks, threads of this process; under mpiexec its processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    /// Timed repetitions
    #[arg(long, value_name = "N", default_value_t = REPEAT)]
    pub repeat: usize,
    /// Write the result as JSON; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub way: WayArgs,
}

/// What one way of solving costs and gives; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// Distance from the true solution over its norm.
    solution_error: f64,
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
    rows: Vec<Row>,
}

/// What is to be solved.
struct Work {
    n: usize,
    repeat: usize,
    choice: Choice,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &HelmholtzArgs, session: &Session) -> Outcome {
    let common = args.way.common(args.ranks);
    let prepare = || {
        session.size(&common)?;
        let frame = Frame::new(&[args.n; 3])?;
        if args.repeat == 0 {
            return fail("--repeat 0: at least 1 repetition is needed");
        }
        Ok(Work { n: args.n, repeat: args.repeat, choice: setup::choice(&common, &frame)? })
    };
    let work = session.agree(prepare())?;
    session.first(|| report::check_json(args.json.as_deref()))?;
    let reports = session.run(&common, |comm| sweep(comm, &work))?;
    session.first(|| {
        let Some(report) = reports.first() else { return fail("no rank came back") };
        match args.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, report),
            path => {
                path.map_or(Ok(()), |path| report::json(path, report))?;
                report::say(&text(report))
            }
        }
    })
}

/// A solver, the right-hand side and the solution.
struct Solved {
    row: Row,
    solution: Array<f64>,
}

/// What every rank does. Collective.
fn sweep(comm: &Comm, work: &Work) -> Outcome<Report> {
    let exact = Pulse::new([work.n; 3]);
    let Solved { row, solution } = solve(comm, work, &exact, work.repeat)?;
    let second = solve(comm, work, &Pulse::new([finer(work.n); 3]), 0)?.solution;
    let estimate = estimate_discretisation(comm, &solution, &second)?.coarse();
    Ok(Report {
        n: work.n,
        ranks: comm.size(),
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        discretisation_error: row.solution_error,
        discretisation_estimate: estimate,
        finer_n: finer(work.n),
        rows: vec![row],
    })
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
fn solve(comm: &Comm, work: &Work, exact: &Pulse, repeat: usize) -> Outcome<Solved> {
    let shape = exact.shape();
    let problem = Problem::r2c(shape).output(LayoutSpec::best());
    let draft = Planner::new(&problem).choice(work.choice.clone()).draft::<f64>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let volume = shape.iter().product::<usize>() / comm.size() + 1;
    setup::check_room(comm, draft.memory().total() + 4 * 8 * volume)?;
    let plan = draft.build()?;
    let wire_bytes = 2 * plan.recipe().wire_bytes();
    let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
    f.fill_real(|_, index| exact.helmholtz(index));
    let mut solver = Helmholtz::new(plan, [TAU; 3], 1.0)?;
    solver.solve(&f, &mut u)?;
    let mut seconds = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        seconds.push(timed(comm, || solver.solve(&f, &mut u))?);
    }
    let solution_error = distance(comm, &u, |index| exact.value(index))?;
    Ok(Solved { row: Row { solution_error, median_ms: median(&seconds) * 1e3, wire_bytes }, solution: u })
}

/// Of a field from what it should be, over the norm of that. Collective.
fn distance(comm: &Comm, field: &Array<f64>, wanted: impl Fn([usize; 3]) -> f64) -> ferrier::Result<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    let own = field.real_box();
    for i in own.lo[0]..own.hi[0] {
        for j in own.lo[1]..own.hi[1] {
            for k in own.lo[2]..own.hi[2] {
                let want = wanted([i, j, k]);
                let got = field.real_index(0, [i, j, k]).map_or(f64::NAN, |at| field.real()[at]);
                distance += (got - want) * (got - want);
                norm += want * want;
            }
        }
    }
    let sums = comm.sum(&[distance, norm])?;
    Ok((sums[0] / sums[1]).sqrt())
}

fn text(report: &Report) -> String {
    let Report { n, ranks, .. } = report;
    let mut out = format!(
        "-laplace(u) + u = f on {n}x{n}x{n} points, {ranks} rank{}\n\n",
        if *ranks == 1 { "" } else { "s" }
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
    let row =
        |row: &Row| vec![format!("{:.2e}", row.solution_error), digits(row.median_ms), bytes(row.wire_bytes)];
    out.push('\n');
    out + &report::columns(
        &["solution error", "ms", "between ranks"],
        &report.rows.iter().map(row).collect::<Vec<_>>(),
    )
}
