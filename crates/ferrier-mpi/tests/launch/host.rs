//! A host program that loads, initialises and finalizes MPI itself, and hands over its communicators.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrier_mpi::{Comm, Error, Handle, Level, Mpi, Op, find, find_loaded};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// The host's own calls of MPI.
struct Host(Library);

impl Host {
    fn address(&self, name: &str) -> *const c_void {
        // SAFETY: only the address is taken.
        unsafe { self.0.get::<*mut c_void>(name).expect(name).into_raw() }
    }

    fn call(&self, name: &str, words: [usize; 3]) -> i32 {
        // SAFETY: functions of at most three arguments, each in a register; what they need not is ignored.
        unsafe {
            let function = self.0.get::<unsafe extern "C" fn(usize, usize, usize) -> i32>(name).expect(name);
            function(words[0], words[1], words[2])
        }
    }

    fn duplicate(&self, raw: Handle) -> Handle {
        let mut made: Handle = 0;
        assert_eq!(self.call("MPI_Comm_dup", [raw, &raw mut made as usize, 0]), 0);
        made
    }

    fn free(&self, mut raw: Handle) {
        assert_eq!(self.call("MPI_Comm_free", [&raw mut raw as usize, 0, 0]), 0);
    }
}

/// A communicator and something that counts its drops.
#[derive(Clone)]
struct Kept(#[allow(dead_code)] Arc<(Comm, DropCount)>);

struct DropCount(Arc<AtomicUsize>);

impl Drop for DropCount {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "runs under mpiexec, started by the other tests"]
fn guest() {
    assert_eq!(Mpi::host(ptr::null()).err(), Some(Error::NotLoaded));
    let found = find().expect("found").expect("under a launcher");
    // SAFETY: an MPI library.
    let host = Host(unsafe { Library::open(Some(&found.path), RTLD_NOW | RTLD_GLOBAL) }.expect("library"));
    let init = host.address("MPI_Init");
    assert_eq!(Mpi::host(init).err(), Some(Error::NotInitialised));
    assert_eq!(host.call("MPI_Init", [0; 3]), 0);

    for function in [ptr::null(), init] {
        let loaded = find_loaded(function).expect("it is loaded");
        assert_eq!((loaded.path, loaded.family), (found.path.canonicalize().expect("path"), found.family));
    }
    // By path, by the address of a function, and by nothing at all it is the same one.
    let mpi = Mpi::load(found, Level::Multiple).expect("in use already");
    assert!(Mpi::host(init).is_ok() && !mpi.is_initialised_here());
    assert_eq!(Mpi::init(Level::Multiple).expect("the host's").expect("is initialised").found(), mpi.found());
    let world = mpi.world().expect("world");
    // A duplicate: the host's own is not used.
    assert_eq!(mpi.live().communicators, 1);
    let mut ranks = [1_u64];
    world.all_reduce(&mut ranks, Op::Sum).expect("sum");
    assert_eq!(ranks[0] as usize, world.size());

    let drops = communicators(&host, &mpi, &world);
    assert_eq!(host.call("MPI_Finalize", [0; 3]), 0);
    assert_eq!(drops.load(Ordering::Relaxed), 2, "finalizing drops what is kept with communicators");
    assert_eq!(world.barrier(), Err(Error::Finalized));
    assert_eq!(world.duplicate().err(), Some(Error::Finalized));
    assert_eq!(Mpi::host(init).err(), None, "a handle is alive");
    drop((world, mpi));
    assert_eq!(Mpi::host(init).err(), Some(Error::Finalized));
    std::mem::forget(host); // no MPI supports being unloaded
    println!("guest ok");
}

/// Communicators of the host are adopted; values are kept with them until they are freed.
fn communicators(host: &Host, mpi: &Mpi, world: &Comm) -> Arc<AtomicUsize> {
    let drops = Arc::new(AtomicUsize::new(0));
    let make = |raw: Handle| {
        // SAFETY: a communicator of the host.
        let adopted = unsafe { mpi.adopt(raw) }.expect("adopted");
        Kept(Arc::new((adopted, DropCount(drops.clone()))))
    };
    let own = host.duplicate(world.raw());
    // SAFETY: a communicator of the host, until it is freed below.
    unsafe {
        assert!(mpi.kept::<Kept>(own).expect("no attribute yet").is_none());
        mpi.keep(own, make(own)).expect("kept");
        assert_eq!(mpi.rank_and_size(own), Ok((world.rank(), world.size())));
        assert!(mpi.kept::<Kept>(own).expect("kept").is_some() && mpi.kept::<u32>(own) == Ok(None));
        assert_eq!(mpi.live().communicators, 2);
        let copy = host.duplicate(own);
        assert!(mpi.kept::<Kept>(copy).expect("valid").is_none(), "duplicates begin without attributes");
        host.free(copy);
        assert_eq!((mpi.live().communicators, drops.load(Ordering::Relaxed)), (2, 0));
    }
    host.free(own);
    assert_eq!((mpi.live().communicators, drops.load(Ordering::Relaxed)), (1, 1));

    // What is no communicator; MPI does not end the job.
    let null = match mpi.abi().comm_null {
        ferrier_mpi::abi::Predefined::Value(value) => value,
        ferrier_mpi::abi::Predefined::Symbol(name) => host.address(name) as Handle,
    };
    // SAFETY: refused.
    let refused = unsafe { mpi.adopt(null) }.err();
    assert!(matches!(refused, Some(Error::Argument(_))), "{refused:?}");
    // SAFETY: refused; this number is of no communicator in any MPI.
    let refused = unsafe { mpi.adopt_fortran(0x0765_4321) };
    assert!(refused.is_err(), "{refused:?}");

    // Not freed by the host: dropped when it finalizes MPI.
    let left = host.duplicate(world.raw());
    // SAFETY: a communicator of the host.
    unsafe { mpi.keep(left, make(left)).expect("kept") };
    drops
}
