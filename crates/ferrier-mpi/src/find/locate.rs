//! The search itself.

use std::ffi::OsString;
use std::path::PathBuf;

use super::surroundings::Surroundings;
use super::{launcher, search};
use crate::abi::Family;
use crate::error::{Error, Result};
use crate::searched::Searched;

/// The library that was found, why, and the places searched before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The library; a bare name where the system's loader is to look for it.
    pub path: PathBuf,
    /// Its binary interface.
    pub family: Family,
    /// One line for users: the launcher, and why this place was searched.
    pub why: String,
    /// Places that were searched first, and why they were rejected.
    pub searched: Vec<Searched>,
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
        // For the system's loader; only the name tells the binary interface.
        let family = search::family_of_name(&text)
            .ok_or_else(|| wrong("not a path, nor the name of a known MPI library".into()))?;
        return Ok(Some(Found { path, family, why, searched }));
    }
    match search::family_of_file(&path) {
        Ok(family) => Ok(Some(Found { path, family, why, searched })),
        Err(reason) => Err(wrong(reason)),
    }
}
