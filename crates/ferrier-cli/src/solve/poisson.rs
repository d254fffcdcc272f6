//! `ferrier solve poisson`: laplace(u) = f between walls of every kind, with a solution that is known.

use std::f64::consts::{PI, TAU};

use clap::{Args, ValueEnum};
use ferrier::spectral::{self, WaveNumbers, inverse_laplacian, kinds_for};
use ferrier::{Choice, Comm, Data, Kind, LayoutSpec, Planner, Problem};
use serde::Serialize;

use super::RunArgs;
use crate::failure::{Outcome, fail};
use crate::report::{self, bytes, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::shape::Frame;
use crate::timing::{median, timed};

/// What holds at both ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The ends are the same place: Fourier series.
    Periodic,
    /// The slope is zero: cosines.
    Neumann,
    /// The value is zero: sines.
    Dirichlet,
}

/// `ferrier solve poisson`.
#[derive(Args, Debug)]
pub struct PoissonArgs {
    /// What holds at the walls: one for all axes, or one for each
    #[arg(long, value_name = "WALLS,..", value_enum, value_delimiter = ',', default_value = "periodic")]
    pub bc: Vec<Boundary>,
    /// Points of the cube along each side; a list, such as 16,32,64, is a table
    #[arg(long, value_name = "N,..", value_delimiter = ',', required = true)]
    pub n: Vec<usize>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// One grid; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct Row {
    n: usize,
    /// The largest distance from the true solution, over its largest value.
    error: f64,
    /// Of a solution, in milliseconds.
    median_ms: f64,
    /// Between ranks.
    wire_bytes: u64,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct Report {
    walls: [Boundary; 3],
    kinds: [&'static str; 3],
    ranks: usize,
    nodes: usize,
    threads: usize,
    transport: String,
    rows: Vec<Row>,
}

/// What is to be solved.
struct Work {
    grids: Vec<usize>,
    walls: [Boundary; 3],
    repeat: usize,
    choice: Choice,
}

impl Boundary {
    /// As the library has them.
    fn library(self) -> spectral::Boundary {
        match self {
            Boundary::Periodic => spectral::Boundary::Periodic,
            Boundary::Neumann => spectral::Boundary::Neumann,
            Boundary::Dirichlet => spectral::Boundary::Dirichlet,
        }
    }

    /// A function that fits the walls, at point i of n, and its second derivative.
    fn profile(self, i: usize, n: usize) -> [f64; 2] {
        let turn = if self == Boundary::Periodic { TAU } else { PI };
        let (sin, cos) = (turn * self.library().place(i, n)).sin_cos();
        let bump = cos.exp();
        match self {
            Boundary::Dirichlet => [sin * bump, turn * turn * sin * (sin * sin - 3.0 * cos - 1.0) * bump],
            _ => [bump, turn * turn * (sin * sin - cos) * bump],
        }
    }
}

/// The transform of each axis.
fn kinds(walls: [Boundary; 3]) -> [Kind; 3] {
    kinds_for(walls.map(Boundary::library))
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PoissonArgs, session: &Session) -> Outcome {
    let common = args.run.way.common(args.run.ranks);
    let work = session.agree(prepare(args, session))?;
    session.first(|| report::check_json(args.run.json.as_deref()))?;
    let reports = session.run(&common, |comm| table(comm, &work))?;
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

fn prepare(args: &PoissonArgs, session: &Session) -> Outcome<Work> {
    let common = args.run.way.common(args.run.ranks);
    session.size(&common)?;
    let walls = match args.bc[..] {
        [all] => [all; 3],
        [x, y, z] => [x, y, z],
        _ => return fail(format!("--bc has {} kinds of walls; 1 or 3 are needed", args.bc.len())),
    };
    if args.run.repeat == 0 {
        return fail("--repeat 0: at least 1 repetition is needed");
    }
    let mut frames = args.n.iter().map(|&n| Frame::new(&[n; 3])).collect::<Outcome<Vec<_>>>()?;
    let Some(frame) = frames.pop() else { return fail("--n: at least one grid is needed") };
    Ok(Work {
        grids: args.n.clone(),
        walls,
        repeat: args.run.repeat,
        choice: setup::choice(&common, &frame)?,
    })
}

/// What every rank does. Collective.
fn table(comm: &Comm, work: &Work) -> Outcome<Report> {
    let rows = work.grids.iter().map(|&n| solve(comm, work, n)).collect::<Outcome<Vec<_>>>()?;
    Ok(Report {
        walls: work.walls,
        kinds: kinds(work.walls).map(Kind::name),
        ranks: comm.size(),
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        rows,
    })
}

/// Solves on a grid, once untimed. Collective.
fn solve(comm: &Comm, work: &Work, n: usize) -> Outcome<Row> {
    let problem =
        Problem::mixed([n; 3], kinds(work.walls)).output(LayoutSpec::unconstrained()).operators(true);
    let draft = Planner::new(&problem).choice(work.choice.clone()).draft::<f64>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    setup::check_room(comm, draft.memory().total() + 3 * 8 * (n * n * n / comm.size() + 1))?;
    let mut plan = draft.build()?;
    let arrays = plan.make_input().and_then(|f| Ok((f, plan.make_input()?, plan.make_input()?)));
    let (mut f, mut u, mut exact) = session::agree(comm, arrays.map_err(Into::into))?;
    let profiles: [Vec<[f64; 2]>; 3] = work.walls.map(|walls| (0..n).map(|i| walls.profile(i, n)).collect());
    let at = |[i, j, k]: [usize; 3]| [profiles[0][i], profiles[1][j], profiles[2][k]];
    exact.fill_real(|_, index| at(index).iter().map(|[value, _]| value).product());
    f.fill_real(|_, index| {
        let [x, y, z] = at(index);
        x[1] * y[0] * z[0] + x[0] * y[1] * z[0] + x[0] * y[0] * z[1]
    });
    let waves = WaveNumbers::new(plan.recipe(), [1.0; 3])?;
    let inverse = inverse_laplacian(&waves);
    plan.apply(&f, &mut u, &inverse)?;
    let wire_bytes = comm.sum(&[plan.wire_bytes() as f64])?[0] as u64;
    let mut seconds = Vec::with_capacity(work.repeat);
    for _ in 0..work.repeat {
        seconds.push(timed(comm, || plan.apply(&f, &mut u, &inverse))?);
    }
    // Without a wall that holds it, the solution is the one with mean zero.
    let points = (n * n * n) as f64;
    let free = if work.walls.contains(&Boundary::Dirichlet) { 0.0 } else { 1.0 / points };
    let sums = [u.numbers().iter().sum::<f64>() * free, exact.numbers().iter().sum::<f64>() * free];
    let means = comm.sum(&sums)?;
    let pairs = u.numbers().iter().zip(exact.numbers()).map(|(u, e)| (u - means[0], e - means[1]));
    let worst = pairs.fold([0.0_f64; 2], |[far, large], (u, e)| [far.max((u - e).abs()), large.max(e.abs())]);
    let worst = comm.max(&worst)?;
    Ok(Row { n, error: worst[0] / worst[1], median_ms: median(&seconds) * 1e3, wire_bytes })
}

fn text(report: &Report) -> String {
    let walls = report.walls.map(|walls| format!("{walls:?}").to_lowercase());
    let row = |row: &Row| {
        vec![row.n.to_string(), format!("{:.2e}", row.error), digits(row.median_ms), bytes(row.wire_bytes)]
    };
    format!(
        "laplace(u) = f between {} walls ({}), {} rank{}\n\n{}",
        walls.join(", "),
        report.kinds.join(","),
        report.ranks,
        if report.ranks == 1 { "" } else { "s" },
        report::columns(
            &["points", "error", "ms", "between ranks"],
            &report.rows.iter().map(row).collect::<Vec<_>>()
        )
    )
}
