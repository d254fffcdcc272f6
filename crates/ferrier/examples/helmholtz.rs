//! Solve -laplace(u) + u = f on a periodic cube, find out how exact the grid
//! is, and send no more bytes than that is worth.
//!
//!     cargo run --release -p ferrier --example helmholtz

use std::f64::consts::TAU;

use ferrier::solve::{Helmholtz, estimate_discretisation};
use ferrier::{Array, Comm, Plan, Problem, Result};

/// The solution is the product of exp(2 cos x) along the three axes; this is
/// one factor, and its second derivative.
fn factor(i: usize, n: usize) -> (f64, f64) {
    let (sin, cos) = (TAU * i as f64 / n as f64).sin_cos();
    let value = (2.0 * cos).exp();
    (value, value * (4.0 * sin * sin - 2.0 * cos))
}

/// The solution and the right-hand side at a point.
fn exact([i, j, k]: [usize; 3], n: usize) -> (f64, f64) {
    let [(a, bent_a), (b, bent_b), (c, bent_c)] = [i, j, k].map(|i| factor(i, n));
    let u = a * b * c;
    (u, u - (bent_a * b * c + a * bent_b * c + a * b * bent_c))
}

/// Solves on n points along each side; the solution, and the bytes that this rank sent.
fn solve(comm: &Comm, n: usize, tolerance: Option<f64>) -> Result<(Array<f64>, u64)> {
    let problem = Problem::r2c([n; 3]);
    let problem = match tolerance {
        Some(tolerance) => problem.tolerance(tolerance),
        None => problem,
    };
    let plan = Plan::new(comm, &problem)?;
    let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
    f.fill_real(|_, index| exact(index, n).1);
    let mut solver = Helmholtz::new(plan, [TAU; 3], 1.0)?;
    let cost = solver.solve(&f, &mut u)?;
    Ok((u, cost.wire_bytes))
}

/// Distance from the true solution over its norm.
fn error(comm: &Comm, u: &Array<f64>, n: usize) -> Result<f64> {
    let (mut sums, own) = ([0.0; 2], u.real_box());
    for i in own.lo[0]..own.hi[0] {
        for j in own.lo[1]..own.hi[1] {
            for k in own.lo[2]..own.hi[2] {
                let want = exact([i, j, k], n).0;
                let got = u.real_index(0, [i, j, k]).map_or(f64::NAN, |at| u.real()[at]);
                sums[0] += (got - want).powi(2);
                sums[1] += want.powi(2);
            }
        }
    }
    let sums = comm.sum(&sums)?;
    Ok((sums[0] / sums[1]).sqrt())
}

fn main() -> Result<()> {
    ferrier::ranks(4).run(|comm| {
        let n = 24;
        let (u, raw_bytes) = solve(&comm, n, None)?;
        let (finer, _) = solve(&comm, 2 * n, None)?;
        let estimate = estimate_discretisation(&comm, &u, &finer)?.coarse();
        let truth = error(&comm, &u, n)?;

        // Half of what the grid loses anyway may be lost on the way, too.
        let (lean, bytes) = solve(&comm, n, Some(estimate / 2.0))?;
        let both = error(&comm, &lean, n)?;
        let bytes = comm.sum(&[bytes as f64, raw_bytes as f64])?;
        if comm.rank() == 0 {
            println!("error of the grid {truth:.1e}, as estimated {estimate:.1e}");
            println!(
                "with a tolerance of {:.1e}: {both:.1e}, {:.2} of the bytes",
                estimate / 2.0,
                bytes[0] / bytes[1]
            );
        }
        assert!((0.5..2.0).contains(&(estimate / truth)), "estimated {estimate:e}, is {truth:e}");
        assert!(both < 2.0 * truth, "{both:e} after {truth:e}");
        assert!(bytes[0] < 0.7 * bytes[1], "{bytes:?}");
        Ok(())
    })?;
    Ok(())
}
