//! Transfers of MPI: requests that MPI progresses whenever it is called.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrier_mpi::RequestSet;

use super::error::mpi_error;
use crate::Result;
use crate::transport::transfer::{Lengths, Transfer, WakeHint};

fn lock(requests: &Mutex<RequestSet>) -> MutexGuard<'_, RequestSet> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock admits a progress thread.
impl Transfer for Mutex<RequestSet> {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, lengths: Option<Lengths<'_>>) -> Result<()> {
        // SAFETY: `Transfer::start` and `RequestSet::start` have the same contract.
        unsafe { lock(self).start(send, recv, lengths) }.map_err(mpi_error)
    }

    fn test(&self) -> Result<bool> {
        lock(self).test().map_err(mpi_error)
    }

    /// Only a call of MPI can tell.
    fn wake_hint(&self) -> WakeHint {
        WakeHint::Now
    }

    fn wait(&self) -> Result<()> {
        lock(self).wait().map_err(mpi_error)
    }

    /// By the blocking calls of MPI.
    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: `Transfer::run` and `RequestSet::run` have the same contract.
        unsafe { lock(self).run(send, recv) }.map_err(mpi_error)
    }

    fn substitution(&self) -> Option<&'static str> {
        lock(self).substitution()
    }
}
