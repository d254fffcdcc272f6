//! Other libraries, timed in the same run. They are loaded at run time and never linked.
//!
//! A peer is one file and one line in [`PEERS`].

mod arena;
mod entry;
mod fftw;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod fftw_mpi;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod heffte;
mod launch;
mod library;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod linked_to_mpi;
mod mkl;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod p3dfft;
mod peer;
mod problem;

pub use entry::{PEERS, PeerEntry, find, needs_launcher};
pub use launch::MpiLaunch;
pub use peer::Peer;
pub use problem::PeerProblem;
