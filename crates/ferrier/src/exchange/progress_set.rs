//! The exchanges of a plan. Several may be in flight at once. Waiting for one
//! makes progress on all, so that ranks may wait in different orders.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrier_plan::messages::{BufferLayout, ExchangeBuffers};

use super::coder::Coder;
use super::packets::PacketTiming;
use crate::transport::{Transfer, Transport, WakeHint, already_in_flight};
use crate::{Error, Result};

/// An exchange of several steps; see [`Exchange`] for the contract of the buffers.
pub(super) trait Protocol: Send + Sync {
    /// See [`Exchange::open`].
    fn open(&self) -> Result<()> {
        Ok(())
    }
    /// Starts. `coder` is there where [`ExchangeSpec::needs_coder`] is set.
    ///
    /// # Safety
    /// As [`Exchange::start`].
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()>;
    /// Makes progress without waiting; whether it is complete. After an error it does not access the buffers
    /// any more.
    fn advance(&self) -> Result<bool>;
    /// When the next `advance` is worthwhile.
    fn wake_hint(&self) -> WakeHint;
    /// When the packets of the last run were encoded, sent and decoded, if it has packets.
    fn timings(&self) -> Vec<PacketTiming> {
        Vec::new()
    }
    /// The address of this rank's window, where it is open and passes load from it; else 0.
    fn window_address(&self) -> usize {
        0
    }
    /// May block until the next step, since no other exchange is in flight.
    fn wait_exclusive(&self) -> Result<()> {
        Ok(())
    }
}

/// What moves the bytes.
pub(super) enum Operation {
    /// One transfer of the transport.
    Transfer(Box<dyn Transfer>),
    /// Several steps.
    Protocol(Box<dyn Protocol>),
}

/// Specification of an exchange.
pub(super) struct ExchangeSpec {
    pub buffers: ExchangeBuffers,
    /// Bytes of the window that all exchanges of the plan share.
    pub window: usize,
    pub note: Option<String>,
    /// Does the operation need the coder: for the lengths of segments, or to encode and decode?
    pub needs_coder: bool,
    pub operation: Operation,
}

impl ExchangeSpec {
    pub fn new(send: BufferLayout, recv: BufferLayout, operation: Operation) -> ExchangeSpec {
        let buffers =
            ExchangeBuffers { send, recv, sharing: None, remote: None, window: None, encodes: false };
        ExchangeSpec { buffers, window: 0, note: None, needs_coder: false, operation }
    }
}

struct ProgressSet {
    transport: Arc<dyn Transport>,
    entries: Vec<Entry>,
}

/// An exchange and its state.
struct Entry {
    spec: ExchangeSpec,
    in_flight: AtomicBool,
    /// Held by starts and tests. A progress thread tests as well: during a start it would take the completion of
    /// the last run for that of the next.
    access: Mutex<()>,
    /// The error of the last run: returned by every test until the next start.
    failure: Mutex<Option<Error>>,
}

impl Entry {
    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access(&self) -> MutexGuard<'_, ()> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<()> {
        match self.in_flight.swap(true, SeqCst) {
            true => Err(already_in_flight()),
            false => {
                *self.failure() = None;
                Ok(())
            }
        }
    }

    fn complete(&self, outcome: &Result<()>) {
        *self.failure() = outcome.as_ref().err().cloned();
        self.in_flight.store(false, SeqCst);
    }

    fn last_outcome(&self) -> Result<bool> {
        self.failure().clone().map_or(Ok(true), Err)
    }

    fn test(&self) -> Result<bool> {
        if !self.in_flight.load(SeqCst) {
            return self.last_outcome();
        }
        let _access = self.access();
        if !self.in_flight.load(SeqCst) {
            return self.last_outcome();
        }
        let outcome = match &self.spec.operation {
            Operation::Transfer(transfer) => transfer.test(),
            Operation::Protocol(protocol) => protocol.advance(),
        };
        match &outcome {
            Ok(false) => {}
            Ok(true) => self.complete(&Ok(())),
            Err(error) => self.complete(&Err(error.clone())),
        }
        outcome
    }

    fn wake_hint(&self) -> WakeHint {
        match &self.spec.operation {
            Operation::Transfer(transfer) => transfer.wake_hint(),
            Operation::Protocol(protocol) => protocol.wake_hint(),
        }
    }

    fn wait_exclusive(&self) -> Result<()> {
        match &self.spec.operation {
            Operation::Transfer(transfer) => transfer.wait(),
            Operation::Protocol(protocol) => protocol.wait_exclusive(),
        }
    }
}

impl ProgressSet {
    fn in_flight(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.in_flight.load(SeqCst))
    }
}

/// One reshape, or a tile of one, ready to run. Made collectively when a plan is made. Several exchanges of a plan
/// may be in flight at once; they are started in the same order on every rank, and waited for in any order. Each
/// is started again only after it is complete.
pub(crate) struct Exchange {
    set: Arc<ProgressSet>,
    number: usize,
}

/// Exchanges that progress together. `transport` parks waiting ranks.
pub(super) fn exchanges(transport: &Arc<dyn Transport>, specs: Vec<ExchangeSpec>) -> Vec<Exchange> {
    let entry = |spec| Entry {
        spec,
        in_flight: AtomicBool::new(false),
        access: Mutex::default(),
        failure: Mutex::default(),
    };
    let entries = specs.into_iter().map(entry).collect();
    let set = Arc::new(ProgressSet { transport: transport.clone(), entries });
    (0..set.entries.len()).map(|number| Exchange { set: set.clone(), number }).collect()
}

impl Exchange {
    fn entry(&self) -> &Entry {
        &self.set.entries[self.number]
    }

    /// Whether it was started and not completed; makes no progress.
    pub fn is_in_flight(&self) -> bool {
        self.entry().in_flight.load(SeqCst)
    }

    /// Its buffers, as passes see them.
    pub fn buffers(&self) -> &ExchangeBuffers {
        &self.entry().spec.buffers
    }

    /// Bytes of the window that all exchanges of a plan share.
    pub fn window(&self) -> usize {
        self.entry().spec.window
    }

    /// How it differs from what was asked for: a sentence for users.
    pub fn note(&self) -> Option<&str> {
        self.entry().spec.note.as_deref()
    }

    /// The address of this rank's window, where it is open and passes load from it; else 0.
    pub fn window_address(&self) -> usize {
        match &self.entry().spec.operation {
            Operation::Transfer(_) => 0,
            Operation::Protocol(protocol) => protocol.window_address(),
        }
    }

    /// When the packets of the last run were encoded, sent and decoded, if it has packets.
    pub fn timings(&self) -> Vec<PacketTiming> {
        match &self.entry().spec.operation {
            Operation::Transfer(_) => Vec::new(),
            Operation::Protocol(protocol) => protocol.timings(),
        }
    }

    /// Allocates the memory that it needs besides the two buffers. Collective; called once, before the first run.
    ///
    /// # Errors
    /// Too little memory.
    pub fn open(&self) -> Result<()> {
        match &self.entry().spec.operation {
            Operation::Transfer(_) => Ok(()),
            Operation::Protocol(protocol) => protocol.open(),
        }
    }

    /// Starts to move the bytes. Does not wait for other ranks. Allocates nothing after the first time. `coder` is
    /// there where segments are encoded.
    ///
    /// # Errors
    /// Where a rank has failed, or it is in flight.
    ///
    /// # Safety
    /// The memory at `send` and `recv` is as long as [`buffers`](Exchange::buffers) says and does not overlap. It
    /// lives and nothing else accesses it until [`test`](Exchange::test) returns true or an error, or
    /// [`wait`](Exchange::wait) returns.
    pub unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let entry = self.entry();
        let _access = entry.access();
        entry.begin()?;
        let needed = entry.spec.needs_coder;
        let started = match (&entry.spec.operation, coder.filter(|_| needed)) {
            (_, None) if needed => {
                Err(Error::transport("an exchange of encoded messages was started without its coder"))
            }
            // SAFETY: the contract of `start` is that of `Transfer::start`.
            (Operation::Transfer(transfer), Some(coder)) => unsafe {
                transfer.start(send, recv, Some(&|peer| coder.len(peer)))
            },
            // SAFETY: as above.
            (Operation::Transfer(transfer), None) => unsafe { transfer.start(send, recv, None) },
            // SAFETY: the contract of `start` is that of `Protocol::start`.
            (Operation::Protocol(protocol), coder) => unsafe { protocol.start(send, recv, coder) },
        };
        if started.is_err() {
            entry.complete(&started);
        }
        started
    }

    /// Makes progress; whether it is complete, or was not started.
    ///
    /// # Errors
    /// Where a rank has failed or left; this exchange does not access the buffers any more.
    pub fn test(&self) -> Result<bool> {
        let entry = self.entry();
        let was_in_flight = entry.in_flight.load(SeqCst);
        let outcome = entry.test();
        if was_in_flight && !entry.in_flight.load(SeqCst) {
            // If this is a progress thread, the rank may be parked in the wait for this exchange.
            self.set.transport.wake();
        }
        outcome
    }

    /// Returns when it is complete. Makes progress on all exchanges of the plan. After an error, others that are in
    /// flight must still be waited for before their buffers are freed.
    ///
    /// # Errors
    /// As [`test`](Exchange::test); an error that a test returned is returned again.
    pub fn wait(&self) -> Result<()> {
        let (set, own) = (&self.set, self.entry());
        while !own.test()? {
            let mut alone = true;
            for other in set.in_flight().filter(|other| !std::ptr::eq(*other, own)) {
                alone = false;
                // Its errors are returned by the wait for it.
                let _ = other.test();
            }
            if alone {
                let outcome = own.wait_exclusive();
                if outcome.is_err() {
                    own.complete(&outcome);
                }
                outcome?;
            }
            let soonest = || set.in_flight().map(Entry::wake_hint).min();
            // A progress thread may complete it at any moment. The other exchanges may then wait for this rank.
            set.transport.park(&mut || match own.in_flight.load(SeqCst) {
                true => soonest().unwrap_or(WakeHint::Now),
                false => WakeHint::Now,
            });
        }
        Ok(())
    }

    /// Starts and waits. All ranks call this, or all call [`start`](Exchange::start).
    ///
    /// # Errors
    /// As [`start`](Exchange::start) and [`wait`](Exchange::wait).
    ///
    /// # Safety
    /// As [`start`](Exchange::start), until it returns.
    pub unsafe fn run(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let entry = self.entry();
        match &entry.spec.operation {
            Operation::Transfer(transfer) if !entry.spec.needs_coder => {
                let _access = entry.access();
                entry.begin()?;
                // SAFETY: the contract of `run` is that of `Transfer::run`.
                let outcome = unsafe { transfer.run(send, recv) };
                entry.complete(&Ok(()));
                outcome
            }
            _ => {
                // SAFETY: the contract of `run` covers the time until `wait` returns.
                unsafe { self.start(send, recv, coder)? };
                self.wait()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Comm;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    /// Complete after so many calls of `advance`.
    struct Countdown(AtomicUsize);

    impl Protocol for Countdown {
        unsafe fn start(&self, _: *const u8, _: *mut u8, _: Option<&Arc<dyn Coder>>) -> Result<()> {
            Ok(())
        }

        fn advance(&self) -> Result<bool> {
            let left = self.0.load(SeqCst);
            self.0.store(left.saturating_sub(1), SeqCst);
            Ok(left == 0)
        }

        fn wake_hint(&self) -> WakeHint {
            WakeHint::Nothing
        }
    }

    /// A rank that is parked in the wait for one exchange continues when a progress thread has completed it, though
    /// another one, which may wait for this rank, is still in flight.
    #[test]
    fn a_wait_ends_when_a_progress_thread_completes_the_exchange() {
        let _watchdog = ferrier_test::watchdog(20);
        let comm = Comm::one_rank();
        let spec = |calls: usize| {
            let empty = || BufferLayout { offsets: vec![0], len: 0 };
            let countdown = Box::new(Countdown(AtomicUsize::new(calls)));
            ExchangeSpec::new(empty(), empty(), Operation::Protocol(countdown))
        };
        let exchanges = exchanges(comm.transport(), vec![spec(1), spec(usize::MAX)]);
        for exchange in &exchanges {
            // SAFETY: no byte is moved.
            unsafe { exchange.start(std::ptr::null(), std::ptr::null_mut(), None).unwrap() };
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                while !exchanges[0].test().unwrap() {}
            });
            exchanges[0].wait().unwrap();
        });
    }
}
