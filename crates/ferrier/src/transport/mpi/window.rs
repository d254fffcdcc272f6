//! Windows of MPI.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::mpi_error;
use super::node_shared::NodeShared;
use crate::transport::transfer::WakeHint;
use crate::transport::window::{Put, Window};
use crate::{Error, Result};

/// A window that is freed when all ranks have dropped theirs.
pub(super) struct MpiWindow {
    node_shared: Arc<NodeShared>,
    number: u64,
    comm: ferrier_mpi::Comm,
    /// Offset of the words of each rank: after its bytes.
    words: Vec<usize>,
    window: Mutex<Option<ferrier_mpi::Window>>,
}

impl MpiWindow {
    /// Collective over `comm`.
    pub fn new(
        node_shared: &Arc<NodeShared>,
        comm: &ferrier_mpi::Comm,
        bytes: usize,
        words: usize,
    ) -> Result<MpiWindow> {
        let own = bytes.next_multiple_of(64);
        let window = ferrier_mpi::Window::allocate(comm, own + words * 8).map_err(mpi_error)?;
        let words = (0..comm.size()).map(|rank| window.len(rank) - words * 8).collect();
        window.lock_all().map_err(mpi_error)?;
        let number = node_shared.number_window();
        let (node_shared, comm) = (node_shared.clone(), comm.clone());
        Ok(MpiWindow { node_shared, number, comm, words, window: Mutex::new(Some(window)) })
    }

    fn with<R>(&self, work: impl FnOnce(&ferrier_mpi::Window) -> ferrier_mpi::Result<R>) -> Result<R> {
        let guard: MutexGuard<'_, _> = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = guard.as_ref().ok_or_else(|| Error::transport("the window was freed"))?;
        work(window).map_err(mpi_error)
    }
}

impl Window for MpiWindow {
    unsafe fn put(&self, _lane: usize, puts: &[Put]) -> Result<()> {
        self.with(|window| {
            let begin = |put: &Put| {
                // SAFETY: by the contract of `put` the bytes live until `puts_complete`, which flushes.
                unsafe { window.begin_put(put.data, put.len, put.peer, put.offset) }
            };
            puts.iter().try_for_each(begin)
        })
    }

    /// MPI has no test for puts: waits for them. They had time until now.
    fn puts_complete(&self, _lane: usize) -> Result<bool> {
        self.with(ferrier_mpi::Window::flush_all).map(|()| true)
    }

    /// Not while the rank has other work.
    fn wake_hint(&self, _lane: usize) -> WakeHint {
        WakeHint::Nothing
    }

    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()> {
        self.with(|window| {
            window.put(&[value], peer, self.words[peer] + word * 8)?;
            window.flush(peer)
        })
    }

    fn word(&self, word: usize) -> u64 {
        // No error is possible: the word is inside the window, and aligned.
        self.with(|window| window.load(self.words[self.comm.rank()] + word * 8)).unwrap_or(0)
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        self.with(|window| window.read(offset, into))
    }

    fn check(&self, _awaited: &dyn Fn(usize) -> bool) -> Result<()> {
        self.with(ferrier_mpi::Window::sync)?;
        self.comm.progress().map_err(mpi_error)
    }
}

impl Drop for MpiWindow {
    fn drop(&mut self) {
        if let Some(window) = self.window.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            self.node_shared.defer_free(self.number, window);
        }
    }
}
