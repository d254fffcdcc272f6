//! The threads inside a rank.
//!
//! A transform is a few short passes, each split evenly between the threads. So the pool has one operation: it runs
//! a closure once on every thread. It allocates nothing after it is made.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::machine::waiting::{BusyThreads, Condition};
use crate::{Error, Result};

type Job = *const (dyn Fn(usize) + Sync);

/// Padding keeps what follows on another cache line, and off the line that processors prefetch with it.
struct Apart<T>(T, #[allow(dead_code, reason = "keeps its neighbours away")] [u64; 16]);

impl<T> Apart<T> {
    fn new(content: T) -> Self {
        Apart(content, [0; 16])
    }
}

/// What workers spin on: only the caller of `run` writes to it.
struct Start {
    round: AtomicUsize,
    /// The job of this round; `None` before the first. On the line of `round`, which a thread has loaded.
    job: UnsafeCell<Option<Job>>,
    stop: AtomicBool,
    /// Do the threads sleep until the next round, without spinning?
    parked: AtomicBool,
}

struct Shared {
    start: Box<Apart<Start>>,
    /// Of each thread but the caller's, the last round that it has completed. A common counter would go from core to core,
    /// one thread after the other.
    completed: Vec<Apart<AtomicUsize>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Threads wait for the next round.
    begun: Condition,
    /// The caller waits for the threads.
    ended: Condition,
}

// SAFETY: `job` is written while no thread runs one, before `round` is increased; threads read it after they have seen
// the increase. The closure is `Sync`, and `run` borrows it until every thread has returned from it.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

/// A fixed number of threads, the caller of [`run`](Pool::run) among them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: Mutex<BusyThreads>,
}

/// The interval between two checks of a parked thread.
const PARKED_INTERVAL: Duration = Duration::from_millis(20);

impl Pool {
    /// A pool of `threads` threads, the calling one included.
    pub fn new(threads: usize) -> Result<Pool> {
        let start = Start {
            round: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            parked: AtomicBool::new(false),
        };
        let shared = Arc::new(Shared {
            start: Box::new(Apart::new(start)),
            completed: (1..threads).map(|_| Apart::new(AtomicUsize::new(0))).collect(),
            panic: Mutex::new(None),
            begun: Condition::default(),
            ended: Condition::default(),
        });
        let busy = Mutex::new(BusyThreads::new(threads.max(1) - 1));
        let mut pool = Pool { shared, workers: Vec::new(), busy };
        for index in 1..threads {
            let shared = pool.shared.clone();
            let worker = std::thread::Builder::new()
                .name(format!("ferrier {index}"))
                .spawn(move || work(&shared, index))
                .map_err(|error| {
                    Error::transport(format!("thread {index} of {threads} could not be started: {error}"))
                        .caused_by(error)
                })?;
            pool.workers.push(worker);
        }
        // A thread allocates when it first runs: that happens here, not in a transform.
        pool.run(&|_| ());
        Ok(pool)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(0)` to `job(threads - 1)`, each on a thread of its own, and returns when all have returned. Resumes
    /// the panic of a job on the calling thread.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        if self.workers.is_empty() {
            return job(0);
        }
        let (shared, start) = (&*self.shared, &self.shared.start.0);
        // Read first: an exchange would take the line from the threads that spin on it.
        if start.parked.load(SeqCst) {
            start.parked.store(false, SeqCst);
            lock(&self.busy).set_parked(false);
        }
        // SAFETY: only the lifetime changes. `job` is borrowed until this function returns, and it returns or unwinds
        // only when all threads have completed the round: none uses the pointer after that.
        let erased = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(job) };
        // SAFETY: all threads have returned from the job before, and read this one after the next line.
        unsafe { *start.job.get() = Some(erased) };
        let round = start.round.fetch_add(1, SeqCst) + 1;
        shared.begun.notify_all();
        let own = catch_unwind(AssertUnwindSafe(|| job(0)));
        let mut running = shared.completed.iter().peekable();
        shared.ended.wait_until(|| {
            while running.next_if(|completed| completed.0.load(SeqCst) == round).is_some() {}
            running.peek().is_none().then_some(())
        });
        let theirs = lock(&shared.panic).take();
        if let Some(payload) = own.err().or(theirs) {
            resume_unwind(payload);
        }
    }

    /// Lets the threads sleep until the next run and removes them from the count of busy threads, so that another
    /// pool can use their cores. Otherwise the threads of an idle pool would spin while another one computes, or
    /// neither would spin because both together exceed the number of cores.
    pub fn park(&self) {
        self.shared.start.0.parked.store(true, SeqCst);
        lock(&self.busy).set_parked(true);
        self.shared.begun.notify_all();
    }

    /// Parks them where this pool and others have more threads than there are cores: neither would spin, in their runs too.
    pub fn park_if_crowded(&self) {
        if !self.workers.is_empty() && BusyThreads::exceed_cores() {
            self.park();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.start.0.stop.store(true, SeqCst);
        self.shared.begun.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn work(shared: &Shared, index: usize) {
    let (start, mut done) = (&shared.start.0, 0);
    loop {
        let stop = shared.begun.wait_for(|| {
            if start.round.load(SeqCst) != done {
                return Ok(false);
            }
            if start.stop.load(SeqCst) {
                return Ok(true);
            }
            // A parked thread sleeps at once.
            Err(start.parked.load(SeqCst).then(|| Instant::now() + PARKED_INTERVAL))
        });
        if stop {
            return;
        }
        done += 1;
        // SAFETY: `run` wrote it before the round that this thread has seen, and writes again only when this thread is done.
        let job = unsafe { *start.job.get() }.expect("a round has a job");
        // SAFETY: `run` borrows the closure until this thread has completed the round, which is after this call.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| unsafe { (*job)(index) })) {
            lock(&shared.panic).get_or_insert(payload);
        }
        shared.completed[index - 1].0.store(done, SeqCst);
        shared.ended.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The message of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "(no message)".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_every_round() {
        let pool = Pool::new(3).unwrap();
        let counts = [const { AtomicUsize::new(0) }; 3];
        for _ in 0..200 {
            pool.run(&|index| {
                counts[index].fetch_add(1, SeqCst);
            });
        }
        assert_eq!(counts.map(|count| count.into_inner()), [200; 3]);
    }

    #[test]
    fn a_parked_pool_works_again() {
        let pool = Pool::new(3).unwrap();
        let count = AtomicUsize::new(0);
        for _ in 0..3 {
            pool.park();
            assert!(pool.shared.start.0.parked.load(SeqCst));
            for _ in 0..2 {
                pool.run(&|_| {
                    count.fetch_add(1, SeqCst);
                });
                assert!(!pool.shared.start.0.parked.load(SeqCst));
            }
        }
        assert_eq!(count.into_inner(), 18);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_can_be_used_again() {
        let pool = Pool::new(2).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| pool.run(&|index| assert!(index != 1, "planted"))));
        assert!(panic_text(&*caught.unwrap_err()).contains("planted"));
        pool.run(&|_| ());
    }
}
