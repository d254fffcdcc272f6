//! Exchanges that are in flight while their rank computes.

use crate::data::{received_at, sent_from};
use crate::error::{Error, Result};
use crate::exchange::{AllToAllV, Lengths};
use crate::table::Table;

/// A prepared exchange that can be started, tested and started again, with
/// other buffers each time. [`Comm::scope`](crate::Comm::scope) does the same in
/// safe code, where one call outlives the operations.
pub struct RequestSet {
    /// Before the exchange, whose lists MPI reads until the operations are complete.
    table: Table,
    exchange: Box<AllToAllV>,
}

impl RequestSet {
    /// Not collective.
    pub fn new(exchange: AllToAllV) -> RequestSet {
        let table = Table::new(exchange.comm().library());
        RequestSet { table, exchange: Box::new(exchange) }
    }

    /// The exchange.
    pub fn exchange(&self) -> &AllToAllV {
        &self.exchange
    }

    /// Why it goes by messages though a collective was asked for.
    pub fn substitution(&self) -> Option<&'static str> {
        self.exchange.substitution()
    }

    /// Starts it. Collective, unless it goes by messages. Allocates nothing after
    /// the first time. With `lengths`, so many bytes go to each rank, at most as
    /// many as were prepared; the rest of the receiver's segment keeps its
    /// contents. Only exchanges by messages can do that.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is in flight, or `lengths` are given to a
    /// collective; those of MPI.
    ///
    /// # Safety
    /// All segments sent lie inside memory at `send`, all segments received inside
    /// memory at `recv`, and the two do not overlap. Until
    /// [`test`](RequestSet::test) returns true or [`wait`](RequestSet::wait)
    /// returns, that memory lives, the sent bytes do not change and nothing else
    /// accesses the received ones. (Dropping it waits, too; forgetting it does
    /// not.)
    pub unsafe fn start(
        &mut self,
        send: *const u8,
        recv: *mut u8,
        lengths: Option<Lengths<'_>>,
    ) -> Result<()> {
        let (send, recv) = self.addresses(send, recv)?;
        // SAFETY: this function's contract; the exchange lives in a box of `self`, behind the table.
        unsafe { self.exchange.start(&self.table, send, recv, lengths) }
    }

    /// Whether it was started and is not known to be complete.
    pub fn in_flight(&self) -> bool {
        self.table.len() > 0
    }

    /// Whether it is complete (or was not started). Makes progress.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn test(&mut self) -> Result<bool> {
        let complete = self.table.test(0..self.table.len())?;
        if complete {
            self.table.clear();
        }
        Ok(complete)
    }

    /// Returns when it is complete.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn wait(&mut self) -> Result<()> {
        let outcome = self.table.wait(0..self.table.len());
        self.table.clear();
        outcome
    }

    /// Starts it and waits, by blocking calls of MPI where there are such. They do
    /// not match calls that do not block: all ranks run it, or all start it.
    ///
    /// # Errors
    /// As [`start`](RequestSet::start).
    ///
    /// # Safety
    /// As [`start`](RequestSet::start), until it returns.
    pub unsafe fn run(&mut self, send: *const u8, recv: *mut u8) -> Result<()> {
        let (send, recv) = self.addresses(send, recv)?;
        // SAFETY: this function's contract; the exchange lives in a box of `self`, behind the table.
        unsafe { self.exchange.run_at(&self.table, send, recv)? };
        self.wait()
    }

    /// Addresses that have no special meaning to MPI; an error where it is in flight.
    fn addresses(&self, send: *const u8, recv: *mut u8) -> Result<(*const u8, *mut u8)> {
        if self.in_flight() {
            return Err(Error::Argument("the exchange is in flight already".into()));
        }
        let (sends, receives) = self.exchange.lengths();
        Ok((if sends == 0 { sent_from::<u8>(&[]) } else { send }, received_at(recv, receives)))
    }
}
