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
                let (at, len) = pieces.get(number);
                // SAFETY: a piece of the array, by this function's contract.
                let values = unsafe { std::slice::from_raw_parts(array.get().add(at), len) };
                for (place, number) in self.pieces[number].iter().zip((self.norm)(values).to_array()) {
                    place.store(number.to_bits(), Relaxed);
                }
            }
        });
        let known = self.pieces[..pieces.count()].iter();
        known.map(|norm| Norm::from_array(norm.each_ref().map(|n| f64::from_bits(n.load(Relaxed))))).sum()
    }
}

/// An array in pieces without gaps.
struct Pieces {
    /// Scalars from one row to the next, those of them that belong to the array, rows.
    row: usize,
    used: usize,
    rows: usize,
}

impl Pieces {
    fn new(geometry: &Geometry, batch: usize) -> Pieces {
        let (volume, shape) = (geometry.volume * batch, geometry.part.shape());
        let fast = (0..3).min_by_key(|&axis| geometry.strides[axis]).unwrap_or(2);
        let width = geometry.strides[fast];
        if geometry.volume == geometry.part.volume() * width {
            return Pieces { row: volume, used: volume, rows: usize::from(volume > 0) };
        }
        // Only rows are ever padded.
        let row = (0..3).filter(|&axis| axis != fast).map(|axis| geometry.strides[axis]).min().unwrap_or(1);
        Pieces { row, used: shape[fast] * width, rows: volume / row }
    }

    fn per_row(&self) -> usize {
        self.used.div_ceil(PIECE)
    }

    fn count(&self) -> usize {
        self.rows * self.per_row()
    }

    /// Where a piece begins, and how many scalars it has.
    fn get(&self, number: usize) -> (usize, usize) {
        let (row, piece) = (number / self.per_row(), number % self.per_row());
        (row * self.row + piece * PIECE, PIECE.min(self.used - piece * PIECE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Box3, Order};

    #[test]
    fn pieces_are_all_of_an_array_and_nothing_else() {
        let part = Box3::new([2, 0, 1], [5, 7, 12]);
        for (geometry, width) in [
            (Geometry::dense(part, Order::C, true), 1),
            (Geometry::dense(part, Order::C, false), 2),
            (Geometry::padded_real(part, Order::C), 1),
            (Geometry::padded_real(Box3::new([0; 3], [1, 1, 40_000]), Order::C), 1),
            (Geometry::padded_real(Box3::new([0; 3], [3, 4, 1]), Order::C), 1),
        ] {
            let pieces = Pieces::new(&geometry, 2);
            let mut seen = vec![0; 2 * geometry.volume];
            for number in 0..pieces.count() {
                let (at, len) = pieces.get(number);
                seen[at..at + len].iter_mut().for_each(|times| *times += 1);
            }
            let [lo, hi] = [geometry.part.lo, geometry.part.hi];
            for b in 0..2 {
                for i in lo[0]..hi[0] {
                    for j in lo[1]..hi[1] {
                        for k in lo[2]..hi[2] {
                            let at = b * geometry.volume + geometry.offset([i, j, k]);
                            seen[at..at + width].iter_mut().for_each(|times| *times -= 1);
                        }
                    }
                }
            }
            assert!(seen.iter().all(|times| *times == 0), "{geometry:?}");
        }
    }
}
