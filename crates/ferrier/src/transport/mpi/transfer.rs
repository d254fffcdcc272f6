//! Transfers of MPI: requests that MPI progresses whenever it is called.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrier_mpi::AllToAllV;

use super::error::mpi_error;
use crate::Result;
use crate::transport::transfer::{Lengths, Transfer, WakeHint};

fn lock(requests: &Mutex<AllToAllV>) -> MutexGuard<'_, AllToAllV> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock admits a progress thread.
impl Transfer for Mutex<AllToAllV> {
    unsafe fn start(&self, send: *const u8, recv: *mut u8, lengths: Option<Lengths<'_>>) -> Result<()> {
        // SAFETY: `Transfer::start` and `AllToAllV::start` have the same contract.
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
        // SAFETY: `Transfer::run` and `AllToAllV::run_at` have the same contract.
        unsafe { lock(self).run_at(send, recv) }.map_err(mpi_error)
    }

    fn substitution(&self) -> Option<&'static str> {
        lock(self).substitution()
    }
}
