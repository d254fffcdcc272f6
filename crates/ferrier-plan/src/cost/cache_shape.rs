//! The shape of a cache.

use serde::{Deserialize, Serialize};

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CacheShape {
    /// Its size in bytes.
    pub bytes: usize,
    /// Associativity (ways).
    pub ways: usize,
    /// Cores that share it.
    pub cores: usize,
}

impl CacheShape {
    /// A cache of so many bytes and ways, shared by so many cores.
    pub fn new(bytes: usize, ways: usize, cores: usize) -> Self {
        CacheShape { bytes, ways: ways.max(1), cores: cores.max(1) }
    }

    /// Number of sets of cache lines.
    pub fn sets(&self) -> usize {
        (self.bytes / 64 / self.ways.max(1)).max(1)
    }
}
