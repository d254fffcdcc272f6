//! Communicators.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::handle::{Handle, Object};
use crate::pointer::{In, Out};
use crate::status::{Failure, Outcome, Status, guard};

/// A group of ranks that make plans together, and how many threads each may use.
pub struct Comm(Mutex<ferrier::Comm>);

impl Object for Comm {
    const NAME: &'static str = "communicator";
    const TAG: usize = 1;
}

impl Comm {
    pub(crate) fn get(&self) -> ferrier::Comm {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn make(mut comm: Out<Handle<Comm>>, make: impl FnOnce() -> Outcome<ferrier::Comm>) -> Outcome {
    let slot = comm.slot("comm")?;
    slot.set(Handle::new(Comm(Mutex::new(make()?))));
    Ok(())
}

/// This process alone, with a thread for each of its cores.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_one(comm: Out<Handle<Comm>>) -> Status {
    guard(|| make(comm, || Ok(ferrier::Comm::one_rank())))
}

/// All processes: those of the MPI that the program has initialised, else those that an mpiexec started (MPI is
/// initialised then, and finalized when the last communicator and plan are destroyed), else this process alone.
/// Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_world(comm: Out<Handle<Comm>>) -> Status {
    guard(|| make(comm, || Ok(ferrier::mpi::world()?.unwrap_or_else(ferrier::Comm::one_rank))))
}

/// An MPI communicator, given as Fortran's integer: `comm` in Fortran, MPI_Comm_c2f(comm) in C. C programs that include
/// mpi.h before this header use ferrier_comm_from_mpi. Collective over the communicator.
///
/// `mpi_function` is the address of any function of the MPI that the communicator belongs to, or NULL: then that MPI is
/// the one that the program is linked to or has loaded. The program must have initialised it.
///
/// The communicator is duplicated at its first use. The duplicate is kept as an attribute of it and freed with it, or
/// by MPI_Finalize. What is destroyed after MPI_Finalize is destroyed without MPI.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_from_fortran(
    handle: i32,
    mpi_function: In<c_void>,
    comm: Out<Handle<Comm>>,
) -> Status {
    guard(|| {
        // SAFETY: a communicator of that MPI, by the promise of whoever calls a function that takes one; MPI checks it.
        make(comm, || Ok(unsafe { ferrier::mpi::from_fortran(handle, mpi_function.address()) }?))
    })
}

/// Destroys a communicator; the plans on it stay as they are. NULL is allowed. The MPI communicator that it came from is
/// not affected.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_free(comm: Handle<Comm>) -> Status {
    guard(|| comm.destroy("comm"))
}

/// This rank, from 0 on.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_rank(comm: Handle<Comm>, rank: Out<u64>) -> Status {
    guard(|| rank.set("rank", comm.get("comm")?.get().rank() as u64))
}

/// The number of ranks.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_size(comm: Handle<Comm>, size: Out<u64>) -> Status {
    guard(|| size.set("size", comm.get("comm")?.get().size() as u64))
}

/// The number of nodes: groups of ranks that share memory.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_nodes(comm: Handle<Comm>, nodes: Out<u64>) -> Status {
    guard(|| nodes.set("nodes", comm.get("comm")?.get().node_count() as u64))
}

/// Threads that each rank may use.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_threads(comm: Handle<Comm>, threads: Out<u64>) -> Status {
    guard(|| threads.set("threads", comm.get("comm")?.get().threads() as u64))
}

/// Sets how many threads plans made from now on may use on each rank (at least 1). Default: the rank's share of the
/// cores of its node.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_set_threads(comm: Handle<Comm>, threads: u64) -> Status {
    guard(|| {
        let comm = comm.get("comm")?;
        if !(1..=65_536).contains(&threads) {
            return Err(Failure::argument("threads", format_args!("must be from 1 to 65536, got {threads}")));
        }
        let mut comm = comm.0.lock().unwrap_or_else(PoisonError::into_inner);
        *comm = comm.clone().with_threads(threads as usize);
        Ok(())
    })
}

/// Returns when every rank has called it. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_barrier(comm: Handle<Comm>) -> Status {
    guard(|| Ok(comm.get("comm")?.get().barrier()?))
}
