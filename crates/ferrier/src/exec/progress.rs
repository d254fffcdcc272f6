//! A thread that looks after what flies, so that passes need not.
//!
//! MPI makes progress only when it is called. Either passes call it now and
//! then ([`Progress::Poll`](crate::Progress)), or this thread does all the
//! time; it costs a core, and needs a library that more than one thread may call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use super::cpu::bind::Exchanges;
use crate::machine::waiting::{BusyThreads, Condition};
use crate::{Error, Result};

/// None.
const IDLE: usize = usize::MAX;
/// Between two looks, where threads have to share cores.
const NAP: Duration = Duration::from_micros(20);

struct Watch {
    /// The movers of each kind of transform.
    movers: Vec<Exchanges>,
    /// Whose are in the air.
    which: AtomicUsize,
    stop: AtomicBool,
    condition: Condition,
}

/// The thread of a plan.
pub(crate) struct ProgressThread {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
    _busy: BusyThreads,
}

impl ProgressThread {
    /// # Errors
    /// Where the thread cannot be started.
    pub fn new(movers: Vec<Exchanges>) -> Result<ProgressThread> {
        let (which, stop) = (AtomicUsize::new(IDLE), AtomicBool::new(false));
        let watch = Arc::new(Watch { movers, which, stop, condition: Condition::default() });
        let own = watch.clone();
        let thread = std::thread::Builder::new().name("ferrier progress".into()).spawn(move || own.run());
        let thread = thread.map_err(|error| {
            Error::transport(format!("the progress thread could not be started: {error}")).caused_by(error)
        })?;
        Ok(ProgressThread { watch, thread: Some(thread), _busy: BusyThreads::new(1) })
    }

    /// Looks after a transform of this kind for as long as the answer lives.
    pub fn during(&self, which: usize) -> Shift<'_> {
        self.watch.which.store(which, SeqCst);
        self.watch.condition.notify_all();
        Shift(&self.watch)
    }
}

/// A transform is under way.
pub(crate) struct Shift<'a>(&'a Watch);

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        self.0.which.store(IDLE, SeqCst);
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.watch.stop.store(true, SeqCst);
        self.watch.condition.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn run(&self) {
        loop {
            let which = self.condition.wait_until(|| {
                let which = self.which.load(SeqCst);
                (which != IDLE || self.stop.load(SeqCst)).then_some(which)
            });
            if self.stop.load(SeqCst) {
                return;
            }
            if let Some(movers) = self.movers.get(which) {
                // What goes wrong in the air comes out in the wait for it.
                movers.iter().for_each(|mover| drop(mover.test()));
            }
            if BusyThreads::fit() { std::thread::yield_now() } else { std::thread::sleep(NAP) }
        }
    }
}
