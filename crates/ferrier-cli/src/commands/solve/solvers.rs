//! The solvers of `ferrier solve helmholtz`: on the cores, and on other devices.

use std::f64::consts::TAU;
use std::path::Path;

use ferrier::solve::Helmholtz;
use ferrier::spectral::{WaveNumbers, helmholtz};
use ferrier::{Array, Box3, Choice, Comm, DeviceSpec, Layout, LayoutSpec, Order, Problem, io};
use ferrier_bench::agree::{agree_result, check_memory, draft};
use ferrier_bench::hosted_plan::HostedPlan;
use ferrier_bench::test_function::TestFunction;
use ferrier_bench::timing::timed;

use crate::failure::Outcome;

/// Where right-hand sides come from.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A function whose solution is known.
    Known,
    /// A file with so many points along each side; coarser grids take some of them.
    File(&'a Path, usize),
}

impl Source<'_> {
    /// The right-hand side and an array for the solution. Collective.
    fn arrays(
        self,
        comm: &Comm,
        layout: &Layout,
        make: impl Fn() -> ferrier::Result<Array<f64>>,
    ) -> Outcome<[Array<f64>; 2]> {
        let [mut f, u] = agree_result(comm, make().and_then(|f| Ok([f, make()?])))?;
        self.fill(comm, layout, &mut f)?;
        Ok([f, u])
    }

    /// Sets the right-hand side on the points of a layout.
    pub fn fill(self, comm: &Comm, layout: &Layout, f: &mut Array<f64>) -> Outcome {
        let n = layout.shape()[0];
        let Source::File(path, points) = self else {
            let exact = TestFunction::new([n; 3]);
            f.fill_real(|_, index| exact.helmholtz(index));
            return Ok(());
        };
        if points == n {
            return Ok(io::read(comm, path, layout, f)?);
        }
        let (own, step) = (layout.boxes()[comm.rank()], points / n);
        let part = Box3::new(own.lo.map(|at| at * step), own.hi.map(|at| at * step));
        let mut values = vec![0.0; part.volume()];
        let read = io::Reader::open(path)
            .and_then(|file| file.read_box(part, Order::C, &mut values[..], comm.threads(), &|_| ()));
        agree_result(comm, read)?;
        let [_, rows, lines] = part.shape();
        f.fill_real(|_, index| {
            let [i, j, k] = [0, 1, 2].map(|axis| (index[axis] - own.lo[axis]) * step);
            values[(i * rows + j) * lines + k]
        });
        Ok(())
    }
}

/// The transform of the equation.
pub fn problem(n: usize, tolerance: Option<f64>) -> Problem {
    let problem = Problem::r2c([n; 3]).output(LayoutSpec::unconstrained());
    match tolerance {
        Some(tolerance) => problem.tolerance(tolerance),
        None => problem,
    }
}

/// How plans are made, and where.
pub struct Place {
    /// The choice.
    pub choice: Choice,
    /// The device.
    pub device: DeviceSpec,
}

impl Place {
    /// Whether a tolerance can be kept. Collective.
    pub fn check(&self, comm: &Comm, n: usize, tolerance: f64) -> Outcome {
        let problem = problem(n, Some(tolerance));
        match self.device {
            DeviceSpec::Cpu => draft::<f64>(comm, &problem, self.choice.clone()).map(drop),
            _ => self.plan(comm, problem).map(drop),
        }
    }

    /// A plan on a device, which applies the operator itself. Collective.
    fn plan(&self, comm: &Comm, problem: Problem) -> Outcome<HostedPlan<f64>> {
        // Right-hand side, solution, the solution to compare with.
        HostedPlan::new(comm, &problem.operators(true), self.choice.clone(), self.device, 3)
    }
}

/// What a solution cost.
pub struct Cost {
    pub codec: String,
    pub exchange: String,
    pub layout: Layout,
    pub seconds: Vec<f64>,
    pub wire_bytes: u64,
    /// The bound of the error, given the norms of right-hand side and solution.
    pub bound: Box<dyn FnOnce([f64; 2]) -> f64>,
}

const SHIFT: f64 = 1.0;

/// Solves on the cores: two transforms, of which each keeps the tolerance. Collective.
pub fn solve_on_cores(
    comm: &Comm,
    place: &Place,
    source: Source<'_>,
    problem: &Problem,
    repeat: usize,
) -> Outcome<(Cost, [Array<f64>; 2])> {
    let draft = draft::<f64>(comm, problem, place.choice.clone())?;
    // Right-hand side, solution, the solution to compare with, spectrum.
    let volume = draft.recipe().input.boxes()[comm.rank()].volume();
    check_memory(comm, draft.memory().total() + 4 * size_of::<f64>() * volume)?;
    let plan = draft.build()?;
    let (codec, exchange) = (plan.recipe().codec.clone(), plan.recipe().exchange.clone());
    let layout = plan.input_layout().clone();
    let [f, mut u] = source.arrays(comm, &layout, || plan.make_input())?;
    let mut solver = Helmholtz::new(plan, [TAU; 3], SHIFT)?;
    let cost = solver.solve(&f, &mut u)?;
    let once = |_| timed(comm, || solver.solve(&f, &mut u).map(drop));
    let seconds = (0..repeat).map(once).collect::<ferrier::Result<_>>()?;
    let wire_bytes = cost.wire_bytes;
    let bound = Box::new(move |[f, u]: [f64; 2]| solver.error_bound(&cost, f, u));
    Ok((Cost { codec, exchange, layout, seconds, wire_bytes, bound }, [f, u]))
}

/// Solves on a device: one call, whose result keeps the tolerance; the norm of the operator is in its certificate.
/// Collective.
pub fn solve_on_device(
    comm: &Comm,
    place: &Place,
    source: Source<'_>,
    problem: &Problem,
    repeat: usize,
) -> Outcome<(Cost, [Array<f64>; 2])> {
    let mut plan = place.plan(comm, problem.clone())?;
    let (codec, exchange) = (plan.recipe().codec.clone(), plan.recipe().exchange.clone());
    let layout = plan.input_layout().clone();
    let [f, mut u] = source.arrays(comm, &layout, || plan.make_input())?;
    let operator = helmholtz(&WaveNumbers::new(plan.recipe(), [TAU; 3])?, SHIFT);
    plan.apply(&operator, &f, &mut u)?;
    // Calls that encode nothing have none.
    let bound = plan.certificate().map_or(f64::NAN, |certificate| certificate.bound());
    let wire_bytes = plan.wire_bytes();
    let once = |_| plan.timed_apply(comm, &operator, &f, &mut u);
    let seconds = (0..repeat).map(once).collect::<ferrier::Result<_>>()?;
    let bound = Box::new(move |_| bound);
    Ok((Cost { codec, exchange, layout, seconds, wire_bytes, bound }, [f, u]))
}
