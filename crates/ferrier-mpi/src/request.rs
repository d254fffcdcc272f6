//! Operations in flight, and the scopes that borrow their buffers.
//!
//! The destructor of a forgotten request (`mem::forget`) never runs, so a
//! lifetime on the request alone would not keep MPI from writing into a freed
//! buffer. As with `std::thread::scope`, the scope itself knows every operation
//! and does not return before the last one is complete.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use crate::comm::Comm;
use crate::data::{Plain, received_at, sent_from};
use crate::error::Result;
use crate::exchange::AllToAllV;
use crate::p2p;
use crate::status::{Received, Source};
use crate::table::{Slot, Table};

/// Starts operations whose buffers live as long as the scope; see [`Comm::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    table: Table,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Comm {
    /// Runs `work`, which may start operations that do not block, and returns
    /// when all of them are complete. Operations that `work` did not wait for
    /// are ended here: receives are cancelled, all others are waited for. So a
    /// buffer is never freed while MPI uses it.
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
    /// Those of `work`, and of the operations that are ended here.
    pub fn scope<'env, F, R>(&self, work: F) -> Result<R>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    {
        let scope = Scope { table: Table::new(self.library()), scope: PhantomData, env: PhantomData };
        let result = work(&scope)?;
        scope.table.end(0..scope.table.len())?;
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
        // and is mutably borrowed until the request returns it.
        unsafe { p2p::start_receive(&self.table, comm, at, bytes, from.into(), tag, 0)? };
        Ok(self.request(first, start, length, None))
    }

    /// Starts an exchange. Collective, unless its algorithm is
    /// [`Algorithm::Messages`](crate::Algorithm::Messages).
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) where a buffer is too short for the segments; those of MPI.
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
        unsafe { exchange.start(&self.table, sent_from(send), received_at(start, length), None)? };
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
            reported: 0,
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
    /// The receive buffer. A pointer: no reference may exist while MPI writes.
    start: *mut T,
    length: usize,
    exchange: Option<&'scope AllToAllV>,
    /// Segments that `next_arrival` has returned.
    reported: usize,
    buffer: PhantomData<&'scope mut [T]>,
}

/// The result of a complete operation.
#[derive(Debug)]
pub struct Complete<'scope, T> {
    /// The buffer received into; empty where nothing was.
    pub data: &'scope mut [T],
    /// Length, source and tag of a message received.
    pub received: Option<Received>,
}

impl<'scope, T> Request<'scope, T> {
    /// Whether it is complete. Makes progress on all operations in flight.
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
        // SAFETY: from a `&'scope mut` that the request owns, and the operation is
        // complete.
        Ok(Complete { data: unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }, received })
    }
}

impl Request<'_, u8> {
    /// The next segment of an exchange that has arrived: its source and its bytes,
    /// in order of arrival; `None` after the last. The segments of a collective
    /// arrive all at once.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn next_arrival(&mut self) -> Result<Option<(usize, &[u8])>> {
        let Some(exchange) = self.exchange else { return Ok(None) };
        let segments = exchange.received();
        if self.reported == segments.len() {
            return Ok(None);
        }
        let index = if exchange.is_point_to_point() {
            self.any_segment()?
        } else {
            self.table.wait(self.slots.clone())?;
            self.reported
        };
        self.reported += 1;
        let segment = segments[index];
        // SAFETY: inside the buffer (checked at the start), and this segment is complete.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.add(segment.offset), segment.len) };
        Ok(Some((segment.peer, bytes)))
    }

    /// A segment whose operations are all complete and that was not reported yet.
    /// Receives are in order of segments, at least one for each.
    fn any_segment(&self) -> Result<usize> {
        loop {
            self.test()?;
            {
                let mut slots = self.table.slots.borrow_mut();
                let of_one = |a: &Slot, b: &Slot| a.receive == b.receive && a.segment == b.segment;
                for run in slots[self.slots.clone()].chunk_by_mut(of_one) {
                    if run.iter().all(|slot| slot.receive && slot.done && !slot.reported) {
                        run.iter_mut().for_each(|slot| slot.reported = true);
                        return Ok(run[0].segment);
                    }
                }
            }
            std::thread::yield_now();
        }
    }
}

impl<T> Drop for Request<'_, T> {
    fn drop(&mut self) {
        // An error here is returned again when the scope ends, if operations remain.
        let _ = self.table.end(self.slots.clone());
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
