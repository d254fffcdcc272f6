//! Benchmark of the memory bandwidth.

use std::time::Instant;

use crate::Result;
use crate::machine::buffer::Buffer;
use crate::machine::memory_limit::memory_left;
use crate::machine::pool::Pool;
use crate::machine::send_ptr::SendPtr;

/// The copy bandwidth of `threads` threads, in GB/s: bytes read plus bytes written, of arrays larger than the
/// caches, in huge pages; the best of 5 runs. Takes about 0.2 s. Allocates.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory); [`Error::Transport`](crate::Error::Transport) if a thread cannot be
/// started.
pub fn copy_speed(threads: usize) -> Result<f64> {
    const MOST: usize = 32 << 20;
    // At most a quarter of the available memory for both arrays.
    let scalars = MOST.min((memory_left() / 64) as usize).max(1 << 16);
    Ok(2.0 * (scalars * size_of::<f64>()) as f64 / copy_seconds(threads, scalars, 5)? / 1e9)
}

/// Seconds in which `threads` threads copy this many bytes from one array to another, in cache where both fit there;
/// the best of 20 runs. Allocates.
///
/// # Errors
/// As [`copy_speed`].
pub fn copy_time(threads: usize, bytes: usize) -> Result<f64> {
    copy_seconds(threads, bytes.div_ceil(size_of::<f64>()), 20)
}

/// Seconds in which `threads` threads copy this many doubles: the minimum of `runs`.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory); [`Error::Transport`](crate::Error::Transport) if a thread cannot be
/// started.
pub(crate) fn copy_seconds(threads: usize, scalars: usize, runs: usize) -> Result<f64> {
    const WHAT: &str = "measuring the copy speed";
    let pool = Pool::new(threads.max(1))?;
    let (from, to) = (Buffer::<f64>::new(scalars, WHAT)?, Buffer::<f64>::new(scalars, WHAT)?);
    let (from, to) = (from.as_slice(), SendPtr(to.as_ptr()));
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        pool.run(&|index| {
            let (first, last) = (scalars * index / pool.threads(), scalars * (index + 1) / pool.threads());
            let part = &from[first..last];
            // SAFETY: the ranges of different threads are disjoint, and `to` has as many elements as `from`.
            unsafe { part.as_ptr().copy_to_nonoverlapping(to.get().add(first), part.len()) };
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
