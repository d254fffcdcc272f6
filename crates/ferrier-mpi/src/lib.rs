//! MPI, loaded at run time: one binary for Open MPI 4.1 and 5, MPICH 4, and
//! every library with the standard ABI of MPI 5 (MPICH 5).
//!
//! Nothing is linked and no `mpi.h` is needed to build. A program started by
//! an `mpiexec` finds the library that belongs to it ([`find()`]); a program
//! started alone is told that there is none, and can go on without.
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
//! # What holds everywhere
//! - Errors come back as [`Error`], with MPI's own text: error handlers are
//!   set to return on every communicator and window.
//! - Counts are 64-bit. Libraries without 64-bit calls get long messages in
//!   pieces.
//! - A buffer lives while MPI uses it: operations that do not block are
//!   started in a [`Scope`], which ends when they are complete.
//! - Nothing is called after finalize: that happens when the last [`Mpi`],
//!   [`Comm`], [`Window`] is gone. All of them can be counted ([`Mpi::live`]).
//! - Threads are held to the level that was asked for ([`Level`]).
//!
//! Ranks that panic leave the others waiting; [`Comm::abort`] ends them all.

pub mod abi;
mod collective;
mod comm;
mod data;
mod error;
mod exchange;
mod ffi;
mod find;
mod flight;
mod mpi;
mod p2p;
mod persistent;
mod request;
mod window;

pub use abi::{Abi, Family, Handle};
pub use comm::Comm;
pub use data::{Number, Op, Plain};
pub use error::{Error, Result};
pub use exchange::{AllToAllV, Part, Way};
pub use find::{Found, Searched, Surroundings, find, find_in};
pub use flight::RequestSet;
pub use mpi::{Level, Live, Mpi};
pub use p2p::{Received, Source};
pub use persistent::Persistent;
pub use request::{Complete, Request, Scope, wait_any};
pub use window::{Puts, Window};
