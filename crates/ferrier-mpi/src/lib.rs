//! MPI, loaded at run time: one binary for Open MPI 4.1 and 5, MPICH 4, and
//! every library with the standard ABI of MPI 5 (MPICH 5).
//!
//! Nothing is linked and no `mpi.h` is needed to build. A program started by
//! an `mpiexec` finds the library that belongs to it ([`find()`]); for a program
//! started without a launcher, [`Mpi::init`] returns `None`.
//!
//! ```
//! use ferrier_mpi::{Level, Mpi, Op};
//!
//! # fn main() -> ferrier_mpi::Result<()> {
//! match Mpi::init(Level::Funneled)? {
//!     None => println!("not started by mpiexec: one process"),
//!     Some(mpi) => {
//!         let world = mpi.world()?;
//!         let mut sum = [world.rank() as u64];
//!         world.all_reduce(&mut sum, Op::Sum)?;
//!         println!("rank {} of {}: {:?}, {}", world.rank(), world.size(), sum, mpi.library_version()?);
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! # Guarantees
//! - Errors are returned as [`Error`], with MPI's own text: the error handlers of
//!   all communicators and windows are set to return.
//! - Counts are 64-bit. For libraries without 64-bit calls, long messages are
//!   split.
//! - A buffer lives while MPI uses it: safe calls return when their operations are
//!   complete, also after an error.
//! - MPI is finalized when the last [`Mpi`], [`Comm`] and [`Window`] are dropped;
//!   [`Mpi::live`] counts them. No call follows.
//! - Calls from threads that the [`Level`] does not allow return an error.
//!
//! The other ranks wait for a rank that panics; [`Comm::abort`] ends them all.

pub mod abi;
mod attribute;
mod collective;
mod comm;
mod counts;
mod data;
mod error;
mod exchange;
mod ffi;
mod find;
mod level;
mod library;
mod mpi;
mod p2p;
mod searched;
mod segment;
mod table;
mod window;

pub use abi::{Abi, Family, Handle};
pub use comm::Comm;
pub use data::{Number, Op, Plain};
pub use error::{Error, Result};
pub use exchange::{Algorithm, AllToAllV, Lengths};
pub use find::{Found, Surroundings, find, find_in, find_loaded};
pub use level::Level;
pub use mpi::{Live, Mpi};
pub use searched::Searched;
pub use segment::Segment;
pub use window::{PutRequest, Window};
