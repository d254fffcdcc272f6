//! The environment of a process, as the search sees it.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the search depends on: the environment and the parent processes.
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
    pub(super) fn get(&self, name: &str) -> Option<&OsString> {
        self.variables.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.to_str()?.trim().parse().ok()
    }
}
