//! FFTW's MPI interface on top of Ferrier.
//!
//! The two libraries `libfftw3_mpi.so.3` and `libfftw3f_mpi.so.3` are this crate, once in each precision
//! ([`export!`]). A program that is linked to FFTW's uses them unmodified: by `LD_PRELOAD`, by `LD_LIBRARY_PATH` or by
//! linking.
//!
//! * [`local_size`](Api::local_size) gives FFTW's numbers, so programs lay out memory as before.
//! * Plans are Ferrier's, on the program's own communicator and MPI.
//! * `fftw_execute`, `fftw_destroy_plan` and others that look inside plans come first in the lookup of names; plans
//!   that are not ours go to FFTW's functions.
//! * What Ferrier does not do goes to FFTW's own library for MPI, if it is there; otherwise the plan is null, with a line on
//!   standard error.

mod api;
mod distribution;
mod exports;
mod flags;
mod handle;
mod next;
mod plan;
mod registry;
mod steps;
mod wisdom;

pub use api::{Api, Request, copy, print};
pub use handle::Handle;
pub use plan::{Plan, RawPlan, Scalar};
pub use registry::Registry;
