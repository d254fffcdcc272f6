//! A copy of rows with non-temporal stores, a few cache lines at a time, while
//! a kernel computes.

const LINE: usize = 64;

/// A copy of rows with non-temporal stores, in order, that is advanced in small steps.
///
/// A kernel that gets one with a `LineBlock` advances it while it transforms;
/// the caller completes the rest.
#[derive(Debug)]
pub struct StreamCopy<T> {
    from: *const T,
    to: *mut T,
    /// Scalars from one row to the next, of source and target.
    steps: [usize; 2],
    /// Scalars of a row, and how many of the first row are copied.
    row: usize,
    done: usize,
    /// Rows that remain, the first one included.
    rows: usize,
    /// Whether the target has no gaps between rows.
    adjoin: bool,
}

impl<T> Clone for StreamCopy<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StreamCopy<T> {}

impl<T> Default for StreamCopy<T> {
    fn default() -> Self {
        let (from, to) = (std::ptr::null(), std::ptr::null_mut());
        StreamCopy { from, to, steps: [0; 2], row: 0, done: 0, rows: 0, adjoin: true }
    }
}

impl<T> StreamCopy<T> {
    /// A copy of `rows` rows of `row` scalars; `steps` are the distances of rows of source and target.
    ///
    /// # Safety
    /// Until the copy is complete or dropped, the rows are readable at `from` and
    /// writable at `to`, the two do not overlap, and no other code writes the
    /// former or accesses the latter.
    pub unsafe fn new(from: *const T, to: *mut T, row: usize, rows: usize, steps: [usize; 2]) -> Self {
        let rows = if row == 0 { 0 } else { rows };
        StreamCopy { from, to, steps, row, done: 0, rows, adjoin: steps[1] == row }
    }

    /// Whether the copy is complete.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// About how many cache lines remain.
    pub fn cache_lines(&self) -> usize {
        ((self.rows * self.row).saturating_sub(self.done) * size_of::<T>()).div_ceil(LINE)
    }

    /// Copies the next `lines` cache lines of the target.
    #[inline(never)]
    pub fn advance(&mut self, mut lines: usize) {
        let line = LINE / size_of::<T>();
        while lines > 0 && self.rows > 0 {
            // SAFETY: `new`'s contract: the row is readable and writable; `done` and `count` stay within it.
            let left = unsafe {
                let (from, to) = (self.from.add(self.done), self.to.add(self.done));
                let left = self.row - self.done;
                // First up to the next cache line; then whole cache lines.
                let begun = to as usize % LINE / size_of::<T>();
                let count = if begun > 0 { line - begun } else { (left / line).min(lines) * line };
                let count = if count == 0 { left } else { count.min(left) };
                // Of a cache line that no other row of this copy completes, a non-temporal store would load and store the
                // rest in memory.
                if self.adjoin || count.is_multiple_of(line) {
                    stream(from.cast(), to.cast(), count * size_of::<T>());
                } else {
                    std::ptr::copy_nonoverlapping(from, to, count);
                }
                self.done += count;
                lines -= count.div_ceil(line);
                left - count
            };
            if left == 0 {
                self.next_row();
            }
        }
    }

    fn next_row(&mut self) {
        (self.done, self.rows) = (0, self.rows - 1);
        self.from = self.from.wrapping_add(self.steps[0]);
        self.to = self.to.wrapping_add(self.steps[1]);
    }
}

/// Copies bytes with non-temporal stores, except for a remainder below 8 bytes. Consecutive calls for adjacent
/// memory fill whole cache lines together.
///
/// # Safety
/// `from` is valid for `left` reads, `to` for `left` writes, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn stream(mut from: *const u8, mut to: *mut u8, mut left: usize) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si64, _mm_stream_si128};
    // SAFETY: all accesses stay within the `left` bytes of `stream`'s contract; every x86-64 processor has SSE2.
    unsafe {
        while left >= 8 {
            let step = match (to as usize).is_multiple_of(16) {
                true if left >= LINE => {
                    let four = [0, 16, 32, 48].map(|at| _mm_loadu_si128(from.add(at).cast()));
                    for (at, x) in [0, 16, 32, 48].into_iter().zip(four) {
                        _mm_stream_si128(to.add(at).cast(), x);
                    }
                    LINE
                }
                true if left >= 16 => {
                    _mm_stream_si128(to.cast(), _mm_loadu_si128(from.cast()));
                    16
                }
                _ => {
                    _mm_stream_si64(to.cast(), from.cast::<i64>().read_unaligned());
                    8
                }
            };
            (from, to, left) = (from.add(step), to.add(step), left - step);
        }
        std::ptr::copy_nonoverlapping(from, to, left);
    }
}

/// # Safety
/// `from` is valid for `bytes` reads, `to` for `bytes` writes, and they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: `stream`'s contract is that of `copy_nonoverlapping`.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}
