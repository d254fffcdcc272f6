//! A thread that makes progress on exchanges in flight, so that passes need not.
//!
//! MPI makes progress only when it is called. Either passes poll now and then
//! ([`Progress::Poll`](crate::Progress)), or this thread polls all the time; it costs a core, and needs an MPI
//! library that more than one thread may call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use super::variant::Exchanges;
use crate::machine::waiting::{BusyThreads, Condition};
use crate::{Error, Result};

/// No call is running.
const IDLE: usize = usize::MAX;
/// Between two polls, where threads have to share cores.
const PAUSE: Duration = Duration::from_micros(20);

struct Polled {
    /// The exchanges of each variant.
    exchanges: Vec<Exchanges>,
    /// The variant that is running.
    which: AtomicUsize,
    stop: AtomicBool,
    condition: Condition,
}

/// The thread of a plan.
pub(crate) struct ProgressThread {
    polled: Arc<Polled>,
    thread: Option<JoinHandle<()>>,
    _busy: BusyThreads,
}

impl ProgressThread {
    /// # Errors
    /// Where the thread cannot be started.
    pub fn new(exchanges: Vec<Exchanges>) -> Result<ProgressThread> {
        let (which, stop) = (AtomicUsize::new(IDLE), AtomicBool::new(false));
        let polled = Arc::new(Polled { exchanges, which, stop, condition: Condition::default() });
        let own = polled.clone();
        let thread = std::thread::Builder::new().name("ferrier progress".into()).spawn(move || own.run());
        let thread = thread.map_err(|error| {
            Error::transport(format!("the progress thread could not be started: {error}")).caused_by(error)
        })?;
        Ok(ProgressThread { polled, thread: Some(thread), _busy: BusyThreads::new(1) })
    }

    /// Polls the exchanges of a variant until the guard is dropped.
    pub fn during(&self, which: usize) -> PollGuard<'_> {
        self.polled.which.store(which, SeqCst);
        self.polled.condition.notify_all();
        PollGuard(&self.polled)
    }
}

/// A call is running.
pub(crate) struct PollGuard<'a>(&'a Polled);

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        self.0.which.store(IDLE, SeqCst);
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.polled.stop.store(true, SeqCst);
        self.polled.condition.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Polled {
    fn run(&self) {
        loop {
            let which = self.condition.wait_until(|| {
                let which = self.which.load(SeqCst);
                (which != IDLE || self.stop.load(SeqCst)).then_some(which)
            });
            if self.stop.load(SeqCst) {
                return;
            }
            if let Some(exchanges) = self.exchanges.get(which) {
                // Errors of exchanges in flight are returned by `wait`.
                exchanges.iter().for_each(|exchange| drop(exchange.test()));
            }
            if BusyThreads::fit() { std::thread::yield_now() } else { std::thread::sleep(PAUSE) }
        }
    }
}
