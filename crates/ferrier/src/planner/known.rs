//! Where a choice was known from.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The wisdom that a plan's choice was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The file.
    pub file: PathBuf,
    /// The name of the entry; see [`Entry::id`](crate::wisdom::Entry::id).
    pub id: String,
    /// When it was learned, in seconds since 1970.
    pub found: u64,
}

impl Known {
    /// How old it is, in seconds.
    pub fn age(&self) -> u64 {
        now().saturating_sub(self.found)
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
