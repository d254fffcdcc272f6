//! Libraries that are linked to an MPI.
//!
//! Such a library is linked to one MPI. In a process that uses another one, its calls would go to the wrong library, so
//! its dependencies are read before it is opened.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::launch::MpiLaunch;
use crate::failure::{Failure, Outcome, fail};

/// File names of MPI libraries in the list of needed libraries.
const MPI_NAMES: [&str; 4] = ["libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"];

/// The symbol that Ferrier's drop-in for heFFTe exports, as a name in the file.
pub const OWN: &str = "ferrier_heffte_drop_in";

/// A communicator: a pointer, or an integer in the low half of a register.
pub type RawComm = usize;

/// Folders that may contain the library.
fn folders(mpi: &Path) -> Vec<PathBuf> {
    let listed = env::var_os("LD_LIBRARY_PATH");
    let mut folders: Vec<PathBuf> =
        listed.iter().flat_map(env::split_paths).filter(|folder| folder.is_absolute()).collect();
    folders.extend(mpi.parent().map(Path::to_path_buf));
    let arch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    folders.extend([arch.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    folders
}

/// The file of the library that is linked to the MPI in use.
///
/// # Errors
/// It is not there, is Ferrier's own, or is linked to another MPI.
pub fn find(peer: &str, name: &str, package: &str, launch: &MpiLaunch<'_>) -> Outcome<PathBuf> {
    let in_use = launch.library;
    let folders = folders(in_use);
    let Some(path) = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()) else {
        let list: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return fail(format!("peer {peer} was not found ({package}): no {name} in {}", list.join(", ")));
    };
    let bytes = fs::read(&path)
        .map_err(|error| Failure::new(format!("peer {peer}: cannot read {}: {error}", path.display())))?;
    let holds = |name: &str| {
        let wanted = [name.as_bytes(), b"\0"].concat();
        bytes.windows(wanted.len()).any(|window| window == wanted)
    };
    if holds(OWN) {
        return fail(format!(
            "peer {peer}: {} is Ferrier's own drop-in library: nothing to compare with",
            path.display()
        ));
    }
    let linked: Vec<_> = MPI_NAMES.into_iter().filter(|name| holds(name)).collect();
    let own = in_use.file_name().unwrap_or_default().to_string_lossy();
    if linked.iter().any(|&name| name == own) {
        return Ok(path);
    }
    fail(format!(
        "peer {peer}: {} is linked to {}, but the MPI in use is {}: launch with the MPI it was built for",
        path.display(),
        if linked.is_empty() { "no known MPI".into() } else { linked.join(", ") },
        in_use.display()
    ))
}
