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
    /// Before the window: puts in flight are waited for before it is freed.
    slots: Vec<Mutex<SlotState>>,
    window: Mutex<Option<ferrier_mpi::Window>>,
}

/// The put of a slot, and its target while it is in flight.
struct SlotState {
    request: ferrier_mpi::PutRequest,
    peer: Option<usize>,
}

impl MpiWindow {
    /// Collective over `comm`.
    pub fn new(
        node_shared: &Arc<NodeShared>,
        comm: &ferrier_mpi::Comm,
        bytes: usize,
        words: usize,
        slots: usize,
    ) -> Result<MpiWindow> {
        let own = bytes.next_multiple_of(64);
        let window = ferrier_mpi::Window::allocate(comm, own + words * 8).map_err(mpi_error)?;
        let words = (0..comm.size()).map(|rank| window.len(rank) - words * 8).collect();
        window.lock_all().map_err(mpi_error)?;
        let number = node_shared.number_window();
        let (node_shared, comm) = (node_shared.clone(), comm.clone());
        let slot = |_| Mutex::new(SlotState { request: ferrier_mpi::PutRequest::new(&comm), peer: None });
        let slots = (0..slots).map(slot).collect();
        Ok(MpiWindow { node_shared, number, comm, words, slots, window: Mutex::new(Some(window)) })
    }

    fn slot(&self, slot: usize) -> MutexGuard<'_, SlotState> {
        self.slots[slot].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, work: impl FnOnce(&ferrier_mpi::Window) -> ferrier_mpi::Result<R>) -> Result<R> {
        let guard: MutexGuard<'_, _> = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = guard.as_ref().ok_or_else(|| Error::transport("the window was freed"))?;
        work(window).map_err(mpi_error)
    }
}

impl Window for MpiWindow {
    unsafe fn put(&self, slot: usize, put: &Put) -> Result<()> {
        let mut slot = self.slot(slot);
        let SlotState { request, peer } = &mut *slot;
        *peer = Some(put.peer);
        // SAFETY: by the contract of `put` the bytes live until `has_arrived`, which tests the request.
        self.with(|window| unsafe { window.request_put(request, put.data, put.len, put.peer, put.offset) })
    }

    /// MPI has no test for arrival: when the bytes have left, waits for the rest of the way.
    fn has_arrived(&self, slot: usize) -> Result<bool> {
        let mut slot = self.slot(slot);
        let Some(peer) = slot.peer else { return Ok(true) };
        if !slot.request.test().map_err(mpi_error)? {
            return Ok(false);
        }
        self.with(|window| window.flush(peer))?;
        slot.peer = None;
        Ok(true)
    }

    /// Not while the rank has other work.
    fn wake_hint(&self, _slot: usize) -> WakeHint {
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

    fn bytes(&self, offset: usize, len: usize) -> Result<*mut u8> {
        self.with(|window| window.address(offset, len))
    }

    fn check(&self, _awaited: &dyn Fn(usize) -> bool) -> Result<()> {
        self.with(ferrier_mpi::Window::sync)?;
        self.comm.progress().map_err(mpi_error)
    }
}

impl Drop for MpiWindow {
    fn drop(&mut self) {
        self.slots.clear();
        if let Some(window) = self.window.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            self.node_shared.defer_free(self.number, window);
        }
    }
}
