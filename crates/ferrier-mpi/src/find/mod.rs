//! Finding the MPI library that belongs to the launcher of this process.
//!
//! Launchers leave variables that say *that* they started a process, but
//! often not *which* library they belong to: both generations of MPICH set
//! `PMI_*` only, both generations of Open MPI are `libmpi.so.40`. So the place
//! of the launcher itself decides: `OPAL_PREFIX` where it is set, else the
//! executables of the parent processes, then `PATH`, `LD_LIBRARY_PATH` and
//! the system's folders.

mod launcher;
mod search;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::abi::Family;
use crate::error::{Error, Result};

/// The library that was found, why this one, and where was looked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The library; a bare name where the system's loader is to look for it.
    pub path: PathBuf,
    /// Which binary interface it speaks.
    pub family: Family,
    /// One line for people: who started us, and what led here.
    pub why: String,
    /// Places that were looked at first, and what was wrong with them.
    pub searched: Vec<Searched>,
}

/// A place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// A file or a folder.
    pub place: PathBuf,
    /// Why it was looked at, and what was found there.
    pub what: String,
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.place.display(), self.what)
    }
}

/// What the search looks at: the environment and the parent processes.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Environment variables.
    pub variables: Vec<(String, OsString)>,
    /// Executables of the parent process, its parent, and so on.
    pub ancestors: Vec<PathBuf>,
    /// Folders of libraries that every program searches.
    pub system: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Surroundings {
        Surroundings {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            ancestors: launcher::ancestors(),
            system: search::system_folders(),
        }
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.variables.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.to_str()?.trim().parse().ok()
    }
}

/// Finds the library for this process: `None` where no launcher started it
/// and none is asked for, or where `FERRIER_MPI=off`. Loads nothing.
///
/// # Errors
/// [`Error::NotFound`] under a launcher whose library cannot be found,
/// [`Error::Override`] where `FERRIER_MPI` names no library.
pub fn find() -> Result<Option<Found>> {
    find_in(&Surroundings::here())
}

/// [`find`] with given surroundings.
///
/// # Errors
/// As [`find`].
pub fn find_in(around: &Surroundings) -> Result<Option<Found>> {
    if let Some(value) = around.get("FERRIER_MPI") {
        return overridden(value);
    }
    let Some(launcher) = launcher::launcher(around) else { return Ok(None) };
    let mut searched = Vec::new();
    for (folder, reason) in search::folders(around, &launcher) {
        if let Some((path, family)) = search::in_folder(&folder, &reason, launcher.family, &mut searched) {
            let why = format!("started by {}; {reason}", launcher.name);
            return Ok(Some(Found { path, family, why, searched }));
        }
    }
    Err(Error::NotFound { launcher: launcher.name, searched })
}

fn overridden(value: &OsString) -> Result<Option<Found>> {
    let text = value.to_string_lossy().into_owned();
    if text.eq_ignore_ascii_case("off") || text == "0" {
        return Ok(None);
    }
    let wrong = |why: String| Error::Override { value: text.clone(), why };
    let path = PathBuf::from(value);
    let why = format!("FERRIER_MPI is {text}");
    let mut searched = Vec::new();
    if path.is_dir() {
        return match search::in_folder(&path, &why, None, &mut searched) {
            Some((path, family)) => Ok(Some(Found { path, family, why, searched })),
            None => Err(wrong("a folder without an MPI library".into())),
        };
    }
    if !text.contains('/') {
        // For the system's loader; what it speaks can be told from its name only.
        let family = search::family_of_name(&text)
            .ok_or_else(|| wrong("not a path, nor the name of a known MPI library".into()))?;
        return Ok(Some(Found { path, family, why, searched }));
    }
    match search::family_of_file(&path) {
        Ok(family) => Ok(Some(Found { path, family, why, searched })),
        Err(reason) => Err(wrong(reason)),
    }
}

#[cfg(test)]
mod tests;
