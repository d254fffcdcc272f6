//! Units of work, shared out over the threads of a pass.
//!
//! A thread takes the units of its own share first: neighbours, and in every call the same ones, so that it finds what
//! it loaded and stored in the calls before in its own caches. Then it helps the others.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many units of a share have been claimed, in passes of even and of odd number. Padding keeps the counters of two
/// threads on different cache lines, and what processors prefetch with them.
#[derive(Default)]
struct Claimed([AtomicUsize; 2], #[allow(dead_code, reason = "keeps its neighbours away")] [u64; 14]);

/// The shares of all threads.
pub(super) struct Shares {
    claimed: Vec<Claimed>,
    passes: usize,
}

impl Shares {
    pub fn new(threads: usize) -> Self {
        Shares { claimed: (0..threads).map(|_| Claimed::default()).collect(), passes: 0 }
    }

    /// Begins a pass, in which every thread has [`claims`](PassShares::claims): nothing is claimed.
    pub fn begin(&mut self) -> PassShares<'_> {
        self.passes += 1;
        PassShares { claimed: &self.claimed, pass: self.passes % 2 }
    }
}

/// The shares of all threads in one pass.
#[derive(Clone, Copy)]
pub(super) struct PassShares<'a> {
    claimed: &'a [Claimed],
    pass: usize,
}

impl<'a> PassShares<'a> {
    /// The claims of a thread in a pass of so many units.
    pub fn claims(self, thread: usize, units: usize) -> Claims<'a> {
        let PassShares { claimed, pass } = self;
        // Each thread resets its counter of the next pass: one thread would wait for the cache lines of all others.
        claimed[thread].0[1 - pass].store(0, Ordering::Relaxed);
        Claims { shares: claimed, pass, thread, units, helped: 0 }
    }
}

/// The claims of a thread.
pub(super) struct Claims<'a> {
    shares: &'a [Claimed],
    pass: usize,
    thread: usize,
    units: usize,
    /// Shares that have nothing left: its own, then those of the threads after it.
    helped: usize,
}

impl Claims<'_> {
    /// Claims up to `most` neighbouring units; `None` if all are claimed.
    pub fn next(&mut self, most: usize) -> Option<Range<usize>> {
        let threads = self.shares.len();
        while self.helped < threads {
            let share = (self.thread + self.helped) % threads;
            let [low, high] = [share, share + 1].map(|end| self.units * end / threads);
            let first = low + self.shares[share].0[self.pass].fetch_add(most, Ordering::Relaxed);
            if first < high {
                return Some(first..high.min(first + most));
            }
            self.helped += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_claimed_once_and_own_ones_first() {
        for (threads, units, most) in [(1, 7, 2), (3, 10, 2), (4, 3, 1), (2, 0, 1), (5, 64, 64)] {
            let mut shares = Shares::new(threads);
            for pass in 0..4 {
                let shares = shares.begin();
                let mut claims: Vec<Claims<'_>> = (0..threads).map(|t| shares.claims(t, units)).collect();
                let mut seen = vec![0; units];
                let first: Vec<_> = claims.iter_mut().map(|claims| claims.next(most)).collect();
                for (thread, range) in first.iter().enumerate() {
                    if units >= threads {
                        assert_eq!(range.as_ref().expect("its own share").start, units * thread / threads);
                    }
                }
                let rest = claims.iter_mut().flat_map(|claims| std::iter::from_fn(move || claims.next(most)));
                first.into_iter().flatten().chain(rest).flatten().for_each(|unit| seen[unit] += 1);
                let once = seen.iter().all(|&count| count == 1);
                assert!(once, "pass {pass}, {threads} threads, {units} units: {seen:?}");
            }
        }
    }
}
