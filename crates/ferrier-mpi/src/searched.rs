//! Records of the search for a library.

use std::fmt;
use std::path::PathBuf;

/// A place that was searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// A file or a folder.
    pub place: PathBuf,
    /// Why it was searched, and what was found there.
    pub what: String,
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.place.display(), self.what)
    }
}
