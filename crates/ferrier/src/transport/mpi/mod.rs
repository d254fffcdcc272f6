//! Transport `mpi`: every rank is a process that an `mpiexec` started.

mod control;
mod cores;
mod error;
mod mapping;
mod node_counters;
mod node_shared;
mod rank;
mod transfer;
mod window;

pub(crate) use error::mpi_error;
pub(crate) use rank::MpiRank;
