//! The processes of an MPI launch. The library is found and loaded at run time.

use std::time::Duration;

use ferrier::Comm;
use ferrier_bench::peers::MpiLaunch;
use ferrier_mpi::{Error, Mpi, find};

use crate::failure::{BAD_INPUT, Failure, Outcome, fail};

/// Variables of launchers with the rank of a process, and its rank on its host.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
const LOCAL: [&str; 4] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];

/// Variables of launchers with the number of processes.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Delay before a process exits whose failure another one prints: launchers end all processes
/// when one exits with a failure.
const EXIT_DELAY: Duration = Duration::from_secs(1);

/// All processes of this launch.
pub struct Launched {
    comm: Comm,
    world: ferrier_mpi::Comm,
    mpi: Mpi,
}

impl Launched {
    /// Joins the other processes; `None` if no launcher started this process, or with
    /// `FERRIER_MPI=off`. Collective.
    ///
    /// # Errors
    /// The library is not found or does not start. The processes cannot communicate then, so
    /// the first process of every host returns the error and the others exit.
    pub fn start() -> Outcome<Option<Launched>> {
        let started = Launched::join();
        if started.is_err() && number(&LOCAL).or(number(&RANKS)).unwrap_or(0) > 0 {
            std::thread::sleep(EXIT_DELAY);
            std::process::exit(i32::from(BAD_INPUT));
        }
        started
    }

    fn join() -> Outcome<Option<Launched>> {
        let wrapped = |error| Failure::new(one_line(&error));
        let Some(found) = find().map_err(wrapped)? else { return Ok(None) };
        let mpi = Mpi::load(found, ferrier::mpi::level()?).map_err(wrapped)?;
        let world = mpi.world().map_err(wrapped)?;
        // With another launcher's library every process would be a run of one rank.
        if let Some(size) = number(&SIZES).filter(|&size| size > 1 && world.size() == 1) {
            return fail(format!(
                "started by an MPI launcher as one of {size} processes, but {} ({}) sees only this one: it belongs to \
                 another launcher; set FERRIER_MPI to the right library, or to `off` to run without MPI",
                mpi.found().path.display(),
                mpi.found().why
            ));
        }
        let comm = ferrier::mpi::adopt(world.clone())?;
        Ok(Some(Launched { comm, world, mpi }))
    }

    /// All processes of the launch.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// The library and the communicator, for peers.
    pub fn for_peers(&self) -> MpiLaunch<'_> {
        MpiLaunch { library: &self.mpi.found().path, world: &self.world }
    }

    /// The library.
    pub fn mpi(&self) -> &Mpi {
        &self.mpi
    }

    /// Ends all processes with this code.
    pub fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }
}

/// The first of these variables that is set to a number.
fn number(names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// The error with the searched files on one line.
fn one_line(error: &Error) -> String {
    error.to_string().replace("Searched:\n  ", "Searched: ").replace("\n  ", ", ")
}
