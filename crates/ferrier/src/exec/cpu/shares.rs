//! Units of work, shared out over the threads of a pass.
//!
//! A thread takes the units of its own share first: neighbours, and in every call the same ones, so that it finds what
//! it loaded and stored in the calls before in its own caches. Then it helps the others: threads of its rank, or ranks of
//! one thread that share memory. A share that its thread has not begun is left to it for a few microseconds: threads of a
//! short pass begin at different times, and units that change cores are loaded from the caches of other cores.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::transport::NodeCounters;

/// How many units of a share have been claimed, in passes of even and of odd number: of the pass's units, and of those that
/// follow them. Padding keeps the counters of two threads on different cache lines, and what processors prefetch with them.
#[derive(Default)]
struct Claimed([[AtomicUsize; 2]; 2], #[allow(dead_code, reason = "keeps its neighbours away")] [u64; 12]);

/// How long after the beginning of a pass a share is left to its thread. Threads that spin begin within about a microsecond.
const PATIENCE: Duration = Duration::from_micros(5);

/// The shares of all threads.
pub(super) struct Shares {
    threads: Vec<Claimed>,
    passes: usize,
    /// Counters of all ranks, where ranks help each other.
    ranks: Option<Box<dyn NodeCounters>>,
    /// Units of other ranks that this one has done, in all calls.
    helped: AtomicUsize,
}

impl Shares {
    pub fn new(threads: usize, ranks: Option<Box<dyn NodeCounters>>) -> Self {
        let threads = (0..threads).map(|_| Claimed::default()).collect();
        Shares { threads, passes: 0, ranks, helped: AtomicUsize::new(0) }
    }

    /// Begins a pass, which every thread [enters](PassShares::enter): nothing is claimed.
    pub fn begin(&mut self) -> PassShares<'_> {
        self.passes += 1;
        PassShares { shares: self, pass: self.passes % 2 }
    }

    /// Before a call, when no rank is in one: nothing is claimed of what these counters count.
    pub fn reset_counters(&self, counters: impl Iterator<Item = usize>) {
        if let Some(ranks) = &self.ranks {
            counters.for_each(|counter| ranks.clear(counter));
        }
    }

    /// Units of other ranks that this one has done.
    #[cfg(test)]
    pub fn helped(&self) -> usize {
        self.helped.load(Ordering::Relaxed)
    }
}

/// The shares of all threads in one pass.
#[derive(Clone, Copy)]
pub(super) struct PassShares<'a> {
    shares: &'a Shares,
    pass: usize,
}

impl<'a> PassShares<'a> {
    /// Resets a thread's counters of the next pass: one thread would wait for the cache lines of all others.
    pub fn enter(self, thread: usize) {
        let next = &self.shares.threads[thread].0[1 - self.pass];
        next.iter().for_each(|claimed| claimed.store(0, Ordering::Relaxed));
    }

    /// The claims of a thread in a pass of so many units.
    pub fn claims(self, thread: usize, units: usize) -> Claims<'a> {
        self.claims_counted(thread, units, 0)
    }

    /// The claims of a thread of units that follow those of the pass, without waiting for other threads.
    pub fn claims_after(self, thread: usize, units: usize) -> Claims<'a> {
        self.claims_counted(thread, units, 1)
    }

    fn claims_counted(self, thread: usize, units: usize, after: usize) -> Claims<'a> {
        let (shares, counter) = (&self.shares.threads[..], [self.pass, after]);
        Claims {
            source: Source::Threads { shares, counter, thread, begun: Instant::now(), helped: 0 },
            units,
        }
    }

    /// The claims of this rank in a pass of its own, or (`other`) of another rank, whose units are counted by this counter.
    pub fn claims_of(self, counter: usize, units: usize, other: bool) -> Option<Claims<'a>> {
        let ranks = &**self.shares.ranks.as_ref()?;
        let helped = other.then_some(&self.shares.helped);
        Some(Claims { source: Source::Ranks { ranks, counter, helped }, units })
    }
}

/// The units of a thread.
struct Share<'a> {
    units: Range<usize>,
    claimed: &'a AtomicUsize,
}

impl<'a> Share<'a> {
    fn new(shares: &'a [Claimed], [pass, after]: [usize; 2], units: usize, thread: usize) -> Self {
        let [low, high] = [thread, thread + 1].map(|end| units * end / shares.len());
        Share { units: low..high, claimed: &shares[thread].0[pass][after] }
    }

    /// How many units are claimed; `None` if all are. A load leaves the cache line to the thread.
    fn claimed(&self) -> Option<usize> {
        Some(self.claimed.load(Ordering::Relaxed)).filter(|claimed| *claimed < self.units.len())
    }

    /// Claims up to `most` units.
    fn claim(&self, most: usize) -> Option<Range<usize>> {
        let first = self.units.start + self.claimed.fetch_add(most, Ordering::Relaxed);
        (first < self.units.end).then(|| first..self.units.end.min(first + most))
    }
}

/// The claims of a thread.
pub(super) struct Claims<'a> {
    source: Source<'a>,
    units: usize,
}

/// Where units are claimed.
enum Source<'a> {
    Threads {
        shares: &'a [Claimed],
        /// Whether the pass has an odd number, and whether these units follow others.
        counter: [usize; 2],
        thread: usize,
        begun: Instant,
        /// Shares that have nothing left: its own, then those of the threads after it.
        helped: usize,
    },
    Ranks {
        ranks: &'a dyn NodeCounters,
        counter: usize,
        /// Counts what is done for other ranks.
        helped: Option<&'a AtomicUsize>,
    },
}

impl Claims<'_> {
    /// Claims up to `most` neighbouring units of the thread's own share, while it still has others to do: looking for those of
    /// other threads comes after them.
    pub fn ahead(&mut self, most: usize) -> Option<Range<usize>> {
        match &self.source {
            Source::Threads { helped: 0, shares, counter, thread, .. } => {
                Share::new(shares, *counter, self.units, *thread).claim(most)
            }
            Source::Threads { .. } => None,
            Source::Ranks { .. } => self.next(most),
        }
    }

    /// Claims up to `most` neighbouring units; `None` if all are claimed.
    pub fn next(&mut self, most: usize) -> Option<Range<usize>> {
        match &mut self.source {
            Source::Threads { shares, counter, thread, begun, helped } => {
                let share_of =
                    |number: usize| Share::new(shares, *counter, self.units, number % shares.len());
                if *helped == 0 {
                    let own = share_of(*thread).claim(most);
                    if own.is_some() {
                        return own;
                    }
                    // Shares of one unit at most are claimed when their threads begin: one thread looks for others.
                    *helped = if self.units <= shares.len() && *thread > 0 { shares.len() } else { 1 };
                }
                loop {
                    let late = begun.elapsed() > PATIENCE;
                    let mut expected = false;
                    while *helped < shares.len() {
                        let share = share_of(*thread + *helped);
                        match share.claimed() {
                            None => {}
                            Some(0) if !late => expected = true,
                            Some(_) => {
                                if let Some(claimed) = share.claim(most) {
                                    return Some(claimed);
                                }
                            }
                        }
                        *helped += 1;
                    }
                    if !expected || *thread > 0 {
                        return None;
                    }
                    *helped = 1;
                    std::hint::spin_loop();
                }
            }
            Source::Ranks { ranks, counter, helped } => {
                // Most often all units of another rank are claimed: then its counter is only read.
                if ranks.value(*counter) >= self.units as u64 {
                    return None;
                }
                let first = ranks.take(*counter, most as u64) as usize;
                let claimed = first..self.units.min(first + most);
                if let Some(helped) = helped {
                    helped.fetch_add(claimed.len(), Ordering::Relaxed);
                }
                (!claimed.is_empty()).then_some(claimed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_claimed_once_and_own_ones_first() {
        for (threads, units, most) in [(1, 7, 2), (3, 10, 2), (4, 3, 1), (2, 0, 1), (5, 64, 64)] {
            let mut shares = Shares::new(threads, None);
            for pass in 0..4 {
                let shares = shares.begin();
                (0..threads).for_each(|thread| shares.enter(thread));
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

    #[test]
    fn threads_that_do_not_begin_are_waited_for_and_replaced() {
        // Few units: the first thread alone takes those of others.
        let mut shares = Shares::new(4, None);
        let pass = shares.begin();
        let start = Instant::now();
        let mut claims = [1, 0].map(|thread| pass.claims(thread, 4));
        assert_eq!(claims.each_mut().map(|claims| claims.next(1)), [Some(1..2), Some(0..1)]);
        assert_eq!(claims[0].next(1), None);
        assert_eq!(claims[1].next(1), Some(2..3));
        assert!(start.elapsed() > PATIENCE);
        assert_eq!([claims[1].next(1), claims[1].next(1)], [Some(3..4), None]);
        // Many units: whoever comes late.
        let mut shares = Shares::new(2, None);
        let mut claims = shares.begin().claims(1, 8);
        assert_eq!(claims.next(4), Some(4..8));
        std::thread::sleep(2 * PATIENCE);
        assert_eq!([claims.next(3), claims.next(3), claims.next(3)], [Some(0..3), Some(3..4), None]);
    }

    #[test]
    fn units_ahead_are_own_ones() {
        let mut shares = Shares::new(2, None);
        let mut claims = shares.begin().claims(1, 4);
        assert_eq!([claims.ahead(1), claims.ahead(3), claims.ahead(1)], [Some(2..3), Some(3..4), None]);
        std::thread::sleep(2 * PATIENCE);
        assert_eq!([claims.next(1), claims.ahead(1), claims.next(1)], [Some(0..1), None, Some(1..2)]);
    }

    #[test]
    fn ranks_claim_every_unit_once_and_again_after_a_reset() {
        let _watchdog = ferrier_test::watchdog(60);
        const UNITS: usize = 1000;
        let claimed = crate::ranks(3).run(|comm| {
            let mut shares = Shares::new(1, Some(comm.transport().node_counters(comm.size())?));
            let mut own = Vec::new();
            for call in 0..3 {
                shares.reset_counters(std::iter::once(comm.rank()));
                comm.transport().barrier()?;
                let shares = shares.begin();
                for step in 0..comm.size() {
                    let owner = (comm.rank() + step) % comm.size();
                    let mut claims = shares.claims_of(owner, UNITS, step > 0).expect("there are counters");
                    own.extend(
                        std::iter::from_fn(|| claims.next(7)).flatten().map(|unit| (call, owner, unit)),
                    );
                }
                comm.transport().barrier()?;
            }
            Ok(own)
        });
        let mut all: Vec<_> = claimed.expect("no rank fails").into_iter().flatten().collect();
        all.sort_unstable();
        let every = (0..3)
            .flat_map(|call| (0..3).flat_map(move |owner| (0..UNITS).map(move |unit| (call, owner, unit))));
        assert!(all.into_iter().eq(every));
    }
}
