//! Random redistributions and ghost cells under `mpiexec`, checked against plain indexing: every element size and
//! exchange, arrays of the plan (in shared memory) and of the user.
//!
//! ```text
//! mpiexec -n 4 target/debug/examples/mpi_copies [CASES]
//! ```
//!
//! With `fail` or `panic` in place of the number, rank 1 fails while ghost cells are in flight: the job must end, and not
//! well. `FERRIER_SHARED_LIMIT=0` leaves no memory to share: messages are used then.

#[path = "../tests/copies/scenario.rs"]
mod scenario;

use std::process::ExitCode;

use ferrier::{Comm, Fault, Ghosts, Halo, LayoutSpec, Result};
use ferrier_test::watchdog;
use scenario::Scenario;

fn check(comm: &Comm, cases: u64) -> Result<()> {
    for case in 0..cases {
        let scenario = Scenario::new(183_000 + case, comm);
        // Without memory to share, an exchange that was named and needs it is an error.
        if std::env::var_os("FERRIER_SHARED_LIMIT").is_some() && scenario.shares_by_name() {
            continue;
        }
        scenario.redistribute(comm)?;
        scenario.fill_ghosts(comm)?;
        scenario.sum_ghosts(comm)?;
    }
    Ok(())
}

/// Rank 1 fails between start and finish.
fn fail(comm: &Comm, fault: Fault) -> Result<()> {
    let mut halo =
        Halo::<f64>::new(comm, [12; 3], &LayoutSpec::bricks(), &Ghosts::width(1).periodic([true; 3]))?;
    let mut field = halo.make_field()?;
    halo.exchange([&mut field])?;
    if comm.rank() == 1 % comm.size() {
        halo.inject_fault(fault);
    }
    halo.start([&mut field])?.finish()?;
    halo.exchange([&mut field])
}

fn main() -> ExitCode {
    let _watchdog = watchdog(300);
    let argument = std::env::args().nth(1).unwrap_or("100".into());
    let outcome = (|| -> Result<()> {
        let Some(comm) = ferrier::mpi::world()? else {
            println!("mpi_copies: not started by mpiexec, nothing to do");
            return Ok(());
        };
        match argument.as_str() {
            "fail" => fail(&comm, Fault::Error)?,
            "panic" => fail(&comm, Fault::Panic)?,
            cases => {
                let cases = cases.parse().unwrap_or_else(|_| panic!("a number of cases, not `{cases}`"));
                check(&comm, cases)?;
                if comm.rank() == 0 {
                    println!(
                        "mpi_copies ok: {cases} cases on {} ranks of {} nodes",
                        comm.size(),
                        comm.node_count()
                    );
                }
            }
        }
        Ok(())
    })();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mpi_copies: FAILED: {error}");
            // Not `return`: the others may wait for this rank, and so would the end of MPI.
            std::process::exit(1)
        }
    }
}
