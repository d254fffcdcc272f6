//! Solvers for equations on periodic boxes: transform, divide each mode, transform back.
//!
//! ```
//! use ferrier::solve::Helmholtz;
//! use ferrier::{Plan, Problem};
//! use std::f64::consts::TAU;
//!
//! // -u'' + u = f with u = cos 3x, so f = 10 cos 3x.
//! let n = 16;
//! let angle = |i: usize| 3.0 * TAU * i as f64 / n as f64;
//! ferrier::ranks(2).run(|comm| {
//!     let plan = Plan::<f64>::new(&comm, &Problem::r2c([n, n, n]))?;
//!     let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
//!     f.fill_real(|_, [i, _, _]| 10.0 * angle(i).cos());
//!     Helmholtz::new(plan, [TAU; 3], 1.0)?.solve(&f, &mut u)?;
//!     if let Some(at) = u.index(0, [2, 5, 7]) {
//!         assert!((u.real()[at] - angle(2).cos()).abs() < 1e-13);
//!     }
//!     Ok(())
//! })?;
//! # Ok::<(), ferrier::Error>(())
//! ```
//!
//! The error of a solution on a grid has two parts: the *discretisation error*
//! of the grid, and the errors of the computation (rounding and lossy codecs).
//! Making one part much smaller than the other gains nothing:
//! [`estimate_discretisation`] estimates the first part, which is a good
//! tolerance for the plan.

mod estimate;
mod helmholtz;

pub use estimate::{Discretisation, estimate_discretisation};
pub use helmholtz::{Cost, Helmholtz};
