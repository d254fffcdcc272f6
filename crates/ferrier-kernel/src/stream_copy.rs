//! Rows on their way out of a cache: copied past all caches, a few cache lines
//! at a time, while something else is computed.

const LINE: usize = 64;

/// Rows that are copied as [`StoreHint::Stream`](crate::StoreHint::Stream) stores, in order.
///
/// A kernel that gets some with a [`LineBlock`](crate::LineBlock) copies as many as it
/// likes while it transforms; the caller sees to the rest.
#[derive(Debug)]
pub struct StreamCopy<T> {
    from: *const T,
    to: *mut T,
    /// Numbers from one row to the next, on both sides.
    steps: [usize; 2],
    /// Numbers of a row, and how many of the first row have left.
    row: usize,
    done: usize,
    /// Rows that have not, the first one included.
    rows: usize,
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
        StreamCopy { from, to, steps: [0; 2], row: 0, done: 0, rows: 0 }
    }
}

impl<T> StreamCopy<T> {
    /// `rows` rows of `row` numbers, `steps` numbers apart there and here.
    ///
    /// # Safety
    /// Until they have left, the rows can be read at `from` and be written at
    /// `to`, the two do not overlap, and nobody else touches them.
    pub unsafe fn new(from: *const T, to: *mut T, row: usize, rows: usize, steps: [usize; 2]) -> Self {
        StreamCopy { from, to, steps, row, done: 0, rows: if row == 0 { 0 } else { rows } }
    }

    /// Whether all have left.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// About how many cache lines are left.
    pub fn cache_lines(&self) -> usize {
        ((self.rows * self.row).saturating_sub(self.done) * size_of::<T>()).div_ceil(LINE)
    }

    /// Copies what belongs into the next `lines` cache lines of the target.
    #[inline(never)]
    pub fn advance(&mut self, mut lines: usize) {
        let line = LINE / size_of::<T>();
        while lines > 0 && self.rows > 0 {
            // SAFETY: inside the row; what was promised when this was made.
            let left = unsafe {
                let (from, to) = (self.from.add(self.done), self.to.add(self.done));
                let left = self.row - self.done;
                // Up to a whole line first; then as many whole ones as there are.
                let begun = to as usize % LINE / size_of::<T>();
                let numbers = if begun > 0 { line - begun } else { (left / line).min(lines) * line };
                let numbers = if numbers == 0 { left } else { numbers.min(left) };
                stream(from.cast(), to.cast(), numbers * size_of::<T>());
                self.done += numbers;
                lines -= numbers.div_ceil(line);
                left - numbers
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

/// Copies bytes past the caches, as far as they come in eights. Runs that follow each other in memory fill
/// whole cache lines also where they do not begin with one.
///
/// # Safety
/// `from` can be read, `to` can be written, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn stream(mut from: *const u8, mut to: *mut u8, mut left: usize) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si64, _mm_stream_si128};
    // SAFETY: the caller's word; the instructions are part of SSE2, which is always there.
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
/// As above.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's word.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}
