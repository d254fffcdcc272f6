//! References to entries of wisdom.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The entry of a wisdom file that a choice was taken from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryRef {
    /// The file.
    pub file: PathBuf,
    /// The identifier of the entry; see [`Entry::id`](crate::wisdom::Entry::id).
    pub id: String,
    /// Time of the entry, in seconds since 1970.
    pub found: u64,
}

impl EntryRef {
    /// The age of the entry, in seconds.
    pub fn age(&self) -> u64 {
        now().saturating_sub(self.found)
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
