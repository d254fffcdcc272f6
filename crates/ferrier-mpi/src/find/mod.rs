//! Finding the MPI library that belongs to the launcher of this process.
//!
//! Launchers set environment variables that show *that* they started a process,
//! but often not *which* library they belong to: both generations of MPICH set
//! only `PMI_*`, both generations of Open MPI are `libmpi.so.40`. So the path of
//! the launcher itself decides: `OPAL_PREFIX` where it is set, else the
//! executables of the parent processes, then `PATH`, `LD_LIBRARY_PATH` and the
//! system's folders. A library that the host program has loaded needs none of
//! this: [`find_loaded`].

mod launcher;
mod locate;
mod process;
mod search;
mod surroundings;

pub use locate::{Found, find, find_in};
pub use process::find_loaded;
pub use surroundings::Surroundings;

#[cfg(test)]
mod tests;
