//! Exchanges that fly while their rank does something else.

use crate::data::{received_at, sent_from};
use crate::error::{Error, Result};
use crate::exchange::AllToAllV;
use crate::request::Table;

/// A prepared exchange that can be started, looked after and started again,
/// in whatever memory it is given each time. [`Comm::scope`](crate::Comm::scope)
/// does the same in safe code, where one call outlives the flight.
pub struct RequestSet {
    /// Before the exchange, whose lists MPI reads until the operations are complete.
    table: Table,
    exchange: Box<AllToAllV>,
}

impl RequestSet {
    /// Not collective.
    pub fn new(exchange: AllToAllV) -> RequestSet {
        let table = Table::new(exchange.comm().inner());
        RequestSet { table, exchange: Box::new(exchange) }
    }

    /// What flies.
    pub fn exchange(&self) -> &AllToAllV {
        &self.exchange
    }

    /// Starts it. Collective, unless it goes by messages. Allocates nothing
    /// after the first time.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is in flight already; those of MPI.
    ///
    /// # Safety
    /// All parts sent lie inside memory at `send`, all parts received inside
    /// memory at `recv`, apart from the former. Until [`test`](Flight::test)
    /// says that it is complete or [`wait`](Flight::wait) returns, that memory
    /// lives, what is sent does not change and nobody touches the rest. (Going
    /// out of scope waits too; being forgotten does not.)
    pub unsafe fn start(&mut self, send: *const u8, recv: *mut u8) -> Result<()> {
        if self.in_flight() {
            return Err(Error::Argument("the exchange is in flight already".into()));
        }
        let (send, recv) = self.places(send, recv);
        // SAFETY: the caller's word; the exchange lives in a box of this flight.
        unsafe { self.exchange.start(&self.table, send, recv) }
    }

    /// Starts it with so many bytes for each rank, at most as many as were
    /// prepared: what is shorter leaves the rest of the receiver's part as it
    /// was. Only where it goes by messages.
    ///
    /// # Errors
    /// As [`start`](Flight::start); [`Error::Argument`] where it is a collective.
    ///
    /// # Safety
    /// As [`start`](Flight::start).
    pub unsafe fn start_measured(
        &mut self,
        send: *const u8,
        recv: *mut u8,
        len: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        if self.in_flight() {
            return Err(Error::Argument("the exchange is in flight already".into()));
        }
        let (send, recv) = self.places(send, recv);
        // SAFETY: as in `start`.
        unsafe { self.exchange.start_messages(&self.table, send, recv, len) }
    }

    /// Whether it was started and is not known to be complete.
    pub fn in_flight(&self) -> bool {
        self.table.len() > 0
    }

    /// Whether it is complete (or was not started). Lets MPI work.
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

    /// Pointers that mean nothing else to MPI.
    fn places(&self, send: *const u8, recv: *mut u8) -> (*const u8, *mut u8) {
        let (sends, receives) = self.exchange.lengths();
        (if sends == 0 { sent_from::<u8>(&[]) } else { send }, received_at(recv, receives))
    }

    /// Starts it and waits, by calls of MPI that block where there are such:
    /// they are not the same to MPI, so all ranks run it or all start it.
    ///
    /// # Errors
    /// As [`start`](Flight::start).
    ///
    /// # Safety
    /// As [`start`](Flight::start), for the length of the call.
    pub unsafe fn run(&mut self, send: *const u8, recv: *mut u8) -> Result<()> {
        if self.in_flight() {
            return Err(Error::Argument("the exchange is in flight already".into()));
        }
        let (send, recv) = self.places(send, recv);
        // SAFETY: the caller's word.
        unsafe { self.exchange.run_at(&self.table, send, recv)? };
        self.wait()
    }
}
