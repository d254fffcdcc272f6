//! Ferrier: distributed fast Fourier transforms.
//!
//! **A [`Problem`] plus a [`Choice`] gives a [`Recipe`]; a recipe bound to
//! ranks and memory is a [`Plan`].**
//!
//! Any layout in, any layout out; complex and real; one pass over memory per
//! axis. Ranks are threads of this process, with no launcher, or the processes of
//! an `mpiexec` (module `mpi`).
//!
//! **New here? [The guide](guide) leads from the first transform to MPI in five minutes**, then has one page per
//! topic: [layouts](guide::layouts), [arrays](guide::arrays), [transforms](guide::transforms), [calls](guide::calls),
//! [tuning](guide::tuning), [tolerance](guide::tolerance), [GPUs](guide::gpu), [errors](guide::errors).
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

pub mod codec;
mod copies;
#[cfg(feature = "cuda")]
pub mod cuda;
mod design;
pub mod device;
mod error;
pub mod exchange;
mod exec;
pub mod guide;
mod halo;
#[cfg(all(debug_assertions, not(test)))]
mod instances;
pub mod io;
pub mod kernel;
pub mod machine;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod mpi;
mod pencils;
mod planner;
mod redistribute;
mod simple;
pub mod solve;
pub mod spectral;
mod transport;

pub use copies::{CopyBackend, Element, Field};
pub(crate) use design::design_on;
pub use design::{design, design_with};
pub use device::{Device, DeviceSpec};
pub use error::{Cause, Error, Result};
pub use exec::{
    Array, ArrayOf, Backend, Call, Certificate, Cpu, Data, DataMut, Event, EventKind, FieldSpans, Fields,
    FieldsMut, Formula, Input, Memory, ModeRun, Modes, Operator, Output, Plan, Scalars, Span, StepTime,
    Tables, Workspace, bounded, pointwise,
};
#[doc(hidden)]
pub use exec::{Fault, Meanwhile};
pub use ferrier_kernel::{Precision, Real};
pub use ferrier_plan::cost;
pub use ferrier_plan::{
    ArrayStrides, Box3, Choice, Compress, Decomposition, Error as PlanError, Invalid, Keep, Kind, Layout,
    LayoutSpec, MachineSpeeds, MemoryUse, Order, Overlap, Problem, Progress, Radii, Recipe, Scale, Sign,
    Step, StepTraffic, StridesSpec, Tiling,
};
pub use halo::{GhostSum, Ghosts, Halo, HaloInFlight};
pub use num_complex::Complex;
pub use pencils::{PencilFamily, Pencils};
pub use planner::tune::Effort;
pub use planner::{Draft, MEASURE_TIME, Pipeline, Planner, Target, measure_speeds, tune, wisdom};
pub use redistribute::Redistribution;
pub use simple::{fft3, ifft3, irfft3, rfft3};
pub use transport::{Comm, Ranks, Wire, ranks};

/// The program that opens the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
