//! Lossy transforms inside an iteration that corrects their errors: iterative refinement and preconditioning.
//!
//! -laplace(u) + c(x) u = f on a periodic cube, where c is 1 with ripples. The inner solver takes c as 1: two transforms
//! whose messages between ranks are encoded with a tolerance, in a fraction of the bytes. The outer iteration computes
//! the residual in full precision and adds the correction, so the solution is as accurate as without losses. Where c is
//! constant each iteration gains as many digits as the tolerance keeps; elsewhere a loss below the ripples costs nothing.
//!
//!     cargo run --release --example refinement

use std::f64::consts::TAU;

use ferrier::solve::Helmholtz;
use ferrier::spectral::{self, WaveNumbers};
use ferrier::{Array, Comm, LayoutSpec, Plan, Problem, Result};

const POINTS: usize = 48;

/// Iterations of one solve: norms of residuals over that of f, and bytes between ranks.
struct History {
    residuals: Vec<f64>,
    bytes: f64,
}

fn norm(comm: &Comm, field: &Array<f64>) -> Result<f64> {
    Ok(comm.sum(&[field.real().iter().map(|x| x * x).sum()])?[0].sqrt())
}

/// Solves until the residual is below 1e-12 of f; `ripple`: how far c is from 1.
fn solve(comm: &Comm, ripple: f64, tolerance: Option<f64>) -> Result<History> {
    let problem = Problem::r2c([POINTS; 3]).output(LayoutSpec::unconstrained());
    let inner = tolerance.map_or(problem.clone(), |tolerance| problem.clone().tolerance(tolerance));
    let mut inner = Helmholtz::new(Plan::<f64>::new(comm, &inner)?, [TAU; 3], 1.0)?;
    let mut outer = Plan::<f64>::new(comm, &problem.operators(true))?;
    let waves = WaveNumbers::new(outer.recipe(), [TAU; 3])?;
    let laplacian = spectral::laplacian(&waves);

    let at = |index: [usize; 3]| index.map(|i| TAU * i as f64 / POINTS as f64);
    let c = |index| at(index).map(f64::cos).iter().product::<f64>() * ripple + 1.0;
    let make = || outer.make_input();
    let (mut f, mut u, mut r, mut correction, mut curved) = (make()?, make()?, make()?, make()?, make()?);
    f.fill_real(|_, index| at(index).map(f64::sin).iter().sum::<f64>().exp());
    let mut coefficient = make()?;
    coefficient.fill_real(|_, index| c(index));

    let whole = norm(comm, &f)?;
    let mut history = History { residuals: Vec::new(), bytes: 0.0 };
    loop {
        // r = f + laplace(u) - c u, without losses.
        outer.call().operator(&laplacian).apply(&u, &mut curved)?;
        let terms = f.real().iter().zip(curved.real()).zip(coefficient.real().iter().zip(u.real()));
        for (r, ((f, curved), (c, u))) in r.real_mut().iter_mut().zip(terms) {
            *r = f + curved - c * u;
        }
        history.residuals.push(norm(comm, &r)? / whole);
        if history.residuals.last().is_some_and(|last| *last < 1e-12) || history.residuals.len() > 20 {
            return Ok(history);
        }
        let cost = inner.solve(&r, &mut correction)?;
        history.bytes += comm.sum(&[cost.wire_bytes as f64])?[0];
        u.real_mut().iter_mut().zip(correction.real()).for_each(|(u, add)| *u += add);
    }
}

fn main() -> Result<()> {
    for ripple in [0.0, 0.3] {
        println!(
            "c = 1 + {ripple} cos x cos y cos z, {POINTS}^3 points, 4 ranks: residual after each inner solve"
        );
        for tolerance in [None, Some(1e-8), Some(1e-4), Some(1e-2)] {
            let history = ferrier::ranks(4).run(|comm| solve(&comm, ripple, tolerance))?.remove(0);
            let name = tolerance.map_or("none".into(), |tolerance| format!("{tolerance:.0e}"));
            let residuals: Vec<String> = history.residuals[1..].iter().map(|r| format!("{r:.0e}")).collect();
            println!("  tolerance {name:>5}, {:5.1} MB: {}", history.bytes / 1e6, residuals.join(" "));
            assert!(history.residuals.last().is_some_and(|last| *last < 1e-12), "not solved");
        }
    }
    Ok(())
}
