//! Ranks that an `mpiexec` started, and communicators of a host program
//! ([`from_fortran`]). The library is found and loaded at run time; see the crate
//! `ferrier-mpi`.
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

use std::ffi::c_void;

pub use ferrier_mpi::{Found, find, find_loaded};
use ferrier_mpi::{Level, Mpi};

use crate::transport::mpi::{MpiRank, mpi_error};
use crate::{Comm, Result};

/// All processes of this launch; `None` where no `mpiexec` started this
/// process. Where a host program has initialised MPI: a duplicate of its world.
/// Each rank uses its share of the node's cores. Collective.
///
/// Otherwise MPI is initialised so that only the thread that calls this may use the
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

/// A communicator of the host program, given as Fortran's integer
/// (`MPI_Comm_c2f`), which is the same for every MPI. Collective over it.
///
/// The MPI is the host's: the one of which `function` is any function
/// (`MPI_Init` as the host's compiler sees it), where `function` is not null, else
/// the one that the program is linked to or has loaded. The communicator is
/// duplicated at its first use. The duplicate is kept as an attribute
/// until the host frees the communicator or finalizes MPI, so later calls only look
/// it up. Plans may be dropped after `MPI_Finalize`; other calls return
/// errors then.
///
/// With `MPI_Init` alone (no thread level) there is no progress thread.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) where no MPI is loaded or
/// initialised, for the null communicator, an inter-communicator, and with MPI's
/// text.
///
/// # Safety
/// `handle` is a communicator of that MPI. (Most libraries notice what is none,
/// and this returns an error.)
pub unsafe fn from_fortran(handle: i32, function: *const c_void) -> Result<Comm> {
    let mpi = Mpi::host(function).map_err(mpi_error)?;
    let handle = mpi.handle_of_fortran(handle).map_err(mpi_error)?;
    // SAFETY: the contract of this function.
    unsafe { host_comm(&mpi, handle) }
}

/// [`from_fortran`] for the `MPI_Comm` itself: a pointer, or MPICH's 32-bit integer
/// (the upper half does not matter).
///
/// # Errors
/// As [`from_fortran`].
///
/// # Safety
/// As [`from_fortran`].
pub unsafe fn from_handle(handle: usize, function: *const c_void) -> Result<Comm> {
    let mpi = Mpi::host(function).map_err(mpi_error)?;
    // SAFETY: the contract of this function.
    unsafe { host_comm(&mpi, handle) }
}

/// # Safety
/// `raw` is a communicator of `mpi`.
unsafe fn host_comm(mpi: &Mpi, raw: usize) -> Result<Comm> {
    // SAFETY: the contract of this function, for all three calls.
    unsafe {
        if let Some(comm) = mpi.kept::<Comm>(raw).map_err(mpi_error)? {
            return Ok(comm);
        }
        let comm = adopt(mpi.adopt(raw).map_err(mpi_error)?)?;
        mpi.keep(raw, comm.clone()).map_err(mpi_error)?;
        Ok(comm)
    }
}
