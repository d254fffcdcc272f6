//! The number of threads that pays for a small transform.

/// What it costs to share the work of a transform between threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadCosts {
    /// Seconds of one thread per floating-point operation, by the usual count of 5 n log2 n a line.
    pub flop_s: f64,
    /// Seconds of a pass to wake a second thread and to wait for it, and for each further thread.
    pub wake_s: [f64; 2],
    /// Seconds to load a byte that another core has stored.
    pub byte_s: f64,
}

impl Default for ThreadCosts {
    /// Of threads that spin between calls, on servers of 2022 to 2025: 16 threads of a Xeon take 5 us longer for a pass of
    /// 16^3 than their arithmetic, 8 take 4; a core loads a cache line of another one in 13 ns if many are under way.
    fn default() -> Self {
        ThreadCosts { flop_s: 0.035e-9, wake_s: [3.0e-6, 0.15e-6], byte_s: 0.2e-9 }
    }
}

/// The work of a transform on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedWork {
    /// Floating-point operations.
    pub flops: f64,
    /// Passes over memory.
    pub passes: usize,
    /// Bytes that pass from one pass to the next.
    pub bytes_between: f64,
}

impl SharedWork {
    /// Predicted seconds on so many threads.
    fn seconds(&self, costs: &ThreadCosts, threads: usize) -> f64 {
        let (each, others) = (1.0 / threads as f64, threads as f64 - 1.0);
        let wake = if threads > 1 { costs.wake_s[0] + (others - 1.0) * costs.wake_s[1] } else { 0.0 };
        // Of what a thread loads, the others have stored their shares.
        let shared = self.bytes_between * others * each * each;
        self.flops * costs.flop_s * each + shared * costs.byte_s + self.passes as f64 * wake
    }

    /// The number of threads that pays: all of `most` if they take at most a twentieth longer than the best number,
    /// otherwise the fewest that do.
    pub fn threads(&self, costs: &ThreadCosts, most: usize) -> usize {
        let most = most.max(1);
        let best = (1..=most).map(|threads| self.seconds(costs, threads)).fold(f64::INFINITY, f64::min);
        let pays = |threads: &usize| self.seconds(costs, *threads) <= 1.05 * best;
        Some(most).filter(pays).or_else(|| (1..=most).find(pays)).unwrap_or(most)
    }
}

/// Lines of a block where so many lines are shared out over threads: `best`, or fewer where a thread has few blocks, so that
/// each has as many. Whole cache lines, of `per_cache_line` lines side by side.
#[must_use]
pub fn shared_block(best: usize, lines: usize, threads: usize, per_cache_line: usize) -> usize {
    let rounds = lines.div_ceil((best * threads).max(1)).max(1);
    if threads <= 1 || rounds > 3 {
        return best;
    }
    lines.div_ceil(rounds * threads).next_multiple_of(per_cache_line.max(1)).clamp(1, best.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube(n: usize, batch: usize) -> SharedWork {
        let volume = (n * n * n) as f64;
        let all = volume * batch as f64;
        let (passes, between) = if batch > 1 { (1, 0.0) } else { (2, 16.0 * all) };
        SharedWork { flops: 5.0 * all * volume.log2(), passes, bytes_between: between }
    }

    #[test]
    fn small_cubes_take_one_thread_and_large_ones_take_all() {
        let threads =
            |n: usize, batch: usize, most: usize| cube(n, batch).threads(&ThreadCosts::default(), most);
        assert_eq!([8, 12, 16].map(|n| threads(n, 1, 16)), [1; 3]);
        assert_eq!([12, 16].map(|n| threads(n, 1, 2)), [1; 2]);
        assert_eq!([32, 48, 64].map(|n| threads(n, 1, 2)), [2; 3]);
        assert!(threads(24, 1, 16) > 4);
        assert_eq!(threads(256, 1, 64), 64);
        assert_eq!((threads(16, 2, 2), threads(16, 512, 16)), (2, 16));
        // More work never takes fewer threads.
        let counts: Vec<usize> = (4..80).map(|n| threads(n, 1, 16)).collect();
        assert!(counts.is_sorted(), "{counts:?}");
    }

    #[test]
    fn few_blocks_are_as_many_for_each_thread() {
        // 256 columns, 48 x 48 lines of f32, 64 lines.
        assert_eq!(shared_block(32, 256, 16, 4), 16);
        assert_eq!(shared_block(64, 2304, 16, 8), 48);
        assert_eq!(shared_block(32, 64, 16, 4), 4);
        // Whole cache lines, if threads stay idle; never more than the best; one thread and many blocks have the best.
        assert_eq!(shared_block(32, 33, 16, 4), 4);
        assert_eq!(shared_block(3, 7, 2, 4), 3);
        assert_eq!(
            [shared_block(32, 256, 1, 4), shared_block(32, 65536, 16, 4), shared_block(8, 0, 4, 4)],
            [32, 32, 1]
        );
    }

    #[test]
    fn threads_that_are_slow_to_wake_do_not_pay() {
        let slow = ThreadCosts { wake_s: [1e-3, 1e-4], ..ThreadCosts::default() };
        assert_eq!(cube(64, 1).threads(&slow, 16), 1);
        assert_eq!(cube(64, 1).threads(&ThreadCosts::default(), 0), 1);
    }
}
