//! Transfers: segments that move between ranks while a rank computes.

use std::time::Instant;

use crate::{Error, Result};

/// A segment of a buffer that goes to, or comes from, another rank; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The other rank.
    pub peer: usize,
    /// Where the segment begins.
    pub offset: usize,
    /// Its length.
    pub len: usize,
}

/// Which call of MPI moves the segments; other transports ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferKind {
    /// A collective of segments of one length, one for every rank.
    AllToAll,
    /// A collective of segments of any length.
    AllToAllV,
    /// Point-to-point messages.
    Messages,
    /// The same; long ones in pieces that MPI usually sends without asking the receiver first.
    ShortMessages,
}

/// When the next test of a transfer is worthwhile; the earliest compares least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WakeHint {
    /// At once: there is work to do, or nothing is in flight.
    Now,
    /// At this time.
    At(Instant),
    /// After another rank has acted.
    Nothing,
}

/// Bytes that are sent to each rank.
pub(crate) type Lengths<'a> = &'a dyn Fn(usize) -> usize;

/// A prepared transfer of segments that can be started again and again. Several may be in flight at once; those
/// that are collectives must be started in the same order on every rank.
pub(crate) trait Transfer: Send + Sync {
    /// Starts it. Does not wait for other ranks. With `lengths`, segments are shorter than prepared: only
    /// transfers by [`TransferKind::Messages`] can do that, since receivers do not know the lengths.
    ///
    /// # Errors
    /// Where a rank has failed, or it is in flight.
    ///
    /// # Safety
    /// The segments lie inside memory at `send` and `recv`. That memory lives and nothing else accesses it until
    /// [`test`](Transfer::test) returns true or an error, or [`wait`](Transfer::wait) returns.
    unsafe fn start(&self, send: *const u8, recv: *mut u8, lengths: Option<Lengths<'_>>) -> Result<()>;
    /// Makes progress; whether it is complete (or was not started).
    ///
    /// # Errors
    /// Where a rank has failed or left. Then it is no longer in flight.
    fn test(&self) -> Result<bool>;
    /// When the next test is worthwhile.
    fn wake_hint(&self) -> WakeHint;
    /// Returns when it is complete. Makes no progress on other transfers.
    ///
    /// # Errors
    /// As [`test`](Transfer::test).
    fn wait(&self) -> Result<()>;
    /// Starts it and waits, with prepared lengths. All ranks call this, or all call [`start`](Transfer::start).
    ///
    /// # Errors
    /// As [`start`](Transfer::start) and [`test`](Transfer::test).
    ///
    /// # Safety
    /// As [`start`](Transfer::start), until it returns.
    unsafe fn run(&self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: the contract of `run` covers the time until `wait` returns.
        unsafe { self.start(send, recv, None)? };
        self.wait()
    }
    /// Where it differs from the kind that was asked for: why, for users.
    fn substitution(&self) -> Option<&'static str> {
        None
    }
}

/// Counters that the ranks of a node share. Those that ranks wait for only grow.
pub(crate) trait NodeCounters: Send + Sync {
    /// Adds one, and wakes ranks that wait.
    fn add(&self, counter: usize);
    /// Adds to a counter that no rank waits for; returns its value before.
    fn take(&self, counter: usize, count: u64) -> u64;
    /// The value of a counter.
    fn value(&self, counter: usize) -> u64;
    /// Sets a counter to zero. The ranks have a barrier between this and their next calls.
    fn clear(&self, counter: usize);
    /// Whether a counter has reached `count`. `by`: the rank that adds to it, if it is only one.
    ///
    /// # Errors
    /// Where it has not, and a rank has failed, or that rank (without `by`: one of the node) has left.
    fn reached(&self, counter: usize, count: u64, by: Option<usize>) -> Result<bool>;
}

/// The error of a start before the last one is complete.
pub(crate) fn already_in_flight() -> Error {
    Error::transport("an exchange was started while it is in flight")
}
