//! Exercises every call under the MPI that started it:
//! `mpiexec -n 3 selftest [LIMIT]`. With a limit, counts are 32-bit and
//! messages above it are split. Rank 0 prints one line at the end.

mod collectives;
mod exchanges;
mod windows;

use ferrier_mpi::{Comm, Error, Family, Level, Live, Mpi, Result};

fn main() {
    let limit = std::env::args().nth(1).map(|limit| limit.parse().expect("LIMIT is a number"));
    run(limit, Level::Funneled);
}

/// Runs all tests, with a lower limit of counts if there is one.
pub fn run(limit: Option<usize>, level: Level) {
    let mpi = match Mpi::init(level) {
        Ok(Some(mpi)) => mpi,
        Ok(None) => return println!("selftest: no MPI"),
        Err(error) => {
            eprintln!("selftest: {error}");
            std::process::exit(3);
        }
    };
    if let Some(limit) = limit {
        mpi.lower_count_limit(limit);
        assert!(!mpi.has_wide_counts());
    }
    let world = mpi.world().expect("world");
    std::panic::set_hook(Box::new({
        let rank = world.rank();
        move |panic| eprintln!("selftest: rank {rank}: {panic}")
    }));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| all(&mpi, &world)));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            eprintln!("selftest: rank {}: {error}", world.rank());
            world.abort(1);
        }
        Err(_) => world.abort(2),
    }
    let line = format!(
        "selftest ok: {} ranks, limit {limit:?}, {:?}, wide {}, {}, {} ({})",
        world.size(),
        mpi.level(),
        mpi.has_wide_counts(),
        mpi.library_version().expect("version"),
        mpi.found().path.display(),
        mpi.found().why
    );
    end(mpi, world, &line);
}

fn all(mpi: &Mpi, world: &Comm) -> Result<()> {
    identity(mpi, world)?;
    threads(mpi, world)?;
    communicators(mpi, world)?;
    collectives::all(world)?;
    exchanges::all(world)?;
    windows::one_sided(world)?;
    nothing_leaks(mpi, world)
}

fn identity(mpi: &Mpi, world: &Comm) -> Result<()> {
    assert!(mpi.version()? >= (3, 1));
    assert!(!mpi.library_version()?.is_empty());
    assert!(world.rank() < world.size());
    Ok(())
}

/// Another thread may call MPI, or gets an error.
fn threads(mpi: &Mpi, world: &Comm) -> Result<()> {
    let other = world.clone();
    let called = std::thread::spawn(move || -> Result<()> {
        // Freed by this thread, too.
        let own = other.duplicate()?;
        own.barrier()
    });
    let called = called.join().expect("thread");
    match mpi.level() {
        Level::Serialized | Level::Multiple => called,
        level => {
            assert_eq!(called, Err(Error::WrongThread { level }));
            Ok(())
        }
    }
}

fn communicators(mpi: &Mpi, world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let same = world.duplicate()?;
    assert_eq!((same.rank(), same.size()), (rank, size));
    assert_ne!(same.raw(), world.raw());

    // Odd and even, in reverse order; the last rank stays out.
    let colour = (rank + 1 < size).then_some(rank % 2);
    let half = world.split(colour, size - rank)?;
    assert_eq!(half.is_some(), colour.is_some());
    if let Some(half) = half {
        let expected: Vec<usize> = (0..size - 1).filter(|other| other % 2 == rank % 2).rev().collect();
        assert_eq!(half.size(), expected.len());
        assert_eq!(expected[half.rank()], rank);
        half.barrier()?;
    }
    assert!(matches!(world.split(Some(usize::MAX), 0), Err(Error::Argument(_))));

    let node = world.split_node()?;
    assert!(node.size() <= size);

    // SAFETY: a communicator that is alive, and world's handle in Fortran.
    let (raw, fortran) = unsafe {
        let world_in_fortran = match mpi.abi().family {
            Family::OpenMpi => 0,
            Family::Mpich => 0x4400_0000,
            Family::Standard => 0x101,
        };
        (mpi.adopt(same.raw())?, mpi.adopt_fortran(world_in_fortran)?)
    };
    drop(same);
    for adopted in [raw, fortran] {
        assert_eq!((adopted.rank(), adopted.size()), (rank, size));
        adopted.barrier()?;
    }
    Ok(())
}

fn nothing_leaks(mpi: &Mpi, world: &Comm) -> Result<()> {
    assert_eq!(mpi.live(), Live::default());
    for _ in 0..20 {
        let own = world.duplicate()?;
        let node = own.split_node()?;
        let window = ferrier_mpi::Window::allocate(&node, 100)?;
        assert_eq!(mpi.live(), Live { communicators: 2, windows: 1, requests: 0 });
        drop(window);
    }
    assert_eq!(mpi.live(), Live::default());
    Ok(())
}

fn end(mpi: Mpi, world: Comm, line: &str) {
    let refused = mpi.clone().finalize();
    assert!(matches!(refused, Err(Error::InUse(_))), "{refused:?}");
    let rank = world.rank();
    let found = mpi.found().clone();
    drop(world);
    mpi.finalize().expect("finalize");
    assert_eq!(Mpi::load(found, Level::Funneled).err(), Some(Error::Finalized));
    if rank == 0 {
        println!("{line}");
    }
}

/// A number that depends on all of its arguments.
fn value(from: usize, to: usize, index: usize) -> u8 {
    (from * 101 + to * 37 + index * 7 + index / 251) as u8
}
