//! The processes of an MPI launch, and MPI as `ferrier info` reports it. The library is found and
//! loaded at run time.

use std::time::Duration;

use ferrier::Comm;
use ferrier_bench::peers::MpiLaunch;
use ferrier_mpi::{Error, Found, Mpi, Surroundings, find, find_in};
use serde::Serialize;

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

    /// The first processes of the launch, so many; `None` on the others. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn first_ranks(&self, count: usize) -> Outcome<Option<Launched>> {
        let wrapped = |error| Failure::new(one_line(&error));
        let rank = self.comm.rank();
        let Some(world) = self.world.split((rank < count).then_some(0), rank).map_err(wrapped)? else {
            return Ok(None);
        };
        let comm = ferrier::mpi::adopt(world.clone())?;
        Ok(Some(Launched { comm, world, mpi: self.mpi.clone() }))
    }

    /// All processes of the launch.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// The library and the communicator, for peers.
    pub fn for_peers(&self) -> MpiLaunch<'_> {
        MpiLaunch { library: &self.mpi.found().path, world: &self.world }
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

/// Text with single blanks; some libraries have tabs in theirs.
fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// MPI as `ferrier info` reports it; the keys are part of the contract.
#[derive(Default, Serialize)]
pub struct MpiInfo {
    /// The library that is in use or would be used.
    library: Option<String>,
    /// Its binary interface.
    abi: Option<&'static str>,
    /// Its version text, if it is in use.
    version: Option<String>,
    /// The version of the standard.
    standard: Option<String>,
    /// Number of processes and the host of each, if it is in use.
    ranks: Option<usize>,
    hosts: Option<Vec<String>>,
    /// Does it make windows, with which `ring` puts data into other ranks' memory?
    windows: Option<bool>,
    /// Does it send from the memory of GPUs? Otherwise messages are staged in main memory.
    gpus: Option<bool>,
    /// Why this library, or why none.
    why: String,
}

impl MpiInfo {
    /// The MPI in use, or else the one that would be found. Collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn of(launched: Option<&Launched>) -> Outcome<MpiInfo> {
        match launched {
            Some(launched) => MpiInfo::in_use(launched),
            None => Ok(MpiInfo::would_be()),
        }
    }

    fn found(found: &Found, why: String) -> MpiInfo {
        MpiInfo {
            library: Some(found.path.display().to_string()),
            abi: Some(found.family.name()),
            why,
            ..MpiInfo::default()
        }
    }

    fn in_use(launched: &Launched) -> Outcome<MpiInfo> {
        let Launched { mpi, comm, .. } = launched;
        let wrapped = |error: Error| Failure::new(error);
        let (major, minor) = mpi.version().map_err(wrapped)?;
        Ok(MpiInfo {
            version: Some(single_blanks(&mpi.library_version().map_err(wrapped)?)),
            standard: Some(format!("{major}.{minor}")),
            ranks: Some(comm.size()),
            hosts: Some(hosts(comm)?),
            windows: Some(comm.has_windows()?),
            gpus: Some(mpi.reaches_gpus()),
            ..MpiInfo::found(mpi.found(), mpi.found().why.clone())
        })
    }

    /// The library that a launch with the `mpiexec` in PATH would find.
    fn would_be() -> MpiInfo {
        let none = |why: String| MpiInfo { why, ..MpiInfo::default() };
        if std::env::var("FERRIER_MPI").is_ok_and(|value| !value.is_empty()) {
            return none("FERRIER_MPI disables it".into());
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
        // Stands for a launcher of an unknown MPI.
        around.variables.push(("PMIX_RANK".into(), "0".into()));
        match find_in(&around) {
            Ok(Some(found)) => {
                let why = format!("not in use; {} would find it", launcher.display());
                MpiInfo::found(&found, why)
            }
            Ok(None) => none("not started by a launcher".into()),
            Err(_) => none(format!("no library was found beside {} or in the system", launcher.display())),
        }
    }

    /// As text.
    pub fn text(&self) -> String {
        let Some(library) = &self.library else { return format!("none: {}", self.why) };
        let mut text = library.clone();
        if let Some(abi) = self.abi {
            text += &format!(" (ABI: {abi})");
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
            text += "\nno windows between these ranks: exchange ring uses two-sided messages";
        }
        if self.gpus == Some(true) {
            text += "\nGPU memory can be sent directly: exchange point_to_point stages nothing";
        }
        text
    }
}

/// The name of each rank's host. Collective.
///
/// # Errors
/// Those of MPI.
pub fn hosts(comm: &Comm) -> ferrier::Result<Vec<String>> {
    let mut name = [0_u8; 256];
    // SAFETY: the call writes at most `name.len() - 1` bytes, so the last one stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let all = comm.all_gather(&name[..end])?;
    Ok(all.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
