//! MPI as `ferrier info` reports it.

use ferrier::Comm;
use ferrier_mpi::{Error, Found, Surroundings, find_in};
use serde::Serialize;

use super::launched::Launched;
use crate::failure::{Failure, Outcome};

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
        let (mpi, comm) = (launched.mpi(), launched.comm());
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
fn hosts(comm: &Comm) -> ferrier::Result<Vec<String>> {
    let mut name = [0_u8; 256];
    // SAFETY: the call writes at most `name.len() - 1` bytes, so the last one stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let all = comm.all_gather(&name[..end])?;
    Ok(all.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
