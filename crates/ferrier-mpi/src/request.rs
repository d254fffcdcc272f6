//! Operations in flight, and the scopes that keep their buffers.
//!
//! A request that is forgotten (`mem::forget`) never runs its destructor, so
//! a lifetime on the request alone would not keep MPI from writing into a
//! buffer that is gone. As with `std::thread::scope`, the scope itself knows
//! every operation and does not return before the last one is complete.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::Handle;
use crate::comm::Comm;
use crate::data::{Plain, received_at, sent_from};
use crate::error::Result;
use crate::exchange::AllToAllV;
use crate::ffi::Int;
use crate::mpi::Inner;
use crate::p2p::{self, Received, Source, Status};

/// One operation of MPI that was started. A [`Request`] is a run of them.
pub(crate) struct Slot {
    handle: Handle,
    done: bool,
    receive: bool,
    /// Part of an exchange that it belongs to.
    part: usize,
    /// [`Request::next_arrival`] has told of that part.
    told: bool,
    got: Option<Received>,
}

/// The operations of a scope.
pub(crate) struct Table {
    mpi: Arc<Inner>,
    slots: RefCell<Vec<Slot>>,
}

impl Table {
    pub fn new(mpi: &Arc<Inner>) -> Table {
        let spare = mpi.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        Table { mpi: mpi.clone(), slots: RefCell::new(spare.unwrap_or_default()) }
    }

    pub fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    /// Forgets operations that are complete.
    pub fn clear(&self) {
        self.slots.borrow_mut().retain(|slot| !slot.done);
    }

    /// Takes charge of a request that was just started.
    pub fn push(&self, handle: Handle, receive: bool, part: usize) {
        self.mpi.requests.fetch_add(1, Ordering::Relaxed);
        self.slots.borrow_mut().push(Slot { handle, done: false, receive, part, told: false, got: None });
    }

    /// A part of an exchange that needs no operation: its own, or an empty one.
    pub fn push_complete(&self, part: usize) {
        self.slots.borrow_mut().push(Slot {
            handle: 0,
            done: true,
            receive: true,
            part,
            told: false,
            got: None,
        });
    }

    /// Tests or waits for one operation; whether it is complete.
    fn advance(&self, index: usize, wait: bool) -> Result<bool> {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[index];
        if slot.done {
            return Ok(true);
        }
        let _gate = self.mpi.enter()?;
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
            // With an error the request is over as well.
            slot.done = true;
            self.mpi.requests.fetch_sub(1, Ordering::Relaxed);
        }
        self.mpi.check(call, code)?;
        if slot.done && slot.receive {
            slot.got = Some(status.received(&self.mpi)?);
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
        // All of them, whatever the first error: buffers are free afterwards.
        range.map(|index| self.advance(index, true).map(drop)).fold(Ok(()), Result::and)
    }

    /// Ends operations that nobody waits for: receives are cancelled (those
    /// that have matched complete), everything else is waited for.
    pub fn settle(&self, range: Range<usize>) -> Result<()> {
        for index in range.clone() {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[index];
            if slot.receive && !slot.done {
                let _gate = self.mpi.enter()?;
                // SAFETY: a receive that was started and is not complete.
                let code = unsafe { (self.mpi.calls().cancel)(&mut slot.handle) };
                self.mpi.check("MPI_Cancel", code)?;
            }
        }
        self.wait(range)
    }

    fn received(&self, range: Range<usize>) -> Option<Received> {
        let slots = self.slots.borrow();
        let mut chunks = slots[range].iter().filter_map(|slot| slot.got);
        let first = chunks.next()?;
        Some(chunks.fold(first, |sum, chunk| Received { bytes: sum.bytes + chunk.bytes, ..sum }))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let count = self.len();
        if self.settle(0..count).is_err() && self.slots.get_mut().iter().any(|slot| !slot.done) {
            // MPI may still write to memory that its owner is about to free.
            eprintln!("ferrier-mpi: operations in flight cannot be completed");
            std::process::abort();
        }
        let mut slots = std::mem::take(self.slots.get_mut());
        slots.clear();
        self.mpi.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(slots);
    }
}

/// Starts operations whose buffers live as long as the scope; see [`Comm::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    table: Table,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Comm {
    /// Runs `work`, which may start operations that do not block, and returns
    /// when all of them are complete. Whatever `work` did not wait for is
    /// ended here: receives are cancelled, all else is waited for. So a
    /// buffer can never go while MPI uses it.
    ///
    /// ```no_run
    /// # fn main() -> ferrier_mpi::Result<()> {
    /// # let world = ferrier_mpi::Mpi::init(ferrier_mpi::Level::Funneled)?.unwrap().world()?;
    /// let (out, mut back) = ([world.rank() as f64; 8], [0.0; 8]);
    /// let (right, left) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// let sum: f64 = world.scope(|scope| {
    ///     let receive = scope.receive(&world, &mut back, left, 7)?;
    ///     let send = scope.send(&world, &out, right, 7)?;
    ///     send.wait()?;
    ///     Ok(receive.wait()?.data.iter().sum())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `work`, and of what is ended here.
    pub fn scope<'env, F, R>(&self, work: F) -> Result<R>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    {
        let scope = Scope { table: Table::new(self.inner()), scope: PhantomData, env: PhantomData };
        let result = work(&scope)?;
        scope.table.settle(0..scope.table.len())?;
        Ok(result)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts to send. Not collective.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn send<T: Plain>(
        &'scope self,
        comm: &Comm,
        data: &'scope [T],
        to: usize,
        tag: i32,
    ) -> Result<Request<'scope, T>> {
        let first = self.table.len();
        // SAFETY: the data outlives the scope, which outlives the operation.
        unsafe { p2p::start_send(&self.table, comm, sent_from(data), [size_of_val(data); 2], to, tag, 0)? };
        Ok(self.request(first, NonNull::dangling().as_ptr(), 0, None))
    }

    /// Starts to receive. Not collective. The message may be shorter than
    /// `data`, unless `data` exceeds the 2^31 limit and the library has no
    /// 64-bit calls: then it must be exactly as long.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn receive<T: Plain>(
        &'scope self,
        comm: &Comm,
        data: &'scope mut [T],
        from: impl Into<Source>,
        tag: i32,
    ) -> Result<Request<'scope, T>> {
        let first = self.table.len();
        let (start, length, bytes) = (data.as_mut_ptr(), data.len(), size_of_val(data));
        let at = received_at(start, length);
        // SAFETY: the data outlives the scope, which outlives the operation,
        // and nobody else can reach it before the request gives it back.
        unsafe { p2p::start_receive(&self.table, comm, at, bytes, from.into(), tag, 0)? };
        Ok(self.request(first, start, length, None))
    }

    /// Starts an exchange. Collective, unless its way is
    /// [`Way::Messages`](crate::Way::Messages).
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) where a buffer is too short for the parts; those of MPI.
    pub fn all_to_allv(
        &'scope self,
        exchange: &'scope AllToAllV,
        send: &'scope [u8],
        recv: &'scope mut [u8],
    ) -> Result<Request<'scope, u8>> {
        let first = self.table.len();
        exchange.check(send.len(), recv.len())?;
        let (start, length) = (recv.as_mut_ptr(), recv.len());
        // SAFETY: buffers and exchange outlive the scope, which outlives the operation.
        unsafe { exchange.start(&self.table, sent_from(send), received_at(start, length))? };
        Ok(self.request(first, start, length, Some(exchange)))
    }

    fn request<T>(
        &'scope self,
        first: usize,
        start: *mut T,
        length: usize,
        exchange: Option<&'scope AllToAllV>,
    ) -> Request<'scope, T> {
        Request {
            table: &self.table,
            slots: first..self.table.len(),
            start,
            length,
            exchange,
            told: 0,
            buffer: PhantomData,
        }
    }
}

/// An operation in flight. Dropping it ends it: a receive is cancelled,
/// anything else is waited for.
#[must_use = "dropping a request ends it"]
pub struct Request<'scope, T> {
    table: &'scope Table,
    slots: Range<usize>,
    /// What is received into. A pointer: no reference may exist meanwhile.
    start: *mut T,
    length: usize,
    exchange: Option<&'scope AllToAllV>,
    told: usize,
    buffer: PhantomData<&'scope mut [T]>,
}

/// What a complete operation gives back.
#[derive(Debug)]
pub struct Complete<'scope, T> {
    /// The buffer received into; empty where nothing was.
    pub data: &'scope mut [T],
    /// Length, source and tag of a message received.
    pub received: Option<Received>,
}

impl<'scope, T> Request<'scope, T> {
    /// Whether it is complete. Lets MPI work on all that is in flight.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn test(&self) -> Result<bool> {
        self.table.test(self.slots.clone())
    }

    /// Returns when it is complete, with the buffer.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn wait(self) -> Result<Complete<'scope, T>> {
        self.table.wait(self.slots.clone())?;
        let received = self.table.received(self.slots.clone()).filter(|_| self.exchange.is_none());
        // SAFETY: made from a `&'scope mut` that was given to us, and the
        // operation is complete.
        Ok(Complete { data: unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }, received })
    }
}

impl Request<'_, u8> {
    /// The next part of an exchange that has arrived: the rank it came from
    /// and its bytes, in whatever order they come; `None` after the last. An
    /// exchange that is one call of MPI arrives all at once.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn next_arrival(&mut self) -> Result<Option<(usize, &[u8])>> {
        let Some(exchange) = self.exchange else { return Ok(None) };
        let parts = exchange.received();
        if self.told == parts.len() {
            return Ok(None);
        }
        let index = if exchange.arrives_in_parts() {
            self.any_part()?
        } else {
            self.table.wait(self.slots.clone())?;
            self.told
        };
        self.told += 1;
        let part = parts[index];
        // SAFETY: inside the buffer (checked at the start), and this part is complete.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.add(part.at), part.len) };
        Ok(Some((part.peer, bytes)))
    }

    /// A part whose operations are all complete and that was not told yet.
    /// Receives lie in order of parts, at least one for each.
    fn any_part(&self) -> Result<usize> {
        loop {
            self.test()?;
            {
                let mut slots = self.table.slots.borrow_mut();
                let of_one = |a: &Slot, b: &Slot| a.receive == b.receive && a.part == b.part;
                for run in slots[self.slots.clone()].chunk_by_mut(of_one) {
                    if run.iter().all(|slot| slot.receive && slot.done && !slot.told) {
                        run.iter_mut().for_each(|slot| slot.told = true);
                        return Ok(run[0].part);
                    }
                }
            }
            std::thread::yield_now();
        }
    }
}

impl<T> Drop for Request<'_, T> {
    fn drop(&mut self) {
        // An error here shows again when the scope ends, if it matters.
        let _ = self.table.settle(self.slots.clone());
    }
}

/// Waits for any of `requests`: the index of one that is complete and for
/// which `seen` is false, which becomes true; `None` when all are seen.
///
/// # Errors
/// Those of MPI.
pub fn wait_any<T>(requests: &[Request<'_, T>], seen: &mut [bool]) -> Result<Option<usize>> {
    while seen.iter().take(requests.len()).any(|seen| !seen) {
        for (index, request) in requests.iter().enumerate() {
            if !seen[index] && request.test()? {
                seen[index] = true;
                return Ok(Some(index));
            }
        }
        std::thread::yield_now();
    }
    Ok(None)
}
