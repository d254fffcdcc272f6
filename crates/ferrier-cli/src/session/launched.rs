//! The processes of a launch: MPI, found and loaded at run time.

use std::time::Duration;

use ferrier::Comm;
use ferrier_mpi::{Error, Found, Mpi, Surroundings, find, find_in};
use serde::Serialize;

use crate::failure::{Failure, Outcome, fail};

/// What launchers call the number of a process, and its number on its host.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
const LOCAL: [&str; 4] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];

/// What they call the number of all processes.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// How long a process that leaves the word to another stays, since launchers
/// end all when the first leaves with a failure.
const TIME_TO_TELL: Duration = Duration::from_secs(1);

/// All processes of this launch.
pub struct Launched {
    comm: Comm,
    world: ferrier_mpi::Comm,
    mpi: Mpi,
}

impl Launched {
    /// Joins the others; `None` where no launcher started this process, or
    /// `FERRIER_MPI=off`. Collective.
    ///
    /// # Errors
    /// The library is not found or does not start. Nobody can be asked who
    /// tells: then the first process of every host does, the others exit.
    pub fn start() -> Outcome<Option<Launched>> {
        let started = Launched::join();
        if started.is_err() && number(&LOCAL).or(number(&RANKS)).unwrap_or(0) > 0 {
            std::thread::sleep(TIME_TO_TELL);
            std::process::exit(i32::from(crate::failure::BAD_INPUT));
        }
        started
    }

    fn join() -> Outcome<Option<Launched>> {
        let wrapped = |error| Failure::new(one_line(&error));
        let Some(found) = find().map_err(wrapped)? else { return Ok(None) };
        let mpi = Mpi::load(found, ferrier::mpi::level()?).map_err(wrapped)?;
        let world = mpi.world().map_err(wrapped)?;
        // Another launcher's library starts all the same: as many runs of one rank.
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

    /// The same, as the crate below knows it.
    pub fn world(&self) -> &ferrier_mpi::Comm {
        &self.world
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

/// The error, with the places that were searched in a row and not in a column.
fn one_line(error: &Error) -> String {
    error.to_string().replace("Searched:\n  ", "Searched: ").replace("\n  ", ", ")
}

/// Text with single blanks: some libraries put tabs into theirs.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What `ferrier info` says about MPI.
#[derive(Serialize)]
pub struct About {
    /// The library that is in use or would be; none without one.
    library: Option<String>,
    /// Which binary interface it speaks.
    abi: Option<&'static str>,
    /// In its own words; only where it is in use.
    version: Option<String>,
    /// Of the standard.
    standard: Option<String>,
    /// Where it is in use: processes, and the host of each.
    ranks: Option<usize>,
    hosts: Option<Vec<String>>,
    /// Whether ranks can put into each other's memory; exchange `ring` makes do without.
    windows: Option<bool>,
    /// Whether messages may lie in the memory of a GPU; elsewhere they are staged in main memory.
    gpus: Option<bool>,
    /// Why this one, or why none.
    why: String,
}

impl About {
    /// Asks MPI, or says which would be found. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn of(launched: Option<&Launched>) -> Outcome<About> {
        match launched {
            Some(launched) => About::in_use(launched),
            None => Ok(About::would_be()),
        }
    }

    fn found(found: &Found, why: String) -> About {
        About {
            library: Some(found.path.display().to_string()),
            abi: Some(found.family.name()),
            version: None,
            standard: None,
            ranks: None,
            hosts: None,
            windows: None,
            gpus: None,
            why,
        }
    }

    fn in_use(launched: &Launched) -> Outcome<About> {
        let Launched { mpi, comm, .. } = launched;
        let wrapped = |error: Error| Failure::new(error);
        let (major, minor) = mpi.version().map_err(wrapped)?;
        Ok(About {
            version: Some(words(&mpi.library_version().map_err(wrapped)?)),
            standard: Some(format!("{major}.{minor}")),
            ranks: Some(comm.size()),
            hosts: Some(crate::setup::hosts(comm)?),
            windows: Some(comm.has_windows()?),
            gpus: Some(mpi.reaches_gpus()),
            ..About::found(mpi.found(), mpi.found().why.clone())
        })
    }

    /// Which library a launch with the `mpiexec` in PATH would find.
    fn would_be() -> About {
        let none = |why: String| About {
            library: None,
            abi: None,
            version: None,
            standard: None,
            ranks: None,
            hosts: None,
            windows: None,
            gpus: None,
            why,
        };
        if std::env::var("FERRIER_MPI").is_ok_and(|value| !value.is_empty()) {
            return none("FERRIER_MPI turns it off".into());
        }
        let launcher = std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path)
                .flat_map(|folder| ["mpiexec", "mpirun"].map(|name| folder.join(name)))
                .find(|path| path.is_file())
        });
        let Some(launcher) = launcher else {
            return none("not started by a launcher, and there is no mpiexec in PATH".into());
        };
        let mut around = Surroundings::here();
        around.ancestors = vec![launcher.canonicalize().unwrap_or_else(|_| launcher.clone())];
        // Says that there is a launcher, and nothing of whose it is.
        around.variables.push(("PMIX_RANK".into(), "0".into()));
        match find_in(&around) {
            Ok(Some(found)) => {
                let why = format!("not in use; {} would find it", launcher.display());
                About::found(&found, why)
            }
            Ok(None) => none("not started by a launcher".into()),
            Err(_) => none(format!("no library was found beside {} or in the system", launcher.display())),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let Some(library) = &self.library else { return format!("none: {}", self.why) };
        let mut text = library.clone();
        if let Some(abi) = self.abi {
            text += &format!(" (speaks {abi})");
        }
        if let (Some(version), Some(standard)) = (&self.version, &self.standard) {
            text += &format!("\n{version}, MPI {standard}");
        }
        text += &format!("\n{}", self.why);
        if let (Some(ranks), Some(hosts)) = (self.ranks, &self.hosts) {
            let mut names = hosts.clone();
            names.dedup();
            text += &format!("\n{ranks} ranks on {}", names.join(", "));
        }
        if self.windows == Some(false) {
            text += "\nit makes no windows between these ranks: exchange ring goes by two-sided messages";
        }
        if self.gpus == Some(true) {
            text += "\nit takes pointers into GPUs' memory: exchange point_to_point stages nothing";
        }
        text
    }
}
