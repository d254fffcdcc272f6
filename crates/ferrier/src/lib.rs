//! Ferrier: distributed fast Fourier transforms.
//!
//! **A [`Problem`] plus a [`Choice`] gives a [`Recipe`]; a recipe bound to
//! ranks and memory is a [`Plan`].**
//!
//! Any layout in, any layout out; complex and real; one pass over memory per
//! axis. Ranks are threads of this process, with no launcher, or the processes of
//! an `mpiexec` (module `mpi`).
//!
//! ```
//! use ferrier::{Complex, LayoutSpec, Plan, Problem};
//!
//! let problem = Problem::c2c([16, 16, 16]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0));
//! ferrier::ranks(4).run(|comm| {
//!     let mut plan = Plan::<f64>::new(&comm, &problem)?;
//!     let mut wave = plan.make_input()?;
//!     wave.fill_complex(|_, [i, _, _]| Complex::cis(2.0 * std::f64::consts::PI * 3.0 * i as f64 / 16.0));
//!     let mut modes = plan.make_output()?;
//!     plan.forward(&wave, &mut modes)?;
//!     if let Some(at) = modes.index(0, [3, 0, 0]) {
//!         assert!((modes.complex()[at].re - 4096.0).abs() < 1e-9);
//!     }
//!     Ok(())
//! })?;
//! # Ok::<(), ferrier::Error>(())
//! ```

mod buffer;
mod choice;
pub mod codec;
mod design;
pub mod device;
mod error;
pub mod exchange;
pub mod kernel;
mod kind;
mod layout;
mod long;
pub mod machine;
mod modes;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod mpi;
mod plan;
mod pool;
mod problem;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod ready;
mod recipe;
mod room;
mod simple;
pub mod solve;
pub mod spectral;
mod speeds;
pub mod transport;
pub mod tune;
pub mod wisdom;

pub use choice::{Choice, Compress, Decomposition, MemoryUse, Overlap, Progress, Tiling};
pub use design::{design, design_with};
pub use device::Device;
#[cfg(feature = "cuda")]
pub use device::cuda;
pub use error::{Error, Result};
pub use ferrier_kernel::{Precision, Real};
pub use kind::{Kind, Scale};
pub use layout::{Box3, Layout, LayoutSpec, Order};
pub use modes::{Keep, Radii};
pub use num_complex::Complex;
pub use plan::{
    Array, Certificate, Data, DataMut, Draft, Event, EventKind, Formula, Memory, Modes, Operator, Plan,
    Planner, Run, StepTime, Tables, Workspace, pointwise,
};
pub use problem::Problem;
pub use recipe::{Recipe, Step, StepTraffic};
pub use simple::{fft3, ifft3, irfft3, rfft3};
pub use speeds::MachineSpeeds;
pub use transport::{Comm, Ranks, Wire, ranks};
pub use tune::Effort;

/// The program that opens the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
