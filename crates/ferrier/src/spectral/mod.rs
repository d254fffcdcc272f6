//! Operations on spectra: derivatives, inverses, filters, convolutions and
//! power spectra.
//!
//! Operators that multiply each mode ([`laplacian`], [`inverse_laplacian`],
//! [`helmholtz`], [`derivative`], [`shift()`], [`low_pass`], [`gaussian`],
//! [`two_thirds`]) go with [`Call::apply`](crate::Call::apply), which fuses them with the
//! transforms; [`WaveNumbers`] maps indices to wave numbers. [`Calculus`] has
//! operators on vector fields, [`Convolution`] multiplies by a given spectrum,
//! [`Products`] multiplies fields in space without aliasing.
//!
//! ```
//! use ferrier::{LayoutSpec, Plan, Problem, spectral};
//! use std::f64::consts::TAU;
//!
//! // laplace(u) = f on a periodic box, where f = -14 u.
//! let problem = Problem::r2c([12, 12, 12]).output(LayoutSpec::unconstrained()).operators(true);
//! ferrier::ranks(2).run(|comm| {
//!     let mut plan = Plan::<f64>::new(&comm, &problem)?;
//!     let x = |i: usize| TAU * i as f64 / 12.0;
//!     let exact = |[i, j, k]: [usize; 3]| (x(i) + 2.0 * x(j) + 3.0 * x(k)).sin();
//!     let (mut f, mut u) = (plan.make_input()?, plan.make_input()?);
//!     f.fill_real(|_, at| -14.0 * exact(at));
//!     let waves = spectral::WaveNumbers::new(plan.recipe(), [TAU; 3])?;
//!     plan.call().operator(&spectral::inverse_laplacian(&waves)).apply(&f, &mut u)?;
//!     if let Some(at) = u.index(0, [5, 6, 7]) {
//!         assert!((u.real()[at] - exact([5, 6, 7])).abs() < 1e-14);
//!     }
//!     Ok(())
//! })?;
//! # Ok::<(), ferrier::Error>(())
//! ```

mod boundary;
mod convolve;
mod power;
mod product;
mod scalar;
mod vector;
mod wave_numbers;

pub use boundary::{Boundary, kinds_for};
pub use convolve::{Convolution, linear_shape};
pub use power::{Shell, power_spectrum};
pub use product::Products;
pub use scalar::{
    derivative, gaussian, helmholtz, inverse_laplacian, laplacian, low_pass, shift, two_thirds,
};
pub use vector::Calculus;
pub use wave_numbers::WaveNumbers;
