//! Started operations of MPI.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::Handle;
use crate::error::Result;
use crate::library::Library;

/// Operations that were started and are not known to be complete.
pub(crate) struct Table {
    mpi: Arc<Library>,
    slots: Vec<Slot>,
}

struct Slot {
    request: Handle,
    receive: bool,
}

impl Table {
    pub fn new(mpi: &Arc<Library>) -> Table {
        Table { mpi: mpi.clone(), slots: Vec::new() }
    }

    /// With room for so many operations.
    pub fn with_capacity(mpi: &Arc<Library>, capacity: usize) -> Table {
        Table { mpi: mpi.clone(), slots: Vec::with_capacity(capacity) }
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a request that was just started.
    pub fn push(&mut self, request: Handle, receive: bool) {
        self.mpi.requests.fetch_add(1, Ordering::Relaxed);
        self.slots.push(Slot { request, receive });
    }

    /// Makes progress; whether all operations are complete.
    pub fn test(&mut self) -> Result<bool> {
        self.advance(false).map(|()| self.is_empty())
    }

    pub fn wait(&mut self) -> Result<()> {
        self.advance(true)
    }

    /// Advances all operations, also after an error, and returns the first error.
    fn advance(&mut self, wait: bool) -> Result<()> {
        let mut outcome = Ok(());
        self.slots.retain_mut(|slot| {
            let (complete, result) = self.mpi.advance(&mut slot.request, wait);
            self.mpi.requests.fetch_sub(usize::from(complete), Ordering::Relaxed);
            outcome = std::mem::replace(&mut outcome, Ok(())).and(result);
            !complete
        });
        outcome
    }

    /// Ends operations: cancels receives (those that have matched complete) and
    /// waits for all others.
    pub fn end(&mut self) {
        let cancelled = self.slots.iter_mut().filter(|slot| slot.receive).try_for_each(|slot| {
            let _guard = self.mpi.enter()?;
            // SAFETY: a receive that was started and is not complete.
            let code = unsafe { (self.mpi.calls().cancel)(&mut slot.request) };
            self.mpi.check("MPI_Cancel", code)
        });
        if cancelled.and_then(|()| self.wait()).is_err() && !self.is_empty() {
            // MPI may still write to memory that is about to be freed.
            eprintln!("ferrier-mpi: operations in flight cannot be completed");
            std::process::abort();
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.end();
    }
}
