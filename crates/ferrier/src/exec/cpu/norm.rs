//! Norms of arrays in main memory, on all threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::Real;
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use ferrier_codec::Norm;
use ferrier_plan::geometry::Geometry;

/// Scalars of the piece that a thread takes at a time.
const PIECE: usize = 1 << 14;

/// Computes norms without allocating.
pub(super) struct NormSum<T> {
    norm: fn(&[T]) -> Norm,
    /// Norms of pieces.
    pieces: Vec<[AtomicU64; 4]>,
    next: AtomicUsize,
}

impl<T: Real> NormSum<T> {
    /// For batches of arrays like these.
    pub fn new<'a>(
        norm: fn(&[T]) -> Norm,
        batch: usize,
        arrays: impl Iterator<Item = &'a Geometry>,
    ) -> NormSum<T> {
        let most = arrays.map(|geometry| Pieces::new(geometry, batch).count()).max().unwrap_or(0);
        let pieces = (0..most).map(|_| Default::default()).collect();
        NormSum { norm, pieces, next: AtomicUsize::new(0) }
    }

    /// The norm of this rank's part of an array.
    ///
    /// # Safety
    /// The array is as its geometry says, and not written to.
    pub unsafe fn norm(&self, pool: &Pool, geometry: &Geometry, batch: usize, array: *const T) -> Norm {
        let pieces = Pieces::new(geometry, batch);
        let array = SendPtr(array.cast_mut());
        self.next.store(0, Relaxed);
        pool.run(&|_| {
            loop {
                let number = self.next.fetch_add(1, Relaxed);
                if number >= pieces.count() {
                    return;
                }
                // SAFETY: a piece of the array, by this function's contract.
                let values = |at, len| unsafe { std::slice::from_raw_parts(array.get().add(at), len) };
                let norm: Norm = pieces.get(number).map(|(at, len)| (self.norm)(values(at, len))).sum();
                for (place, number) in self.pieces[number].iter().zip(norm.to_array()) {
                    place.store(number.to_bits(), Relaxed);
                }
            }
        });
        let known = self.pieces[..pieces.count()].iter();
        known.map(|norm| Norm::from_array(norm.each_ref().map(|n| f64::from_bits(n.load(Relaxed))))).sum()
    }
}

/// An array in pieces of about [`PIECE`] scalars. A piece is some runs of scalars without gaps, or a part of one.
struct Pieces {
    start: usize,
    /// Scalars of a run, and runs.
    run: usize,
    runs: usize,
    /// Number and distance of runs along what is slower, the fastest first.
    outer: [(usize, usize); 4],
    /// Runs of a piece, and pieces of a run.
    together: usize,
    per_run: usize,
}

impl Pieces {
    fn new(geometry: &Geometry, batch: usize) -> Pieces {
        let shape = geometry.part.shape();
        let side = |axis: usize| match axis {
            3 => (batch, geometry.batch),
            _ => (shape[axis], geometry.strides[axis]),
        };
        let mut outer = [0, 1, 2, 3].map(side);
        // Sides of one element may have any stride.
        outer.sort_by_key(|&(count, stride)| (count == 1, stride));
        let mut run = geometry.width;
        for side in &mut outer {
            if side.0 != 1 && side.1 != run {
                break;
            }
            run *= side.0;
            side.0 = 1;
        }
        let runs = if run == 0 { 0 } else { outer.iter().map(|side| side.0).product() };
        let together = (PIECE / run.max(1)).max(1);
        Pieces { start: geometry.start, run, runs, outer, together, per_run: run.div_ceil(PIECE) }
    }

    fn count(&self) -> usize {
        self.runs.div_ceil(self.together) * self.per_run
    }

    /// Where the parts of a piece begin, and how many scalars each has.
    fn get(&self, number: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (first, part) = (number / self.per_run * self.together, number % self.per_run);
        let len = PIECE.min(self.run - part * PIECE);
        (first..self.runs.min(first + self.together)).map(move |mut index| {
            let mut at = self.start + part * PIECE;
            for (count, stride) in self.outer {
                at += index % count * stride;
                index /= count;
            }
            (at, len)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayStrides, Box3, Order};

    #[test]
    fn pieces_are_all_of_an_array_and_nothing_else() {
        let part = Box3::new([2, 0, 1], [5, 7, 12]);
        let long = Box3::new([0; 3], [1, 1, 40_000]);
        let strided = |strides: ArrayStrides, real| Geometry::strided(part, &strides, real);
        for geometry in [
            Geometry::dense(part, Order::C, true),
            Geometry::dense(part, Order::C, false),
            Geometry::dense(Box3::EMPTY, Order::C, false),
            Geometry::padded_real(part, Order::C),
            Geometry::padded_real(long, Order::C),
            Geometry::padded_real(Box3::new([0; 3], [3, 4, 1]), Order::C),
            strided(ArrayStrides::inside([5, 9, 14], [1, 1, 2], Order::F), false),
            strided(ArrayStrides::interleaved(part.shape(), 2, Order::C), true),
            strided(ArrayStrides::interleaved(part.shape(), 5, Order::C).offset(3), false),
            Geometry::strided(long, &ArrayStrides::new([0, 0, 2]), true),
            Geometry::strided(long, &ArrayStrides::new([0, 0, 1]).offset(7), true),
        ] {
            let pieces = Pieces::new(&geometry, 2);
            let mut seen = vec![0; geometry.scalars(2)];
            for (at, len) in (0..pieces.count()).flat_map(|number| pieces.get(number)) {
                seen[at..at + len].iter_mut().for_each(|times| *times += 1);
            }
            let [lo, hi] = [geometry.part.lo, geometry.part.hi];
            for b in 0..2 {
                for i in lo[0]..hi[0] {
                    for j in lo[1]..hi[1] {
                        for k in lo[2]..hi[2] {
                            let at = b * geometry.batch + geometry.offset([i, j, k]);
                            seen[at..at + geometry.width].iter_mut().for_each(|times| *times -= 1);
                        }
                    }
                }
            }
            assert!(seen.iter().all(|times| *times == 0), "{geometry:?}");
        }
    }
}
