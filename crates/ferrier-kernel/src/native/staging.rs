//! Copies the next block's strided rows to a staging buffer, a few at every
//! visit of the passes.
//!
//! Rows a multiple of a page apart map to a few sets of every cache: prefetched
//! early, they would evict each other before they are used. So they are
//! prefetched only a few rows ahead and copied to a buffer without conflicts.
//! Memory is then read during all passes, not only during the first pass over a block.

use super::cache_hint::prefetch;
use super::vector::{Op, Vector};

/// The distance of the prefetch, in rows: copying that many takes about the latency of memory.
const LEAD: usize = 4;

/// The most bytes of a staging buffer: two of them and the current block fit a second-level cache.
pub(super) const STAGING_BYTES: usize = 320 << 10;

/// Scalars from one staged row of `lines` complex elements to the next: an odd
/// number of cache lines, so that rows map to different sets.
pub(super) fn row_pitch<T>(lines: usize) -> usize {
    let line = 64 / size_of::<T>();
    ((2 * lines).div_ceil(line) | 1) * line
}

/// A copy of rows in progress.
pub(super) struct StagingCopy<T> {
    /// Addresses of the rows, and how many there are.
    table: *const *mut T,
    rows: usize,
    /// Scalars of a row.
    scalars: usize,
    to: *mut T,
    pitch: usize,
    /// The next row, the vectors that visits have granted, and the vectors of a row.
    row: usize,
    granted: usize,
    cost: usize,
    /// Copies the granted rows: compiled for the instruction set of the vectors.
    copy_rows: unsafe fn(&mut StagingCopy<T>),
}

impl<T> StagingCopy<T> {
    /// Copies the rows of `table`, `lines` complex elements each, to a staging buffer.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set. During the life of the copy the
    /// rows are readable and not written, and the buffer is writable and accessed by this copy only.
    pub unsafe fn new<V: Vector<T = T>>(
        (table, rows): (*const *mut T, usize),
        lines: usize,
        to: *mut T,
    ) -> Self {
        let copy_rows = |staging: &mut StagingCopy<T>| {
            // SAFETY: `new`'s contract: the processor has the instruction set; rows and buffer are valid.
            unsafe { V::enter(CopyRows::<V>(staging)) }
        };
        StagingCopy {
            table,
            rows,
            scalars: 2 * lines,
            to,
            pitch: row_pitch::<T>(lines),
            row: 0,
            granted: 0,
            cost: (2 * lines).div_ceil(V::LANES),
            copy_rows,
        }
    }

    /// The number of vectors to copy.
    pub fn vectors(&self) -> usize {
        self.rows * self.cost
    }

    /// Grants `vectors` more; copies the granted rows.
    #[inline(always)]
    pub fn advance(&mut self, vectors: usize) {
        self.granted = self.granted.saturating_add(vectors);
        if self.row < self.rows && self.granted >= self.cost {
            // SAFETY: `new`'s contract holds for the life of the copy.
            unsafe { (self.copy_rows)(self) }
        }
    }
}

struct CopyRows<'a, V: Vector>(&'a mut StagingCopy<V::T>);

impl<V: Vector> Op<V> for CopyRows<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let StagingCopy { table, rows, scalars, to, pitch, .. } = *self.0;
        let (it, whole) = (self.0, scalars - scalars % V::LANES);
        while it.row < rows && it.granted >= it.cost {
            it.granted -= it.cost;
            // SAFETY: `new`'s contract: the table has `rows` rows of `scalars` scalars, the buffer as many at `pitch`.
            unsafe {
                let ahead = *table.add((it.row + LEAD).min(rows - 1));
                let (from, to) = (*table.add(it.row), to.add(it.row * pitch));
                for at in (0..whole).step_by(V::LANES) {
                    prefetch(ahead.wrapping_add(at).cast_const().cast());
                    V::load(from.add(at)).store(to.add(at));
                }
                std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), scalars - whole);
            }
            it.row += 1;
        }
    }
}
