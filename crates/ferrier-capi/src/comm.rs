//! Communicators.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use crate::handle::{Handle, Object};
use crate::pointer::{In, Out};
use crate::status::{Failure, Outcome, Status, guard};
use crate::text::give;

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

/// Adds values[count] over ranks, entry by entry, in order of rank; every rank gets the sums in their place. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_sum(comm: Handle<Comm>, values: Out<f64>, count: u64) -> Status {
    reduce(comm, values, count, ferrier::Comm::sum)
}

/// Takes the maxima of values[count] over ranks, entry by entry, in their place. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_max(comm: Handle<Comm>, values: Out<f64>, count: u64) -> Status {
    reduce(comm, values, count, ferrier::Comm::max)
}

fn reduce(
    comm: Handle<Comm>,
    mut values: Out<f64>,
    count: u64,
    reduce: fn(&ferrier::Comm, &[f64]) -> ferrier::Result<Vec<f64>>,
) -> Status {
    guard(|| {
        let comm = comm.get("comm")?.get();
        let values = values.list_mut("values", count)?;
        values.copy_from_slice(&reduce(&comm, values)?);
        Ok(())
    })
}

/// The communicator as JSON: "rank", "size", "threads" of a rank, "nodes" (that of each rank), "transport" ("mpi", ...).
/// Free it with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_comm_json(comm: Handle<Comm>, text: Out<*mut c_char>) -> Status {
    guard(|| {
        let comm = comm.get("comm")?.get();
        let value = serde_json::json!({
            "rank": comm.rank(),
            "size": comm.size(),
            "threads": comm.threads(),
            "nodes": comm.nodes(),
            "transport": comm.transport_name(),
        });
        give(text, "text", value.to_string())
    })
}

/// A function of the caller's that runs on a rank. 0 is success. It must not throw or jump out.
pub type RankFunction = Option<unsafe extern "C" fn(data: *mut c_void, comm: Handle<Comm>) -> i32>;

/// What a function of the caller's gets.
struct RankWork {
    function: unsafe extern "C" fn(*mut c_void, Handle<Comm>) -> i32,
    data: *mut c_void,
}

// SAFETY: the header asks for a function that several threads may call at once with its data.
unsafe impl Sync for RankWork {}

impl RankWork {
    fn run(&self, comm: ferrier::Comm) -> ferrier::Result<()> {
        let rank = comm.rank();
        let handle = Handle::new(Comm(Mutex::new(comm)));
        // SAFETY: a function of the caller's, called as the header says.
        let status = unsafe { (self.function)(self.data, handle) };
        // The caller may have destroyed it.
        let _ = handle.destroy("comm");
        match status {
            0 => Ok(()),
            _ => Err(ferrier::Error::other(format!("the function returned {status} on rank {rank}"))),
        }
    }
}

/// Runs a function on so many ranks inside this process, one thread each, without MPI; returns when it has returned on all
/// of them. Each gets its own communicator, which is destroyed afterwards; what was made on it is destroyed by the function.
/// `nodes` simulates nodes whose ranks share memory (1 for none), `threads` are those of each rank (0: its share of the
/// cores). Where the function fails on a rank, collective calls of the others return FERRIER_STATUS_RANK.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_run_ranks(
    ranks: u64,
    nodes: u64,
    threads: u64,
    function: RankFunction,
    data: Out<c_void>,
) -> Status {
    guard(|| {
        let function = function.ok_or_else(|| Failure::argument("function", "is NULL"))?;
        for (name, value, least) in [("ranks", ranks, 1), ("nodes", nodes, 1), ("threads", threads, 0)] {
            if !(least..=4096).contains(&value) {
                let message = format_args!("must be from {least} to 4096, got {value}");
                return Err(Failure::argument(name, message));
            }
        }
        let mut group = ferrier::ranks(ranks as usize).nodes(nodes as usize);
        if threads > 0 {
            group = group.threads(threads as usize);
        }
        let work = RankWork { function, data: data.address() };
        group.run(|comm| work.run(comm))?;
        Ok(())
    })
}
