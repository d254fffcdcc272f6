//! Other libraries, timed in the same run. They are loaded at run time and never linked.
//!
//! A peer is one file and one line in [`PEERS`].

mod arena;
mod entry;
mod fftw;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod fftw_mpi;
mod launch;
mod library;
mod mkl;
mod peer;
mod problem;

pub use entry::{PEERS, PeerEntry, find, needs_launcher};
pub use launch::MpiLaunch;
pub use peer::Peer;
pub use problem::PeerProblem;
