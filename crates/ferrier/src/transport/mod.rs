//! Transports: groups of ranks and how bytes move between them.
//!
//! Ranks of transport `threads` are threads of this process; those of `mpi`
//! are processes that an `mpiexec` started. A new transport implements
//! [`Transport`] and is a folder here.

mod comm;
mod interface;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub(crate) mod mpi;
mod planning;
mod threads;
mod transfer;
mod window;

pub use comm::Comm;
pub(crate) use interface::{EXPOSED, Exposed, Transport, shared_buffer};
pub use threads::{Ranks, Wire, ranks};
pub(crate) use transfer::{NodeCounters, Segment, Transfer, TransferKind, WakeHint, already_in_flight};
pub(crate) use window::{Put, Window};
