//! `ferrier solve helmholtz`: -laplace(u) + u = f, with a known solution or a right-hand side from a file.

use std::f64::consts::SQRT_2;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use ferrier::solve::{Discretisation, estimate_discretisation};
use ferrier::{Array, Choice, Comm, DeviceSpec, Layout, io};
use ferrier_bench::agree::RankGroup;
use ferrier_bench::table::{bytes, columns, digits, pairs, plural};
use ferrier_bench::test_function::TestFunction;
use ferrier_bench::timing::median;
use ferrier_bench::view::{distance, value};
use num_complex::Complex;
use serde::Serialize;

use super::run_args::RunArgs;
use super::solvers::{Cost, Place, Source, problem, solve_on_cores, solve_on_device};
use crate::arguments::{UserShape, setup};
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// `ferrier solve helmholtz`.
#[derive(Args, Debug)]
pub struct HelmholtzArgs {
    /// Points of the cube along each side
    #[arg(long, value_name = "N", required_unless_present = "rhs")]
    pub n: Option<usize>,
    /// The right-hand side: an array of real numbers on the points of a cube, which give N [default: one whose solution
    /// is known]
    #[arg(long, value_name = "FILE", conflicts_with = "n")]
    pub rhs: Option<PathBuf>,
    /// Write the solution of the last tolerance
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Allowed relative L2 errors of each of the two transforms; auto: as large as keeps the error of the solution within
    /// that of the discretisation, which is estimated from solutions on three grids [default: six from 1e-2 to 1e-12; auto
    /// with --rhs]
    #[arg(long, value_name = "E|auto,..", value_delimiter = ',')]
    pub tolerance: Vec<ToleranceArg>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToleranceArg {
    /// Estimated.
    Auto,
    /// Given.
    Error(f64),
}

impl FromStr for ToleranceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ToleranceArg, String> {
        match text {
            "auto" => Ok(ToleranceArg::Auto),
            _ => text
                .parse()
                .map(ToleranceArg::Error)
                .map_err(|_| format!("expected a number, such as 1e-6, or auto; got `{text}`")),
        }
    }
}

impl HelmholtzArgs {
    fn tolerances(&self) -> Vec<ToleranceArg> {
        match (&self.tolerance[..], &self.rhs) {
            ([], None) => [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12].map(ToleranceArg::Error).to_vec(),
            ([], Some(_)) => vec![ToleranceArg::Auto],
            (given, _) => given.to_vec(),
        }
    }

    /// Points of the cube along each side.
    fn points(&self) -> Outcome<usize> {
        let Some(path) = &self.rhs else { return Ok(self.n.unwrap_or_default()) };
        let reader = io::Reader::open(path)?;
        match *reader.shape() {
            [n, m, l] if n == m && m == l && !reader.dtype().is_complex() => Ok(n),
            ref shape => fail(format!(
                "--rhs {}: a right-hand side is a cube of real numbers, this one has shape {shape:?}{}",
                path.display(),
                if reader.dtype().is_complex() { " and is complex" } else { "" }
            )),
        }
    }
}

/// Cost and error of a tolerance; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct HelmholtzRow {
    /// Null: no tolerance, nothing is lost.
    tolerance: Option<f64>,
    codec: String,
    exchange: String,
    /// Distance from the exact solution over its norm; null where that is unknown.
    solution_error: f64,
    /// Distance from the solution of the first row over its norm: the effect of the tolerance.
    deviation: f64,
    /// Bound of the distance from the exact solution on this grid: loss of the codec and the worst
    /// case of rounding; null on a GPU where nothing is encoded.
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
    /// How the tolerance was chosen, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto: Option<AutoTolerance>,
}

/// A tolerance from solutions on three grids; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct AutoTolerance {
    /// Points of the grids along each side.
    grids: Vec<usize>,
    /// The order at which the solutions converge; null where they do not show one.
    order: Option<f64>,
    /// The estimated error of the solution on the grid.
    estimate: f64,
    /// Null: what is left to lose is less than rounding, so that nothing may be lost.
    tolerance: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &HelmholtzArgs, session: &Session) -> Outcome {
    let common = args.run.common();
    let prepare = || {
        session.size(&common)?;
        let n = args.points()?;
        let frame = UserShape::new(&[n; 3])?;
        args.run.check()?;
        if args.rhs.is_some() && args.tolerances().contains(&ToleranceArg::Auto) && n % 4 != 0 {
            return fail(format!(
                "--tolerance auto solves on every second and every fourth point of --rhs: {n} points along a side are \
                 not a multiple of 4"
            ));
        }
        Ok((n, setup::choice(&common, &frame)?))
    };
    let (n, choice) = session.agree(prepare())?;
    session.first(|| print::check([&args.run.json]))?;
    let report = session.run(&common, |comm| sweep(comm, args, n, &choice))?;
    session.first(|| print::report(args.run.json.as_deref(), &report, &text(&report)))
}

/// Solves all of them. Collective.
fn sweep(comm: &Comm, args: &HelmholtzArgs, n: usize, choice: &Choice) -> Outcome<HelmholtzReport> {
    let choice = args.run.tuned(comm, &problem(n, None), choice)?;
    let place = &Place { choice, device: args.run.device };
    // Unattainable tolerances fail before long work.
    for tolerance in args.tolerances() {
        if let ToleranceArg::Error(tolerance) = tolerance {
            place.check(comm, n, tolerance)?;
        }
    }
    let source = args.rhs.as_deref().map_or(Source::Known, |path| Source::File(path, n));
    let on = |n: usize, tolerance, repeat| solve(comm, place, source, n, tolerance, repeat);
    let (raw, solution) = on(n, None, args.run.repeat)?;
    let wants_auto = args.tolerances().contains(&ToleranceArg::Auto);
    let grids = three_grids(n, source);
    let (mut estimate, mut auto) = (f64::NAN, None);
    if matches!(source, Source::Known) || wants_auto {
        let (_, second) = on(grids[1], None, 0)?;
        let near = match source {
            Source::Known => estimate_discretisation(comm, &solution, &second)?,
            Source::File(..) => estimate_discretisation(comm, &second, &solution)?,
        };
        estimate = near.coarse();
        if wants_auto {
            let (_, third) = on(grids[2], None, 0)?;
            let far = match source {
                Source::Known => estimate_discretisation(comm, &second, &third)?,
                Source::File(..) => estimate_discretisation(comm, &third, &second)?,
            };
            let chosen = choose(comm, place, &raw, source, [near, far], &grids)?;
            estimate = chosen.estimate;
            auto = Some(chosen);
        }
    }
    let error = raw.row.solution_error;
    let (mut rows, mut last) = (vec![raw.row], None);
    for tolerance in args.tolerances() {
        let tolerance = match tolerance {
            ToleranceArg::Error(tolerance) => Some(tolerance),
            ToleranceArg::Auto => auto.as_ref().and_then(|auto| auto.tolerance),
        };
        let (mut solved, own) = on(n, tolerance, args.run.repeat)?;
        let (off, norm) = distance(comm, &own, |index| value(&solution, index))?;
        solved.row.deviation = off / norm;
        rows.push(solved.row);
        last = Some((own, solved.layout));
    }
    if let (Some(path), Some((own, layout))) = (&args.out, last) {
        io::write(comm, path, &layout, &own)?;
    }
    let good = rows.iter().filter(|row| row.solution_error <= 2.0 * error).filter_map(|row| row.tolerance);
    Ok(HelmholtzReport {
        n,
        group: RankGroup::new(comm),
        discretisation_error: error,
        discretisation_estimate: estimate,
        finer_n: grids[1],
        suggested: good.reduce(f64::max),
        rows,
        auto,
    })
}

/// The grid, and two that share points with it, in equal ratios if possible: finer ones of a known function, coarser ones
/// of a file.
fn three_grids(n: usize, source: Source<'_>) -> [usize; 3] {
    match source {
        Source::Known => [n, finer(n), finer(finer(n))],
        Source::File(..) => [n, n / 2, n / 4],
    }
}

/// The tolerance with which the error of the solution is at most that of the discretisation. `near`: the difference
/// between the grid and the next, `far`: between that and the third. Collective.
fn choose(
    comm: &Comm,
    place: &Place,
    raw: &Solved,
    source: Source<'_>,
    [near, far]: [Discretisation; 2],
    grids: &[usize; 3],
) -> Outcome<AutoTolerance> {
    let coarser = matches!(source, Source::File(..));
    let [coarse, fine] = if coarser { [far, near] } else { [near, far] };
    // Errors fall as h^p: those of both pairs as the power of their spacings.
    let order = (coarse.difference / fine.difference).ln() / coarse.ratio.ln();
    let even = (coarse.ratio - fine.ratio).abs() < 1e-9;
    let order = Some(order).filter(|order| even && order.is_finite() && *order > 0.0);
    let estimate = match (order, coarser) {
        (Some(order), true) => near.fine_of_order(order),
        (Some(order), false) => near.coarse_of_order(order),
        // No order can be seen where only rounding is left.
        (None, _) => near.difference,
    };
    let converges = fine.difference < coarse.difference || near.difference < 1e-12;
    // As in `Helmholtz::error_bound`: losses of both transforms together.
    let tolerance = (estimate / (SQRT_2 * raw.norms[0] / raw.norms[1] + 1.0)).min(0.1);
    let attainable = converges && tolerance > 0.0 && place.check(comm, grids[0], tolerance).is_ok();
    let tolerance = attainable.then_some(tolerance);
    Ok(AutoTolerance { grids: grids.to_vec(), order, estimate, tolerance })
}

/// Points of a slightly finer grid that shares some points with one of n.
fn finer(n: usize) -> usize {
    match () {
        () if n.is_multiple_of(4) => n / 4 * 5,
        () if n.is_multiple_of(2) => n / 2 * 3,
        () => n * 2,
    }
}

/// A solution: its row, the norms of its right-hand side and of itself, its layout.
struct Solved {
    row: HelmholtzRow,
    norms: [f64; 2],
    layout: Layout,
}

/// Solves on a grid, first untimed. Collective.
fn solve(
    comm: &Comm,
    place: &Place,
    source: Source<'_>,
    n: usize,
    tolerance: Option<f64>,
    repeat: usize,
) -> Outcome<(Solved, Array<f64>)> {
    let problem = problem(n, tolerance);
    let (cost, [f, u]) = match place.device {
        DeviceSpec::Cpu => solve_on_cores(comm, place, source, &problem, repeat)?,
        _ => solve_on_device(comm, place, source, &problem, repeat)?,
    };
    let Cost { codec, exchange, layout, seconds, wire_bytes, bound } = cost;
    let exact = TestFunction::new([n; 3]);
    let [norm_f, norm_u] =
        [&f, &u].map(|array| distance(comm, array, |_| Complex::ZERO).map(|(norm, _)| norm));
    let norms = [norm_f?, norm_u?];
    let solution_error = match source {
        Source::Known => {
            let (off, norm) = distance(comm, &u, |index| Complex::from(exact.value(index)))?;
            off / norm
        }
        Source::File(..) => f64::NAN,
    };
    let row = HelmholtzRow {
        tolerance,
        codec,
        exchange,
        solution_error,
        deviation: 0.0,
        error_bound: bound(norms),
        median_ms: median(&seconds) * 1e3,
        wire_bytes: comm.sum(&[wire_bytes as f64])?[0] as u64,
    };
    Ok((Solved { row, norms, layout }, u))
}

fn text(report: &HelmholtzReport) -> String {
    let HelmholtzReport { n, finer_n, .. } = report;
    let RankGroup { ranks, nodes, .. } = report.group;
    let nodes = if nodes > 1 { format!(" on {nodes} nodes") } else { String::new() };
    let ranks = plural(ranks, "rank");
    let number = |error: f64| if error.is_nan() { "unknown".into() } else { format!("{error:.2e}") };
    let [error, estimate] = [report.discretisation_error, report.discretisation_estimate].map(number);
    let mut out = format!("-laplace(u) + u = f on {n}x{n}x{n} points, {ranks}{nodes}\n\n");
    let mut lines = vec![("discretisation error", error)];
    match &report.auto {
        Some(auto) => {
            let grids = auto.grids[1..].iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
            let order = auto.order.map_or("no order seen".into(), |order| format!("order {order:.1}"));
            lines.push(("as estimated", format!("{estimate}, from grids of {grids} points, {order}")));
            let text = |tolerance: f64| format!("{tolerance:.2e}, as much as the discretisation");
            let none = || "none: what may be lost is less than rounding, or the grids are too coarse".into();
            lines.push(("tolerance", auto.tolerance.map_or_else(none, text)));
        }
        None if report.discretisation_estimate.is_nan() => {}
        None => lines.push(("as estimated", format!("{estimate}, from a second grid of {finer_n} points"))),
    }
    out += &pairs(&lines);
    let row = |row: &HelmholtzRow| {
        let mark = if row.tolerance.is_some() && row.tolerance == report.suggested { "<-" } else { "" };
        vec![
            row.tolerance.map_or("none".into(), |tolerance| {
                let short = format!("{tolerance:.1e}");
                if short.parse() == Ok(tolerance) { format!("{tolerance:e}") } else { short }
            }),
            row.codec.clone(),
            if row.solution_error.is_nan() { "-".into() } else { format!("{:.2e}", row.solution_error) },
            format!("{:.1e}", row.deviation),
            if row.error_bound.is_nan() { "-".into() } else { format!("{:.1e}", row.error_bound) },
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
