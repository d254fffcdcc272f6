//! Ranks that an `mpiexec` started. The library is found and loaded at run
//! time; see the crate `ferrier-mpi`.
//!
//! The processes of a node share memory. Arrays that a plan makes
//! ([`Plan::make_input`](crate::Plan::make_input) and its relatives) lie in
//! shared memory; other arrays may need an extra pass.
//!
//! Environment variables:
//! - `FERRIER_SHARED_LIMIT`: the most bytes that one array may share, over all
//!   ranks of a node.
//! - `FERRIER_RING_CHUNK`: bytes per put of exchange `ring`; the value of rank 0
//!   applies to all.
//! - `FERRIER_MPI_THREADS` (`funneled`, `serialized`, `multiple`): which threads
//!   may call MPI. A progress thread ([`Progress::Thread`](crate::Progress)) needs
//!   at least `serialized`.

pub use ferrier_mpi::{Found, find};
use ferrier_mpi::{Level, Mpi};

use crate::transport::mpi::{MpiRank, mpi_error};
use crate::{Comm, Result};

/// All processes of this launch; `None` where no `mpiexec` started this
/// process. Each rank uses its share of the node's cores. Collective.
///
/// MPI is initialised so that only the thread that calls this may use the
/// result (`MPI_THREAD_FUNNELED`), unless `FERRIER_MPI_THREADS` says otherwise,
/// and finalized when the last communicator and plan are dropped. A rank that
/// returns early after an error must call [`Comm::fail`]; otherwise the other
/// ranks wait for it.
///
/// ```
/// # fn main() -> ferrier::Result<()> {
/// let comm = ferrier::mpi::world()?.unwrap_or_else(ferrier::Comm::one_rank);
/// println!("{comm:?}");
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) under a launcher whose library
/// is not found or does not initialise; the text lists the places searched.
pub fn world() -> Result<Option<Comm>> {
    let Some(mpi) = Mpi::init(level()?).map_err(mpi_error)? else { return Ok(None) };
    adopt(mpi.world().map_err(mpi_error)?).map(Some)
}

/// The thread level of `FERRIER_MPI_THREADS`; [`Level::Funneled`] where it is not
/// set.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) where it has another value.
pub fn level() -> Result<Level> {
    match std::env::var("FERRIER_MPI_THREADS").as_deref() {
        Err(_) | Ok("" | "funneled") => Ok(Level::Funneled),
        Ok("serialized") => Ok(Level::Serialized),
        Ok("multiple") => Ok(Level::Multiple),
        Ok(other) => Err(crate::Error::transport(format!(
            "FERRIER_MPI_THREADS must be funneled, serialized or multiple, got `{other}`"
        ))),
    }
}

/// Uses a communicator of `ferrier-mpi`, such as one adopted by raw handle
/// ([`Mpi::adopt`]). Collective.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) with MPI's text.
pub fn adopt(comm: ferrier_mpi::Comm) -> Result<Comm> {
    let rank = MpiRank::new(comm.clone())?;
    // The same number of threads on every rank.
    let mut least = [rank.cores() as u64];
    comm.all_reduce(&mut least, ferrier_mpi::Op::Min).map_err(mpi_error)?;
    Ok(Comm::new(std::sync::Arc::new(rank), least[0] as usize))
}
