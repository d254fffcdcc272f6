//! Copies shared out to the threads of a rank.

use super::box_copy::BoxCopy;
use crate::machine::pool::Pool;

/// A copy of a route, in two forms: from (or to) the array itself, and from (or to) a segment.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub route: usize,
    pub direct: BoxCopy,
    pub packed: BoxCopy,
}

impl Task {
    pub fn volume(&self) -> usize {
        self.direct.volume()
    }

    fn cut(&self, axis: usize, range: std::ops::Range<usize>) -> Task {
        let (direct, packed) = (self.direct.cut(axis, range.clone()), self.packed.cut(axis, range));
        Task { direct, packed, ..*self }
    }

    fn simplified(&self) -> Task {
        Task { direct: self.direct.simplified(), packed: self.packed.simplified(), ..*self }
    }
}

/// The planes of an array along its slowest axis: how many, and the elements of each.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    /// Its axes, the slowest first.
    pub axes: [usize; 3],
    pub count: usize,
    pub stride: usize,
}

/// Tasks of each thread.
#[doc(hidden)]
pub struct Sweep {
    shares: Vec<Vec<Task>>,
}

impl Sweep {
    /// Equal numbers of elements for each thread.
    pub fn by_volume(tasks: &[Task], threads: usize) -> Sweep {
        let total: usize = tasks.iter().map(Task::volume).sum();
        let mut shares = vec![Vec::new(); threads];
        // Elements that were shared out; thread t gets those up to (t + 1) / threads of all.
        let (mut done, mut thread) = (0, 0);
        for task in tasks {
            let (axis, mut start) = (task.direct.cut_axis(), 0);
            let n = task.direct.shape[axis];
            let plane = task.volume() / n.max(1);
            while start < n {
                let quota = ((thread + 1) * total).div_ceil(threads).saturating_sub(done);
                if quota == 0 && thread + 1 < threads {
                    thread += 1;
                    continue;
                }
                let planes =
                    if thread + 1 < threads { quota.div_ceil(plane).min(n - start) } else { n - start };
                shares[thread].push(task.cut(axis, start..start + planes).simplified());
                (start, done) = (start + planes, done + planes * plane);
            }
        }
        Sweep { shares }
    }

    /// To each thread what goes to a range of planes of the target: several tasks may have the same target, and are
    /// done in their order.
    pub fn by_plane(tasks: &[Task], threads: usize, planes: Planes) -> Sweep {
        let Planes { axes: [axis, ..], count, stride } = planes;
        let share = |thread: usize| -> Vec<Task> {
            let [first, end] = [thread, thread + 1].map(|t| t * count / threads);
            let part = |task: &Task| {
                let (at, n) = (task.direct.to.offset / stride, task.direct.shape[axis]);
                let clip = |plane: usize| plane.clamp(at, at + n) - at;
                task.cut(axis, clip(first)..clip(end))
            };
            tasks.iter().map(part).filter(|task| task.volume() > 0).map(|task| task.simplified()).collect()
        };
        Sweep { shares: (0..threads).map(share).collect() }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.shares.iter().all(Vec::is_empty)
    }

    /// Runs `work` for every task, on the threads of the pool.
    pub(super) fn run(&self, pool: &Pool, work: impl Fn(&Task) + Sync) {
        if !self.is_empty() {
            pool.run(&|thread| self.shares[thread].iter().for_each(&work));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::box_copy::Place;
    use super::*;

    fn task(shape: [usize; 3], offset: usize) -> Task {
        let place = Place { offset, strides: [100, 10, 1] };
        let copy = BoxCopy { shape, from: place, to: place };
        Task { route: 0, direct: copy, packed: copy }
    }

    /// Every element is in one share, and shares are about equal.
    #[test]
    fn threads_share_elements_evenly() {
        let tasks = [task([4, 5, 6], 0), task([1, 3, 3], 7), task([9, 1, 2], 300)];
        let planes = Planes { axes: [0, 1, 2], count: 12, stride: 100 };
        for threads in 1..6 {
            for sweep in [Sweep::by_volume(&tasks, threads), Sweep::by_plane(&tasks, threads, planes)] {
                let volumes: Vec<usize> =
                    sweep.shares.iter().map(|share| share.iter().map(Task::volume).sum()).collect();
                assert_eq!(volumes.iter().sum::<usize>(), 120 + 9 + 18, "{threads} threads: {volumes:?}");
            }
            let volumes = |share: &Vec<Task>| share.iter().map(Task::volume).sum::<usize>();
            let most = Sweep::by_volume(&tasks, threads).shares.iter().map(volumes).max();
            assert!(most <= Some(147_usize.div_ceil(threads) + 30), "{threads} threads: {most:?}");
        }
    }
}
