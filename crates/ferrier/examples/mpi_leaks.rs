//! Under `mpiexec`: plans made and dropped again and again leave nothing
//! behind, be it communicators, windows, requests, shared memory or open files.
//! `mpiexec -n 2 target/debug/examples/mpi_leaks [TIMES]`.

use std::fs;
use std::process::ExitCode;

use ferrier::exchange::EXCHANGES;
use ferrier::{Choice, Comm, Planner, Problem, Result};
use ferrier_mpi::{Level, Live, Mpi};

/// What a process holds that a leak would add to.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    live: Live,
    files: usize,
    /// Mappings of shared memory.
    shared: usize,
}

impl Resources {
    fn now(mpi: &Mpi) -> Resources {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Resources {
            live: mpi.live(),
            files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            shared: maps
                .lines()
                .filter(|line| line.split(' ').nth(1).is_some_and(|p| p.ends_with('s')))
                .count(),
        }
    }
}

/// Unused shared memory is freed when the next plan is made, so a bounded number of regions may remain.
const LAZY: usize = 6;

/// One plan, used once.
fn plan(comm: &Comm, exchange: &str) -> Result<()> {
    let choice = Choice::new().exchange(exchange);
    let problem = Problem::c2c([6, 5, 4]);
    let mut plan = Planner::new(&problem).choice(choice).draft::<f64>(comm)?.build()?;
    let input = plan.make_input()?;
    let mut output = plan.make_output()?;
    plan.forward(&input, &mut output)
}

fn run(times: usize) -> Result<bool> {
    let Some(mpi) = Mpi::init(Level::Funneled).map_err(ferrier::Error::other)? else {
        println!("mpi_leaks: not started by mpiexec, nothing to do");
        return Ok(true);
    };
    let comm = ferrier::mpi::adopt(mpi.world().map_err(ferrier::Error::other)?)?;
    let mut clean = true;
    for exchange in EXCHANGES.iter().map(|member| member.name) {
        if exchange == "direct" && comm.node_count() > 1 {
            continue;
        }
        // What MPI and we keep for good (a spare table, a shared page) comes with the first ones.
        (0..3).try_for_each(|_| plan(&comm, exchange))?;
        let before = Resources::now(&mpi);
        (0..times).try_for_each(|_| plan(&comm, exchange))?;
        let after = Resources::now(&mpi);
        if after.live != before.live || after.files > before.files || after.shared > before.shared + LAZY {
            println!("mpi_leaks: rank {}: {exchange}: before {before:?}, after {after:?}", comm.rank());
            clean = false;
        }
    }
    let clean = comm.max(&[if clean { 0.0 } else { 1.0 }])?[0] == 0.0;
    let (rank, size) = (comm.rank(), comm.size());
    drop(comm);
    // Without a communicator nothing is left of what was ever made.
    let left = mpi.live();
    if left != Live::default() {
        println!("mpi_leaks: rank {rank}: {left:?} at the end");
    }
    let clean = clean && left == Live::default();
    if rank == 0 {
        let verdict = if clean { "ok" } else { "FAILED" };
        println!("mpi_leaks {verdict}: {times} plans with each exchange on {size} ranks");
    }
    Ok(clean)
}

fn main() -> ExitCode {
    let times = std::env::args().nth(1).map_or(100, |times| times.parse().expect("TIMES is a number"));
    match run(times) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mpi_leaks: FAILED: {error}");
            // Not `return`: the others may wait for this rank, and so would the end of MPI.
            std::process::exit(1)
        }
    }
}
