//! Where libraries are, and which binary interface they have.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::launcher::Launcher;
use super::surroundings::Surroundings;
use crate::abi::Family;
use crate::searched::Searched;

/// Folders below a prefix that may hold a library.
const BELOW: [&str; 10] = [
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib/openmpi/lib",
    "lib64/openmpi/lib",
    "lib64/mpich/lib",
    "lib/release",
    "lib/x86_64-linux-gnu/openmpi/lib",
    "lib/aarch64-linux-gnu/openmpi/lib",
];

/// Names, the best first. `libmpi.so` can be of any family: the file is inspected.
const NAMES: [&str; 7] = [
    "libmpi_abi.so.1",
    "libmpi_abi.so",
    "libmpich.so.12",
    "libmpi.so.12",
    "libmpi.so.40",
    "libmpich.so",
    "libmpi.so",
];

pub(super) fn system_folders() -> Vec<PathBuf> {
    ["/usr/local", "/usr"]
        .iter()
        .flat_map(|prefix| BELOW.iter().map(move |below| Path::new(prefix).join(below)))
        .collect()
}

/// Folders to search and why, in order, each once.
pub(super) fn folders(around: &Surroundings, launcher: &Launcher) -> Vec<(PathBuf, String)> {
    let mut folders: Vec<(PathBuf, String)> = Vec::new();
    let mut add = |folder: PathBuf, why: &str| {
        if !folders.iter().any(|(known, _)| *known == folder) {
            folders.push((folder, why.to_owned()));
        }
    };
    let mut prefix = |prefix: &Path, why: &str| BELOW.iter().for_each(|below| add(prefix.join(below), why));

    let opal = around.get("OPAL_PREFIX").filter(|_| launcher.family == Some(Family::OpenMpi));
    if let Some(value) = opal {
        prefix(Path::new(value), "from OPAL_PREFIX");
    }
    if let Some(root) = launcher.executable.as_deref().and_then(Path::parent).and_then(Path::parent) {
        prefix(root, "beside the launcher");
    }
    for name in ["MPI_HOME", "MPI_ROOT", "MPICH_DIR", "I_MPI_ROOT"] {
        if let Some(value) = around.get(name) {
            prefix(Path::new(value), &format!("from {name}"));
        }
    }
    if let Some(value) = around.get("LD_LIBRARY_PATH") {
        for folder in std::env::split_paths(value).filter(|folder| folder.is_absolute()) {
            add(folder, "in LD_LIBRARY_PATH");
        }
    }
    let mut prefix = |prefix: &Path, why: &str| BELOW.iter().for_each(|below| add(prefix.join(below), why));
    if let Some(value) = around.get("PATH") {
        for folder in std::env::split_paths(value) {
            let launcher =
                ["mpiexec", "mpirun"].iter().find_map(|name| folder.join(name).canonicalize().ok());
            if let Some(root) = launcher.as_deref().and_then(Path::parent).and_then(Path::parent) {
                prefix(root, "beside an mpiexec in PATH");
            }
        }
    }
    around.system.iter().for_each(|folder| add(folder.clone(), "a system folder"));
    folders
}

/// The best library in `folder` that the family's launcher can start.
pub(super) fn in_folder(
    folder: &Path,
    reason: &str,
    wanted: Option<Family>,
    searched: &mut Vec<Searched>,
) -> Option<(PathBuf, Family)> {
    let mut note = |place: PathBuf, what: String| searched.push(Searched { place, what });
    if !folder.is_dir() {
        note(folder.to_owned(), format!("{reason}; no such folder"));
        return None;
    }
    let mut any = false;
    for name in NAMES {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        any = true;
        match family_of_file(&path) {
            Ok(family) if serves(family, wanted) => return Some((path, family)),
            Ok(family) => note(path, format!("{reason}; this is {}", family.name())),
            Err(why) => note(path, format!("{reason}; {why}")),
        }
    }
    if !any {
        note(folder.to_owned(), format!("{reason}; no MPI library in it"));
    }
    None
}

/// MPICH's launchers start libraries of the standard ABI as well.
fn serves(family: Family, wanted: Option<Family>) -> bool {
    match wanted {
        None => true,
        Some(Family::OpenMpi) => family != Family::Mpich,
        Some(_) => family != Family::OpenMpi,
    }
}

/// The family of a library, if its name tells.
pub(super) fn family_of_name(name: &str) -> Option<Family> {
    if name.starts_with("libmpi_abi.so") {
        Some(Family::Standard)
    } else if name.starts_with("libmpich.so") || name == "libmpi.so.12" || name.starts_with("libmpi.so.12.") {
        Some(Family::Mpich)
    } else if name == "libmpi.so.40" || name.starts_with("libmpi.so.40.") {
        Some(Family::OpenMpi)
    } else {
        None
    }
}

/// The family of a library, by its name, else by the names in its symbol table.
/// Loads nothing: a wrong MPI could not be unloaded again.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn family_of_file(path: &Path) -> Result<Family, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let mut file = fs::File::open(&path).map_err(|error| error.to_string())?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        return Err("not a shared library (a linker script?)".into());
    }
    if let Some(family) = path.file_name().and_then(|name| family_of_name(name.to_str()?)) {
        return Ok(family);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let holds = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    if holds(b"ompi_mpi_comm_world\0") {
        Ok(Family::OpenMpi)
    } else if !holds(b"MPI_Init_thread\0") {
        Err("not an MPI library".into())
    } else if holds(b"libmpi_abi.so") {
        Ok(Family::Standard)
    } else {
        Ok(Family::Mpich)
    }
}
