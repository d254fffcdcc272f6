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
    /// Starts these puts. A lane (the window has a fixed number) has one such call in flight at a time.
    ///
    /// # Safety
    /// The bytes live and do not change until [`puts_complete`](Window::puts_complete) returns true or an error.
    unsafe fn put(&self, lane: usize, puts: &[Put]) -> Result<()>;
    /// Whether the puts of a lane have arrived.
    fn puts_complete(&self, lane: usize) -> Result<bool>;
    /// When the next call of `puts_complete` is worthwhile.
    fn wake_hint(&self, lane: usize) -> WakeHint;
    /// Sets a word of another rank. Puts that are complete are visible before it.
    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()>;
    /// A word of this rank.
    fn word(&self, word: usize) -> u64;
    /// Copies bytes out of this rank's memory.
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<()>;
    /// Makes progress; an error where the group has failed, or a rank has left for which `awaited` is true.
    fn check(&self, awaited: &dyn Fn(usize) -> bool) -> Result<()>;
}
