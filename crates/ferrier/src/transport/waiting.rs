//! How a thread waits: a short spin, then giving way, then sleeping.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The longest sleep without a look.
const NAP: Duration = Duration::from_millis(20);
/// How late a sleeper may wake.
const LATE: Duration = Duration::from_micros(120);

/// Rounds of spinning, some milliseconds: who transforms small arrays in turn with other work of his own should not wait
/// for threads to wake, which takes as long as a transform of 64^3.
const SPINS: u32 = 80_000;

/// Threads of this process that may be busy at once; above the number of
/// cores spinning only takes time from the one that is waited for.
static BUSY: AtomicUsize = AtomicUsize::new(1);

/// Counts threads that compute, for as long as it lives.
#[derive(Debug)]
pub(crate) struct BusyThreads(usize);

impl BusyThreads {
    pub fn new(threads: usize) -> Self {
        BUSY.fetch_add(threads, Ordering::Relaxed);
        BusyThreads(threads)
    }
}

impl BusyThreads {
    /// Is there a core for each?
    pub fn fit() -> bool {
        BUSY.load(Ordering::Relaxed) <= crate::machine::cores()
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// One wait: call [`pause`](Backoff::pause) until what is awaited is there.
pub(crate) struct Backoff {
    rounds: u32,
    spins: u32,
}

impl Backoff {
    pub fn new() -> Self {
        let spins = if BusyThreads::fit() { SPINS } else { 0 };
        Backoff { rounds: 0, spins }
    }

    /// Waits a little, longer each time; true when it is time to sleep.
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

/// Where threads sleep until somebody changes something.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    sleepers: AtomicUsize,
    /// How often it rang while somebody slept or was about to.
    rings: AtomicUsize,
    lock: Mutex<()>,
    ring: Condvar,
}

impl Bell {
    /// Wakes all sleepers. Call after the change is visible; locks of what
    /// was changed may be held.
    pub fn ring(&self) {
        // Ordered against the sleeper's increment: either it sees the change, or we see it sleeping.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.rings.fetch_add(1, Ordering::SeqCst);
            drop(self.lock.lock().unwrap_or_else(|e| e.into_inner()));
            self.ring.notify_all();
        }
    }

    /// Waits until `done` says so.
    pub fn wait_until<R>(&self, mut done: impl FnMut() -> Option<R>) -> R {
        self.wait_for(|| done().ok_or(None))
    }

    /// Waits until `look` says so; where it does not, it may know of a time at
    /// which it is worth asking again.
    pub fn wait_for<R>(&self, mut look: impl FnMut() -> Result<R, Option<Instant>>) -> R {
        let mut backoff = Backoff::new();
        loop {
            let far = match look() {
                Ok(result) => return result,
                // A known time is slept away, but for what a timer may be late.
                Err(time) => time.is_some_and(|time| time > Instant::now() + LATE),
            };
            if far || backoff.pause() {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                // Looked at without our lock: what is looked at may have one of its own, under which another
                // thread rings.
                let heard = self.rings.load(Ordering::SeqCst);
                let result = look();
                if let Err(time) = &result {
                    // The time-out is a safety net; every change rings.
                    let time = time.map(|time| time.saturating_duration_since(Instant::now() + LATE / 2));
                    let patience = time.unwrap_or(NAP).min(NAP);
                    let guard = self.lock.lock().unwrap_or_else(|e| e.into_inner());
                    // Who rings from now on needs the lock to wake us, which we give away asleep.
                    if self.rings.load(Ordering::SeqCst) == heard {
                        let _ = self.ring.wait_timeout(guard, patience);
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

    /// A progress thread rings with the lock of a flight in its hand, which its rank wants when it looks.
    #[test]
    fn who_rings_may_hold_what_is_looked_at() {
        let _watchdog = ferrier_test::watchdog(60);
        let (bell, count, over) = (Bell::default(), Mutex::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while over.load(Ordering::SeqCst) == 0 {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    bell.ring();
                }
            });
            for _ in 0..20_000 {
                let wanted = *count.lock().unwrap() + 5;
                // With a time that is far off it sleeps at once.
                let later = || Err(Some(Instant::now() + Duration::from_secs(1)));
                bell.wait_for(|| if *count.lock().unwrap() >= wanted { Ok(()) } else { later() });
            }
            over.store(1, Ordering::SeqCst);
        });
    }
}
