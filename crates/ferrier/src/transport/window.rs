//! One-sided communication.

use super::transfer::WakeHint;
use crate::Result;

/// Bytes for a rank, and where in its window they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    /// The target rank.
    pub peer: usize,
    /// Offset in its window.
    pub offset: usize,
    /// The bytes.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

/// Memory on every rank that other ranks put bytes into without its help, and signal words that they set to tell
/// it. All are zero at first.
pub(crate) trait Window: Send + Sync {
    /// Starts a put. A slot (the window has a fixed number) has one in flight at a time.
    ///
    /// # Safety
    /// The bytes live and do not change until [`has_arrived`](Window::has_arrived) returns true or an error.
    unsafe fn put(&self, slot: usize, put: &Put) -> Result<()>;
    /// Whether the put of a slot has arrived.
    fn has_arrived(&self, slot: usize) -> Result<bool>;
    /// When the next call of `has_arrived` is worthwhile.
    fn wake_hint(&self, slot: usize) -> WakeHint;
    /// Sets a word of another rank. Puts that have arrived are visible before it.
    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()>;
    /// A word of this rank.
    fn word(&self, word: usize) -> u64;
    /// The address of bytes of this rank's memory.
    fn bytes(&self, offset: usize, len: usize) -> Result<*mut u8>;
    /// Makes progress; an error where the group has failed, or a rank has left for which `awaited` is true.
    fn check(&self, awaited: &dyn Fn(usize) -> bool) -> Result<()>;
}
