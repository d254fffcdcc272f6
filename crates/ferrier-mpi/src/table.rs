//! Started operations of MPI.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::abi::Handle;
use crate::error::Result;
use crate::ffi::Int;
use crate::library::Library;
use crate::status::{Received, Status};

/// One started operation of MPI.
pub(crate) struct Slot {
    handle: Handle,
    pub done: bool,
    pub receive: bool,
    /// Index of the exchange's segment that it belongs to.
    pub segment: usize,
    /// The segment was reported as arrived.
    pub reported: bool,
    received: Option<Received>,
}

/// Tables of scopes that ended, so that new ones need not allocate.
static SPARE: Mutex<Vec<Vec<Slot>>> = Mutex::new(Vec::new());

fn spare() -> MutexGuard<'static, Vec<Vec<Slot>>> {
    SPARE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The operations of a scope.
pub(crate) struct Table {
    mpi: Arc<Library>,
    pub slots: RefCell<Vec<Slot>>,
}

impl Table {
    pub fn new(mpi: &Arc<Library>) -> Table {
        Table { mpi: mpi.clone(), slots: RefCell::new(spare().pop().unwrap_or_default()) }
    }

    pub fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Forgets operations that are complete.
    pub fn clear(&self) {
        self.slots.borrow_mut().retain(|slot| !slot.done);
    }

    /// Adds a request that was just started.
    pub fn push(&self, handle: Handle, receive: bool, segment: usize) {
        self.mpi.requests.fetch_add(1, Ordering::Relaxed);
        self.slots.borrow_mut().push(Slot {
            handle,
            done: false,
            receive,
            segment,
            reported: false,
            received: None,
        });
    }

    /// Adds a segment that needs no operation: the rank's own, or an empty one.
    pub fn push_complete(&self, segment: usize) {
        self.slots.borrow_mut().push(Slot {
            handle: 0,
            done: true,
            receive: true,
            segment,
            reported: false,
            received: None,
        });
    }

    /// Tests or waits for one operation; whether it is complete.
    fn advance(&self, index: usize, wait: bool) -> Result<bool> {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[index];
        if slot.done {
            return Ok(true);
        }
        let _guard = self.mpi.enter()?;
        let mut status = Status::new();
        let mut flag: Int = 1;
        let calls = self.mpi.calls();
        let (call, code) = if wait {
            // SAFETY: a request that was started and is not complete.
            ("MPI_Wait", unsafe { (calls.wait)(&mut slot.handle, status.out()) })
        } else {
            // SAFETY: as above.
            ("MPI_Test", unsafe { (calls.test)(&mut slot.handle, &mut flag, status.out()) })
        };
        if code != 0 || flag != 0 {
            // After an error the request is complete, too.
            slot.done = true;
            self.mpi.requests.fetch_sub(1, Ordering::Relaxed);
        }
        self.mpi.check(call, code)?;
        if slot.done && slot.receive {
            slot.received = Some(status.received(&self.mpi)?);
        }
        Ok(slot.done)
    }

    pub fn test(&self, range: Range<usize>) -> Result<bool> {
        let mut all = true;
        for index in range {
            all &= self.advance(index, false)?;
        }
        Ok(all)
    }

    pub fn wait(&self, range: Range<usize>) -> Result<()> {
        // All of them, also after an error: the buffers are no longer in use afterwards.
        range.map(|index| self.advance(index, true).map(drop)).fold(Ok(()), Result::and)
    }

    /// Ends operations: cancels receives (those that have matched complete) and
    /// waits for all others.
    pub fn end(&self, range: Range<usize>) -> Result<()> {
        for index in range.clone() {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[index];
            if slot.receive && !slot.done {
                let _guard = self.mpi.enter()?;
                // SAFETY: a receive that was started and is not complete.
                let code = unsafe { (self.mpi.calls().cancel)(&mut slot.handle) };
                self.mpi.check("MPI_Cancel", code)?;
            }
        }
        self.wait(range)
    }

    pub fn received(&self, range: Range<usize>) -> Option<Received> {
        let slots = self.slots.borrow();
        let mut chunks = slots[range].iter().filter_map(|slot| slot.received);
        let first = chunks.next()?;
        Some(chunks.fold(first, |sum, chunk| Received { bytes: sum.bytes + chunk.bytes, ..sum }))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let count = self.len();
        if self.end(0..count).is_err() && self.slots.get_mut().iter().any(|slot| !slot.done) {
            // MPI may still write to memory that is about to be freed.
            eprintln!("ferrier-mpi: operations in flight cannot be completed");
            std::process::abort();
        }
        let mut slots = std::mem::take(self.slots.get_mut());
        slots.clear();
        spare().push(slots);
    }
}
