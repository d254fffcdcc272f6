//! The launcher of this process.

use std::fs;
use std::path::{Path, PathBuf};

use super::surroundings::Surroundings;
use crate::abi::Family;

/// A launcher, as far as it can be determined.
pub(super) struct Launcher {
    /// For users.
    pub name: String,
    /// The library family it needs, where known.
    pub family: Option<Family>,
    /// Its executable, where a parent process is one.
    pub executable: Option<PathBuf>,
}

/// How many generations of parent processes are inspected. Launchers are within
/// two (a proxy and the shell of a wrapper script); a few more cost nothing.
const GENERATIONS: usize = 8;

/// Executables of the parents of this process, the nearest first. Those that
/// cannot be read (another user's) are left out.
pub(super) fn ancestors() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut process = std::os::unix::process::parent_id();
    for _ in 0..GENERATIONS {
        if process <= 1 {
            break;
        }
        if let Ok(path) = fs::read_link(format!("/proc/{process}/exe")) {
            found.push(path);
        }
        let Some(parent) = parent_of(process) else { break };
        process = parent;
    }
    found
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // "pid (name) state parent ...": the name may contain anything, parentheses too.
    let after = &stat[stat.rfind(')')? + 1..];
    after.split_whitespace().nth(1)?.parse().ok()
}

/// What an executable of this name starts, if it is a launcher.
fn launches(executable: &Path) -> Option<Option<Family>> {
    let name = executable.file_name()?.to_str()?;
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    match name {
        "orterun" | "orted" | "prterun" | "prte" | "prted" => Some(Some(Family::OpenMpi)),
        "hydra_pmi_proxy" | "hydra_bstrap_proxy" => Some(Some(Family::Mpich)),
        "srun" | "slurmstepd" => Some(None),
        _ if name.contains("openmpi") && is_mpiexec(name) => Some(Some(Family::OpenMpi)),
        _ if (name.contains("hydra") || name.contains("mpich") || name.contains("gforker"))
            && is_mpiexec(name) =>
        {
            Some(Some(Family::Mpich))
        }
        _ if is_mpiexec(name) => Some(None),
        _ => None,
    }
}

fn is_mpiexec(name: &str) -> bool {
    name.starts_with("mpiexec") || name.starts_with("mpirun")
}

/// The launcher of this process, if there is one. Variables decide whether; the
/// nearest parent that is a launcher decides which, since a process under an
/// inner launcher inherits the variables of an outer one.
pub(super) fn launcher(around: &Surroundings) -> Option<Launcher> {
    let open_mpi = around.get("OMPI_COMM_WORLD_SIZE").is_some() || around.get("PRTE_LAUNCHED").is_some();
    let pmi = ["PMI_RANK", "PMI_FD", "PMI_PORT", "PMI_ID"].iter().any(|name| around.get(name).is_some());
    let pmix = around.get("PMIX_RANK").is_some();
    let slurm = (around.get("SLURM_STEP_ID").is_some() || around.get("SLURM_STEPID").is_some())
        && around.number("SLURM_STEP_NUM_TASKS").or(around.number("SLURM_NTASKS")).unwrap_or(1) > 1;
    if !(open_mpi || pmi || pmix || slurm) {
        return None;
    }
    let by_variables = match (open_mpi, pmi, pmix) {
        (true, false, _) => Some(Family::OpenMpi),
        (false, true, false) => Some(Family::Mpich),
        _ => None,
    };
    let parent = around.ancestors.iter().find_map(|path| Some((path, launches(path)?)));
    let in_slurm = around.get("SLURM_JOB_ID").is_some() && !open_mpi;
    Some(match parent {
        // Slurm and renamed launchers start any family: only the variables can tell.
        Some((path, family)) => Launcher {
            name: path.display().to_string(),
            family: family.or(if in_slurm { None } else { by_variables }),
            executable: Some(path.clone()),
        },
        None => Launcher {
            name: match by_variables {
                _ if slurm || in_slurm => "Slurm (SLURM_*)".into(),
                Some(Family::OpenMpi) => "Open MPI's mpiexec (OMPI_*)".into(),
                Some(_) => "a PMI launcher (PMI_*)".into(),
                None => "a PMIx launcher (PMIX_*)".into(),
            },
            // PMI under Slurm may be of any family; elsewhere it is MPICH's.
            family: if in_slurm { None } else { by_variables },
            executable: None,
        },
    })
}
