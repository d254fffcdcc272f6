//! Taking rows of the next block along, a few at every visit of the passes.
//!
//! Rows a multiple of a page apart share a few places of every cache: fetched
//! early, they would push each other out before they are used. So they are
//! fetched a few rows ahead only, and copied to where there is room. That way
//! memory is read all the time, and not only by the first pass over a block.

use super::touch::prefetch;
use super::vector::{Op, Vector};

/// Rows that are on their way from memory: as many as take the time that it takes.
const LEAD: usize = 4;

/// Numbers from one row of so many complex elements to the next: an odd number
/// of cache lines, so that rows do not meet in a cache.
pub(super) fn pitch<T>(lines: usize) -> usize {
    let line = 64 / size_of::<T>();
    ((2 * lines).div_ceil(line) | 1) * line
}

/// A walk over rows that are copied.
pub(super) struct Taking<T> {
    /// Addresses of the rows, and how many there are.
    table: *const *mut T,
    rows: usize,
    /// Numbers of a row.
    numbers: usize,
    to: *mut T,
    pitch: usize,
    /// The next row, the vectors that visits have paid for it, and how many it takes.
    row: usize,
    credit: usize,
    cost: usize,
    /// Copies the rows that are paid for: compiled for the vectors' instruction set.
    more: unsafe fn(&mut Taking<T>),
}

impl<T> Taking<T> {
    /// The rows of `table`, `lines` complex elements each, into a pocket.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set. As long as the walk lives, the
    /// rows can be read and the pocket be written, and nobody else does.
    pub unsafe fn new<V: Vector<T = T>>(
        (table, rows): (*const *mut T, usize),
        lines: usize,
        to: *mut T,
    ) -> Self {
        let more = |taking: &mut Taking<T>| {
            // SAFETY: what was promised when the walk was made.
            unsafe { V::enter(Take::<V>(taking)) }
        };
        Taking {
            table,
            rows,
            numbers: 2 * lines,
            to,
            pitch: pitch::<T>(lines),
            row: 0,
            credit: 0,
            cost: (2 * lines).div_ceil(V::LANES),
            more,
        }
    }

    /// Vectors to copy in all.
    pub fn vectors(&self) -> usize {
        self.rows * self.cost
    }

    /// Pays for so many more; copies what is paid for, row by row.
    #[inline(always)]
    pub fn more(&mut self, vectors: usize) {
        self.credit = self.credit.saturating_add(vectors);
        if self.row < self.rows && self.credit >= self.cost {
            // SAFETY: what was promised when the walk was made.
            unsafe { (self.more)(self) }
        }
    }
}

struct Take<'a, V: Vector>(&'a mut Taking<V::T>);

impl<V: Vector> Op<V> for Take<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let Taking { table, rows, numbers, to, pitch, .. } = *self.0;
        let (it, whole) = (self.0, numbers - numbers % V::LANES);
        while it.row < rows && it.credit >= it.cost {
            it.credit -= it.cost;
            // SAFETY: rows, their lengths and the pocket are as the walk was made.
            unsafe {
                let ahead = *table.add((it.row + LEAD).min(rows - 1));
                let (from, to) = (*table.add(it.row), to.add(it.row * pitch));
                for at in (0..whole).step_by(V::LANES) {
                    prefetch(ahead.wrapping_add(at).cast_const().cast());
                    V::load(from.add(at)).store(to.add(at));
                }
                std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), numbers - whole);
            }
            it.row += 1;
        }
    }
}
