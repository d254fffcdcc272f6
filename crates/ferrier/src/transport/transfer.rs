//! Exchanges that fly while their rank does something else.

use std::time::Instant;

use crate::Result;

/// By which call of MPI an exchange goes, where it goes by MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A collective of parts of one length, one for every rank.
    AllToAll,
    /// A collective of parts of any length.
    AllToAllV,
    /// Messages, pair by pair.
    Messages,
}

/// When it is worth looking again; what comes first is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeHint {
    /// There is something to do.
    Now,
    /// Something will have come by then.
    At(Instant),
    /// When another rank has done something.
    Nothing,
}

/// An exchange of parts, ready to be started over and over. Several may be in
/// flight at once; those that are collectives are started in one order on
/// every rank.
pub trait Transfer: Send + Sync {
    /// Starts it. Does not wait for others.
    ///
    /// # Errors
    /// Where a rank has failed, or it is in flight.
    ///
    /// # Safety
    /// The parts lie inside memory at `send` and `recv`, which lives and is
    /// not touched by others until [`test`](Flight::test) says true or an
    /// error, or [`wait`](Flight::wait) returns.
    unsafe fn start(&self, send: *const u8, recv: *mut u8) -> Result<()>;
    /// Starts it with parts that are shorter than they may be: so many bytes
    /// go to each rank. For [`Call::Messages`] only, where senders alone know.
    ///
    /// # Errors
    /// As [`start`](Flight::start), and where a part is longer than it may be.
    ///
    /// # Safety
    /// As [`start`](Flight::start).
    unsafe fn start_measured(
        &self,
        send: *const u8,
        recv: *mut u8,
        len: &dyn Fn(usize) -> usize,
    ) -> Result<()>;
    /// Makes progress; whether all has come and gone, or nothing was started.
    ///
    /// # Errors
    /// Where a rank has failed or left. Then it is over as well.
    fn test(&self) -> Result<bool>;
    /// What the next test would find.
    fn news(&self) -> WakeHint;
    /// Returns when all has come and gone. Makes no progress on other flights.
    ///
    /// # Errors
    /// As [`test`](Flight::test).
    fn wait(&self) -> Result<()>;
    /// Starts it and waits: on every rank, or on none.
    ///
    /// # Errors
    /// As [`start`](Flight::start) and [`test`](Flight::test).
    ///
    /// # Safety
    /// As [`start`](Flight::start).
    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.start(send, recv)? };
        self.wait()
    }
}

/// Counters that the ranks of a node share. They only grow.
pub trait NodeCounters: Send + Sync {
    /// Counts one more.
    fn add(&self, counter: usize);
    /// Whether a counter has come so far.
    ///
    /// # Errors
    /// Where it has not, and a rank has failed or one of the node has left.
    fn reached(&self, counter: usize, count: u64) -> Result<bool>;
}
