//! Whose turn it is in a contest, and the pause before each turn.
//!
//! Threads of OpenMP spin after each call, those of Intel's runtime for 200 ms, and take a core from whoever runs
//! next. So contestants are not timed one repetition after the other's: each gets blocks of repetitions of its own, and
//! a block begins when the threads of the process are idle. The blocks of all contestants alternate, forwards and
//! backwards, so that a drift of the machine's speed affects all alike.

use std::time::Duration;

/// Blocks of each contestant, if there are as many repetitions. Even: each contestant's blocks have the same mean
/// position in time then.
const BLOCKS: usize = 4;
/// How long threads are observed.
const WINDOW: Duration = Duration::from_millis(6);
/// The most windows of a pause: threads that spin longer than 200 ms do not stop by themselves.
const WINDOWS: usize = 50;

/// Some repetitions of one contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedBlock {
    pub contestant: usize,
    pub repetitions: usize,
}

/// The blocks of a contest in which each contestant is timed `repeat` times. Pure.
pub fn blocks(contestants: usize, repeat: usize) -> Vec<TimedBlock> {
    let rounds = BLOCKS.min(repeat);
    let round = |number: usize| {
        let repetitions = (number + 1) * repeat / rounds - number * repeat / rounds;
        (0..contestants).map(move |position| {
            let contestant = if number.is_multiple_of(2) { position } else { contestants - 1 - position };
            TimedBlock { contestant, repetitions }
        })
    };
    (0..rounds).flat_map(round).collect()
}

/// Returns when the threads of this process are idle, or after 300 ms.
pub fn wait_until_idle() {
    wait_while_busy(WINDOWS, || {
        let before = cpu_time();
        std::thread::sleep(WINDOW);
        cpu_time().saturating_sub(before)
    });
}

/// Calls `window` until it returns less than a quarter of its length, or `most` times.
fn wait_while_busy(most: usize, window: impl FnMut() -> Duration) {
    std::iter::repeat_with(window).take(most).find(|busy| *busy < WINDOW / 4);
}

/// The time that all threads of this process have run.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes. On failure it stays zero: the process counts as idle.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn every_contestant_has_all_repetitions_and_the_same_mean_position() {
        for (contestants, repeat) in [(1, 1), (1, 100), (2, 7), (3, 5), (4, 100), (5, 3), (5, 4)] {
            let blocks = blocks(contestants, repeat);
            let of = |number| blocks.iter().enumerate().filter(move |(_, block)| block.contestant == number);
            for contestant in 0..contestants {
                let told = format!("{contestant} of {contestants}, {repeat} repetitions");
                let sizes: Vec<_> = of(contestant).map(|(_, block)| block.repetitions).collect();
                assert_eq!(sizes.iter().sum::<usize>(), repeat, "{told}");
                assert_eq!(sizes.len(), repeat.min(4), "{told}");
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                assert!(*least > 0 && most - least <= 1, "{told}: {sizes:?}");
                let positions = |number| of(number).map(|(at, _)| at).sum::<usize>();
                assert!(!sizes.len().is_multiple_of(2) || positions(contestant) == positions(0), "{told}");
            }
        }
        assert!(blocks(3, 0).is_empty() && blocks(0, 3).is_empty());
    }

    #[test]
    fn each_round_has_every_contestant_once() {
        let order: Vec<_> = blocks(3, 8).iter().map(|block| block.contestant).collect();
        assert_eq!(order, [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn a_pause_ends_when_threads_are_idle() {
        let busy = |times: &[u64]| {
            let mut windows = 0;
            wait_while_busy(5, || {
                windows += 1;
                Duration::from_millis(times[windows - 1])
            });
            windows
        };
        assert_eq!(busy(&[0]), 1);
        assert_eq!(busy(&[12, 6, 1, 9]), 3);
        assert_eq!(busy(&[6, 6, 6, 6, 6, 6]), 5);
    }

    #[test]
    fn the_time_of_all_threads_counts() {
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while cpu_time() < Duration::from_millis(20) && start.elapsed() < Duration::from_secs(60) {
                    std::hint::spin_loop();
                }
            });
        });
        assert!(cpu_time() >= Duration::from_millis(20));
    }
}
