//! laplace(u) = f on a box, with every kind of wall.
//!
//! Periodic axes are Fourier series, axes between walls with a given slope
//! (Neumann) cosines, with a given value (Dirichlet) sines. The inverse of the
//! Laplacian then multiplies each mode, which `Plan::apply` does between the
//! transforms.
//!
//!     cargo run --release --example poisson

use std::f64::consts::{PI, TAU};

use ferrier::spectral::{self, Boundary, kinds_for};
use ferrier::{Array, Comm, LayoutSpec, Plan, Problem, Result};

/// A function that fits the walls, and its second derivative.
fn profile(walls: Boundary, x: f64) -> [f64; 2] {
    let (sin, cos) = (if walls == Boundary::Periodic { TAU * x } else { PI * x }).sin_cos();
    let bump = cos.exp();
    match walls {
        Boundary::Periodic => [bump, TAU * TAU * (sin * sin - cos) * bump],
        Boundary::Neumann => [bump, PI * PI * (sin * sin - cos) * bump],
        Boundary::Dirichlet => [sin * bump, PI * PI * sin * (sin * sin - 3.0 * cos - 1.0) * bump],
    }
}

/// Solves on n points along each axis; the largest error.
fn solve(comm: &Comm, n: usize, walls: [Boundary; 3]) -> Result<f64> {
    let problem =
        Problem::mixed([n; 3], kinds_for(walls)).output(LayoutSpec::unconstrained()).operators(true);
    let mut plan = Plan::<f64>::new(comm, &problem)?;
    let profiles =
        |at: [usize; 3]| [0, 1, 2].map(|axis| profile(walls[axis], walls[axis].place(at[axis], n)));
    let (mut f, mut u, mut exact) = (plan.make_input()?, plan.make_input()?, plan.make_input()?);
    exact.fill_real(|_, at| profiles(at).iter().map(|[value, _]| value).product());
    f.fill_real(|_, at| {
        let [x, y, z] = profiles(at);
        x[1] * y[0] * z[0] + x[0] * y[1] * z[0] + x[0] * y[0] * z[1]
    });

    let waves = spectral::WaveNumbers::new(plan.recipe(), [1.0; 3])?;
    plan.call().operator(&spectral::inverse_laplacian(&waves)).apply(&f, &mut u)?;

    // Without a wall that holds it, the solution is the one with mean zero.
    let free = !walls.contains(&Boundary::Dirichlet);
    let mean = |field: &Array<f64>| -> Result<f64> {
        let sum = comm.sum(&[field.real().iter().sum()])?[0];
        Ok(if free { sum / (n * n * n) as f64 } else { 0.0 })
    };
    let (found, wanted) = (mean(&u)?, mean(&exact)?);
    let errors = u.real().iter().zip(exact.real()).map(|(u, e)| ((u - found) - (e - wanted)).abs());
    Ok(comm.max(&[errors.fold(0.0, f64::max)])?[0])
}

fn main() -> Result<()> {
    use Boundary::{Dirichlet, Neumann, Periodic};
    let boxes = [
        [Periodic; 3],
        [Neumann; 3],
        [Dirichlet; 3],
        [Periodic, Periodic, Neumann],
        [Neumann, Periodic, Dirichlet],
    ];
    for walls in boxes {
        let errors = ferrier::ranks(4).run(|comm| {
            [8, 16, 32].map(|n| solve(&comm, n, walls)).into_iter().collect::<Result<Vec<_>>>()
        })?;
        let [coarse, middle, fine] = errors[0][..] else { unreachable!("three grids") };
        println!("{walls:?}: 8^3 points {coarse:.1e}, 16^3 {middle:.1e}, 32^3 {fine:.1e}");
        // Errors fall faster than any power of n, down to rounding.
        assert!(middle < 1e-2 * coarse && fine < 1e-12, "{walls:?}: {errors:?}");
    }
    Ok(())
}
