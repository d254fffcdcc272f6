//! `ferrier solve poisson`: laplace(u) = f with boundary conditions, and a known solution.

use std::f64::consts::{PI, TAU};

use clap::{Args, ValueEnum};
use ferrier::spectral::{self, WaveNumbers, inverse_laplacian, kinds_for};
use ferrier::{Choice, Comm, Data, Kind, LayoutSpec, Problem};
use ferrier_bench::agree::{RankGroup, agree_result};
use ferrier_bench::hosted_plan::HostedPlan;
use ferrier_bench::table::{bytes, columns, digits, plural};
use ferrier_bench::timing::median;
use serde::Serialize;

use super::run_args::RunArgs;
use crate::arguments::{UserShape, setup};
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// The boundary condition at both ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BoundaryName {
    /// Periodic: Fourier series.
    Periodic,
    /// The slope is zero: cosines.
    Neumann,
    /// The value is zero: sines.
    Dirichlet,
}

/// `ferrier solve poisson`.
#[derive(Args, Debug)]
pub struct PoissonArgs {
    /// Boundary conditions: one for all axes, or one for each
    #[arg(long, value_name = "BC,..", value_enum, value_delimiter = ',', default_value = "periodic")]
    pub bc: Vec<BoundaryName>,
    /// Points of the cube along each side; a list, such as 16,32,64, gives a table
    #[arg(long, value_name = "N,..", value_delimiter = ',', required = true)]
    pub n: Vec<usize>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// One grid; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct PoissonRow {
    n: usize,
    /// The largest distance from the exact solution over its largest value.
    error: f64,
    /// Median time of a solution, in milliseconds.
    median_ms: f64,
    /// Bytes between ranks.
    wire_bytes: u64,
}

/// The report of the command; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct PoissonReport {
    walls: [BoundaryName; 3],
    kinds: [&'static str; 3],
    #[serde(flatten)]
    group: RankGroup,
    rows: Vec<PoissonRow>,
}

/// The boundary conditions, and the choice for the last grid.
type Prepared = ([BoundaryName; 3], Choice);

impl BoundaryName {
    /// The library's type.
    fn library(self) -> spectral::Boundary {
        match self {
            BoundaryName::Periodic => spectral::Boundary::Periodic,
            BoundaryName::Neumann => spectral::Boundary::Neumann,
            BoundaryName::Dirichlet => spectral::Boundary::Dirichlet,
        }
    }

    /// A function that satisfies the condition, at point i of n, and its second derivative.
    fn profile(self, i: usize, n: usize) -> [f64; 2] {
        let turn = if self == BoundaryName::Periodic { TAU } else { PI };
        let (sin, cos) = (turn * self.library().place(i, n)).sin_cos();
        let bump = cos.exp();
        match self {
            BoundaryName::Dirichlet => [sin * bump, turn * turn * sin * (sin * sin - 3.0 * cos - 1.0) * bump],
            _ => [bump, turn * turn * (sin * sin - cos) * bump],
        }
    }
}

/// The transform of each axis.
fn kinds(walls: [BoundaryName; 3]) -> [Kind; 3] {
    kinds_for(walls.map(BoundaryName::library))
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PoissonArgs, session: &Session) -> Outcome {
    let common = args.run.common();
    let prepared = session.agree(prepare(args, session))?;
    session.first(|| print::check([&args.run.json]))?;
    let report = session.run(&common, |comm| table(comm, args, &prepared))?;
    session.first(|| print::report(args.run.json.as_deref(), &report, &text(&report)))
}

fn prepare(args: &PoissonArgs, session: &Session) -> Outcome<Prepared> {
    let common = args.run.common();
    session.size(&common)?;
    let walls = match args.bc[..] {
        [all] => [all; 3],
        [x, y, z] => [x, y, z],
        _ => return fail(format!("--bc has {} boundary conditions; 1 or 3 are needed", args.bc.len())),
    };
    args.run.check()?;
    let mut frames = args.n.iter().map(|&n| UserShape::new(&[n; 3])).collect::<Outcome<Vec<_>>>()?;
    let Some(frame) = frames.pop() else { return fail("--n: at least one grid is needed") };
    Ok((walls, setup::choice(&common, &frame)?))
}

/// Solves all of them. Collective.
fn table(comm: &Comm, args: &PoissonArgs, prepared: &Prepared) -> Outcome<PoissonReport> {
    let walls = prepared.0;
    let rows = args.n.iter().map(|&n| solve(comm, prepared, n, &args.run)).collect::<Outcome<_>>()?;
    Ok(PoissonReport { walls, kinds: kinds(walls).map(Kind::name), group: RankGroup::new(comm), rows })
}

/// Solves on a grid, first untimed. Collective.
fn solve(comm: &Comm, (walls, choice): &Prepared, n: usize, run: &RunArgs) -> Outcome<PoissonRow> {
    let problem = Problem::mixed([n; 3], kinds(*walls)).output(LayoutSpec::unconstrained()).operators(true);
    let choice = run.tuned(comm, &problem, choice)?;
    let mut plan = HostedPlan::<f64>::new(comm, &problem, choice, run.device, 3)?;
    let arrays = plan.make_input().and_then(|f| Ok((f, plan.make_input()?, plan.make_input()?)));
    let (mut f, mut u, mut exact) = agree_result(comm, arrays)?;
    let profiles: [Vec<[f64; 2]>; 3] = walls.map(|walls| (0..n).map(|i| walls.profile(i, n)).collect());
    let at = |[i, j, k]: [usize; 3]| [profiles[0][i], profiles[1][j], profiles[2][k]];
    exact.fill_real(|_, index| at(index).iter().map(|[value, _]| value).product());
    f.fill_real(|_, index| {
        let [x, y, z] = at(index);
        x[1] * y[0] * z[0] + x[0] * y[1] * z[0] + x[0] * y[0] * z[1]
    });
    let waves = WaveNumbers::new(plan.recipe(), [1.0; 3])?;
    let inverse = inverse_laplacian(&waves);
    plan.apply(&inverse, &f, &mut u)?;
    let wire_bytes = comm.sum(&[plan.wire_bytes() as f64])?[0] as u64;
    let mut seconds = Vec::with_capacity(run.repeat);
    for _ in 0..run.repeat {
        seconds.push(plan.timed_apply(comm, &inverse, &f, &mut u)?);
    }
    // Without a Dirichlet condition, the solution is the one with mean zero.
    let points = (n * n * n) as f64;
    let free = if walls.contains(&BoundaryName::Dirichlet) { 0.0 } else { 1.0 / points };
    let sums = [u.scalars().iter().sum::<f64>() * free, exact.scalars().iter().sum::<f64>() * free];
    let means = comm.sum(&sums)?;
    let pairs = u.scalars().iter().zip(exact.scalars()).map(|(u, e)| (u - means[0], e - means[1]));
    let worst = pairs.fold([0.0_f64; 2], |[far, large], (u, e)| [far.max((u - e).abs()), large.max(e.abs())]);
    let worst = comm.max(&worst)?;
    Ok(PoissonRow { n, error: worst[0] / worst[1], median_ms: median(&seconds) * 1e3, wire_bytes })
}

fn text(report: &PoissonReport) -> String {
    let walls = report.walls.map(|walls| format!("{walls:?}").to_lowercase());
    let row = |row: &PoissonRow| {
        vec![row.n.to_string(), format!("{:.2e}", row.error), digits(row.median_ms), bytes(row.wire_bytes)]
    };
    format!(
        "laplace(u) = f, {} boundaries ({}), {}\n\n{}",
        walls.join(", "),
        report.kinds.join(","),
        plural(report.group.ranks, "rank"),
        columns(&["points", "error", "ms", "between ranks"], report.rows.iter().map(row))
    )
}
