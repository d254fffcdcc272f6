//! Flights of MPI: requests that MPI works on whenever it is called.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::wrapped;
use crate::Result;
use crate::transport::{Transfer, WakeHint};

pub(super) struct Requests(Mutex<ferrier_mpi::RequestSet>);

impl Requests {
    pub fn new(exchange: ferrier_mpi::AllToAllV) -> Requests {
        Requests(Mutex::new(ferrier_mpi::RequestSet::new(exchange)))
    }

    fn flight(&self) -> MutexGuard<'_, ferrier_mpi::RequestSet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transfer for Requests {
    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.flight().start(send, recv) }.map_err(wrapped)
    }

    unsafe fn start_measured(
        &self,
        send: *const u8,
        recv: *mut u8,
        len: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.flight().start_measured(send, recv, len) }.map_err(wrapped)
    }

    fn test(&self) -> Result<bool> {
        self.flight().test().map_err(wrapped)
    }

    /// Only MPI knows.
    fn news(&self) -> WakeHint {
        WakeHint::Now
    }

    fn wait(&self) -> Result<()> {
        self.flight().wait().map_err(wrapped)
    }

    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.flight().run(send, recv) }.map_err(wrapped)
    }
}
