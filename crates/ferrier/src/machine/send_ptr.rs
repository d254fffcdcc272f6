//! Pointers for closures that run on several threads.

/// A pointer that can be sent to other threads. Each use states why its accesses are sound.
pub(crate) struct SendPtr<T>(pub *mut T);

impl<T> Clone for SendPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SendPtr<T> {}
// SAFETY: only the address is shared; accesses through it are unsafe and justified where they happen.
unsafe impl<T> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// The pointer; a method, so that closures capture the wrapper.
    pub fn get(self) -> *mut T {
        self.0
    }
}
