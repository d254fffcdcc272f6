//! Windows of MPI that ranks put into.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::node_shared::NodeShared;
use super::wrapped;
use crate::Result;
use crate::transport::{Put, WakeHint, Window};

/// A window whose freeing waits until all ranks have dropped theirs.
pub(super) struct Remote {
    house: Arc<NodeShared>,
    number: u64,
    comm: ferrier_mpi::Comm,
    /// Where the words of each rank begin: after its bytes.
    words: Vec<usize>,
    window: Mutex<Option<ferrier_mpi::Window>>,
}

impl Remote {
    /// Collective over `comm`.
    pub fn new(
        house: &Arc<NodeShared>,
        comm: &ferrier_mpi::Comm,
        bytes: usize,
        words: usize,
    ) -> Result<Remote> {
        let own = bytes.next_multiple_of(64);
        let window = ferrier_mpi::Window::allocate(comm, own + words * 8).map_err(wrapped)?;
        let starts = (0..comm.size()).map(|rank| window.len(rank) - words * 8).collect();
        window.lock_all().map_err(wrapped)?;
        let number = house.number_window();
        let (house, comm) = (house.clone(), comm.clone());
        Ok(Remote { house, number, comm, words: starts, window: Mutex::new(Some(window)) })
    }

    fn with<R>(&self, work: impl FnOnce(&ferrier_mpi::Window) -> ferrier_mpi::Result<R>) -> Result<R> {
        let guard: MutexGuard<'_, _> = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = guard.as_ref().ok_or_else(|| crate::Error::transport("a window that is gone"))?;
        work(window).map_err(wrapped)
    }
}

impl Window for Remote {
    unsafe fn put(&self, _lane: usize, puts: &[Put]) -> Result<()> {
        self.with(|window| {
            // SAFETY: the caller keeps the bytes until `landed` has flushed.
            puts.iter().try_for_each(|put| unsafe { window.begin_put(put.data, put.len, put.peer, put.at) })
        })
    }

    /// There is no asking: MPI is waited for, which had the time until now.
    fn landed(&self, _lane: usize) -> Result<bool> {
        self.with(ferrier_mpi::Window::flush_all).map(|()| true)
    }

    /// Not while the rank has something else to do.
    fn landing(&self, _lane: usize) -> WakeHint {
        WakeHint::Nothing
    }

    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()> {
        self.with(|window| {
            window.put(&[value], peer, self.words[peer] + word * 8)?;
            window.flush(peer)
        })
    }

    fn word(&self, word: usize) -> u64 {
        let own = self.comm.rank();
        // The place is inside the window: it was checked when the window was made.
        self.with(|window| window.load(own, self.words[own] + word * 8)).unwrap_or(0)
    }

    fn take(&self, at: usize, into: &mut [u8]) -> Result<()> {
        self.with(|window| window.read(self.comm.rank(), at, into))
    }

    fn check(&self, _owed: &dyn Fn(usize) -> bool) -> Result<()> {
        self.with(ferrier_mpi::Window::sync)?;
        self.comm.progress().map_err(wrapped)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(window) = self.window.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            self.house.bury(self.number, window);
        }
    }
}
