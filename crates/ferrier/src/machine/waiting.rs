//! How a thread waits: it spins for a short time, then yields, then sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The longest sleep between two checks.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// How late a timer may wake a sleeping thread.
const TIMER_SLACK: Duration = Duration::from_micros(120);

/// Iterations of spinning; they take some milliseconds. A program that alternates small transforms with other work
/// should not wait for threads to wake, which takes as long as a transform of 64^3.
const SPINS: u32 = 80_000;

/// Threads of this process that may be busy at once. Above the number of cores, spinning only takes time from the
/// thread that is waited for.
static BUSY: AtomicUsize = AtomicUsize::new(1);
/// Threads that sleep until their pool is used.
static PARKED: AtomicUsize = AtomicUsize::new(0);

/// False with `FERRIER_SPIN=off`, which users set where other programs share the cores.
fn may_spin() -> bool {
    static MAY_SPIN: OnceLock<bool> = OnceLock::new();
    *MAY_SPIN.get_or_init(|| std::env::var_os("FERRIER_SPIN").is_none_or(|value| value != "off"))
}

/// Counts computing threads for as long as it lives.
#[derive(Debug)]
pub(crate) struct BusyThreads {
    threads: usize,
    parked: bool,
}

impl BusyThreads {
    pub fn new(threads: usize) -> Self {
        // Reading the environment allocates; transforms, which wait later, must not.
        may_spin();
        BUSY.fetch_add(threads, Ordering::Relaxed);
        BusyThreads { threads, parked: false }
    }

    /// Sets whether they sleep; then they are not busy.
    pub fn set_parked(&mut self, parked: bool) {
        if parked != self.parked {
            let (from, to) = if parked { (&BUSY, &PARKED) } else { (&PARKED, &BUSY) };
            from.fetch_sub(self.threads, Ordering::Relaxed);
            to.fetch_add(self.threads, Ordering::Relaxed);
            self.parked = parked;
        }
    }

    /// Whether there are more computing threads than cores, parked ones included.
    pub fn exceed_cores() -> bool {
        BUSY.load(Ordering::Relaxed) + PARKED.load(Ordering::Relaxed) > crate::machine::info::cores()
    }

    /// Whether there is a core for each busy thread, and threads may spin.
    pub fn fit() -> bool {
        BUSY.load(Ordering::Relaxed) <= crate::machine::info::cores() && may_spin()
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        let count = if self.parked { &PARKED } else { &BUSY };
        count.fetch_sub(self.threads, Ordering::Relaxed);
    }
}

/// One wait: call [`pause`](Backoff::pause) until the awaited condition holds.
pub(crate) struct Backoff {
    rounds: u32,
    spins: u32,
}

impl Backoff {
    pub fn new() -> Self {
        let spins = if BusyThreads::fit() { SPINS } else { 0 };
        Backoff { rounds: 0, spins }
    }

    /// Spins, then yields; true when the caller should sleep.
    pub fn pause(&mut self) -> bool {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= self.spins {
            std::hint::spin_loop();
        } else if self.rounds <= self.spins + 50 {
            std::thread::yield_now();
        } else {
            return true;
        }
        false
    }
}

/// A condition variable that spins before it sleeps, and whose notifier may hold the locks of the state that
/// waiting threads check.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    sleepers: AtomicUsize,
    /// Notifications sent while a thread slept or was about to.
    notifications: AtomicUsize,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Condition {
    /// Wakes all sleeping threads. Call it after the change is visible; locks of the changed state may be held.
    pub fn notify_all(&self) {
        // Ordered against the increment of `sleepers`: either the waiting thread sees the change, or this one sees it
        // sleeping.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.notifications.fetch_add(1, Ordering::SeqCst);
            drop(self.lock.lock().unwrap_or_else(|e| e.into_inner()));
            self.condvar.notify_all();
        }
    }

    /// Waits until `done` returns a value.
    pub fn wait_until<R>(&self, mut done: impl FnMut() -> Option<R>) -> R {
        self.wait_for(|| done().ok_or(None))
    }

    /// Waits until `check` returns a value. Its error may be a time at which the next check is worthwhile.
    pub fn wait_for<R>(&self, mut check: impl FnMut() -> Result<R, Option<Instant>>) -> R {
        let mut backoff = Backoff::new();
        loop {
            let far = match check() {
                Ok(result) => return result,
                // Sleeps until a known time, less what a timer may be late.
                Err(time) => time.is_some_and(|time| time > Instant::now() + TIMER_SLACK),
            };
            if far || backoff.pause() {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                // Checked without our lock: the state may have a lock of its own, under which another thread
                // notifies.
                let seen = self.notifications.load(Ordering::SeqCst);
                let result = check();
                if let Err(time) = &result {
                    // The time-out is a safety net; every change notifies.
                    let time =
                        time.map(|time| time.saturating_duration_since(Instant::now() + TIMER_SLACK / 2));
                    let timeout = time.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
                    let guard = self.lock.lock().unwrap_or_else(|e| e.into_inner());
                    // From now on a notifier needs the lock, which `wait_timeout` releases.
                    if self.notifications.load(Ordering::SeqCst) == seen {
                        let _ = self.condvar.wait_timeout(guard, timeout);
                    }
                }
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
                if let Ok(result) = result {
                    return result;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A progress thread notifies while it holds the lock of a transfer, which its rank takes in each check.
    #[test]
    fn the_notifier_may_hold_the_lock_of_the_checked_state() {
        let _watchdog = ferrier_test::watchdog(60);
        let (condition, count, over) = (Condition::default(), Mutex::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while over.load(Ordering::SeqCst) == 0 {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    condition.notify_all();
                }
            });
            for _ in 0..20_000 {
                let wanted = *count.lock().unwrap() + 5;
                // With a time that is far off it sleeps at once.
                let later = || Err(Some(Instant::now() + Duration::from_secs(1)));
                condition.wait_for(|| if *count.lock().unwrap() >= wanted { Ok(()) } else { later() });
            }
            over.store(1, Ordering::SeqCst);
        });
    }
}
