//! Ranks that an `mpiexec` started. The library is found and loaded at run
//! time; see the crate `ferrier-mpi`.
//!
//! The processes of a node share memory: arrays that a plan makes
//! ([`Plan::make_input`](crate::Plan::make_input) and its relatives) are where
//! neighbours reach them, any other array may cost a pass more. Variables of
//! the environment: `FERRIER_SHARED_LIMIT` is the most bytes that one array,
//! all its ranks on a node together, may share; `FERRIER_RING_CHUNK` the bytes
//! that exchange `ring` puts at once (rank 0's counts); `FERRIER_MPI_THREADS`
//! (`funneled`, `serialized`, `multiple`) how threads may call MPI: a progress
//! thread ([`Progress::Thread`](crate::Progress)) needs at least the second.

pub use ferrier_mpi::{Found, find};
use ferrier_mpi::{Level, Mpi};

use crate::transport::mpi::{Member, wrapped};
use crate::{Comm, Result};

/// All processes of this launch, each with its share of the node's cores as
/// threads; `None` where no `mpiexec` started this process. Collective.
///
/// MPI is initialised so that only the thread that calls this may use the
/// result (`MPI_THREAD_FUNNELED`), unless `FERRIER_MPI_THREADS` says otherwise,
/// and finalized when the last communicator and plan are gone. A rank that has
/// to leave before the others, after an error of its own, says so
/// ([`Comm::fail`]), or they wait for it.
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
/// is not found or does not start; it says what was searched.
pub fn world() -> Result<Option<Comm>> {
    let Some(mpi) = Mpi::init(level()?).map_err(wrapped)? else { return Ok(None) };
    adopt(mpi.world().map_err(wrapped)?).map(Some)
}

/// How threads are to call MPI: what `FERRIER_MPI_THREADS` says, or one only.
///
/// # Errors
/// It says something else.
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

/// A communicator of `ferrier-mpi`: one of its own making, or one adopted by
/// raw handle ([`Mpi::adopt`]). Collective.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) with MPI's text.
pub fn adopt(comm: ferrier_mpi::Comm) -> Result<Comm> {
    let member = Member::new(comm.clone())?;
    // As many on every rank, whatever nodes there are.
    let mut least = [member.cores() as u64];
    comm.all_reduce(&mut least, ferrier_mpi::Op::Min).map_err(wrapped)?;
    Ok(Comm::new(std::sync::Arc::new(member), least[0] as usize))
}
