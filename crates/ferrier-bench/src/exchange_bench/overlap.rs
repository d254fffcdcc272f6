//! How much of an exchange computation hides: its blocking time against the time of posting, testing and waiting around
//! computation that takes as long.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use ferrier::{Array, Comm, Event, EventKind, Plan, Real};
use serde::Serialize;

use crate::failure::Outcome;
use crate::timing::{median, timed};

/// Polls during the computation.
const POLLS: usize = 32;

/// Means over ranks of medians over repetitions; the keys are part of the contract.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OverlapTimes {
    /// The exchange without computation, blocking, on the slowest rank.
    pub blocking_ms: f64,
    /// The computation between start and wait.
    pub compute_ms: f64,
    /// Starting the exchange.
    pub post_ms: f64,
    /// Polling it during the computation.
    pub test_ms: f64,
    /// Waiting for it after the computation.
    pub wait_ms: f64,
    /// Post, test and wait.
    pub overhead_ms: f64,
    /// The part of the blocking time that computation hides.
    pub hidden: f64,
}

/// Runs a plan of one reshape with computation of `blocking_ms` while its exchange is in flight. Collective.
///
/// # Errors
/// Those of the library.
pub fn overlapped<T: Real>(
    comm: &Comm,
    plan: &mut Plan<T>,
    (input, output): (&Array<T>, &mut Array<T>),
    blocking_ms: f64,
    repeat: usize,
) -> Outcome<OverlapTimes> {
    let rounds = (blocking_ms / 1e3 / seconds_of_a_round()).ceil().max(1.0) as u64;
    let rounds = comm.max(&[rounds as f64])?[0] as u64;
    let computed = Arc::new(AtomicU64::new(0));
    let own = computed.clone();
    plan.set_meanwhile(Some(Box::new(move |poll| {
        for _ in 0..POLLS {
            let start = Instant::now();
            compute(rounds.div_ceil(POLLS as u64));
            own.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
            poll();
        }
    })));
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..repeat {
        computed.store(0, Relaxed);
        timed(comm, || plan.forward(input, output))?;
        let events = plan.events();
        let of = |kind: EventKind| events.iter().filter(move |event| event.kind == kind);
        let compute = computed.load(Relaxed) as f64 / 1e6;
        let test: f64 = events.iter().map(|event| event.test_ms).sum();
        let wait: f64 = of(EventKind::Wait).map(Event::own_ms).sum();
        let post: f64 = of(EventKind::Post).map(Event::own_ms).sum();
        for (list, time) in times.iter_mut().zip([compute, post, test, (wait - compute).max(0.0)]) {
            list.push(time);
        }
    }
    plan.set_meanwhile(None);
    let sums = comm.sum(&times.each_ref().map(|list| median(list)))?;
    let [compute_ms, post_ms, test_ms, wait_ms] = [0, 1, 2, 3].map(|at| sums[at] / comm.size() as f64);
    let overhead_ms = post_ms + test_ms + wait_ms;
    let hidden = 1.0 - overhead_ms / blocking_ms;
    Ok(OverlapTimes { blocking_ms, compute_ms, post_ms, test_ms, wait_ms, overhead_ms, hidden })
}

/// Arithmetic without memory accesses.
fn compute(rounds: u64) {
    let mut value = 1.0_f64;
    for _ in 0..rounds * 64 {
        value = black_box(value * 0.999_999 + 1e-9);
    }
    black_box(value);
}

/// Seconds of one round: the best of some measurements.
fn seconds_of_a_round() -> f64 {
    const ROUNDS: u64 = 500;
    let once = || {
        let start = Instant::now();
        compute(ROUNDS);
        start.elapsed().as_secs_f64() / ROUNDS as f64
    };
    (0..8).map(|_| once()).fold(f64::INFINITY, f64::min)
}
