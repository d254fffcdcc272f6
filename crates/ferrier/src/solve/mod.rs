//! Equations on periodic boxes, solved mode by mode: forward, divide, backward.
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
//! A solution on a grid is off for two reasons: the grid is not fine enough
//! (the *discretisation error*), and what was computed is not exact (rounding
//! and lossy codecs). Making one much smaller than the other is wasted:
//! [`estimate_discretisation`] gives the first one, which is what to ask of a
//! plan with a tolerance.

mod estimate;
mod helmholtz;

pub use estimate::{Discretisation, estimate_discretisation};
pub use helmholtz::{Cost, Helmholtz};
