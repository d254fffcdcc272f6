//! The first passes of contiguous lines that do not fit a cache.
//!
//! A line is a matrix of `rows` rows. The first passes combine elements of the same column, so they are done for a few
//! columns at a time, which stay in a first-level cache; the other passes stay within a row. Only the order of
//! butterflies differs from that of shorter lines: bits are the same.
// Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop)]

use super::butterfly::{dft, lists, with_radix};
use super::cache_hint::prefetch_second_level;
use super::fft::{Fft, LastPass};
use super::passes::steps;
use super::staging::row_pitch;
use super::vector::{Op, Vector};
use crate::real::Real;

/// Longer lines go by columns and rows.
const LONG_BYTES: usize = 128 << 10;

/// Bytes of the columns that go together in a row: two cache lines.
const COLUMN_BYTES: usize = 128;

/// Butterflies of a column between a prefetch and its use: about the latency of memory.
const LEAD: usize = 2;

/// Rows and columns of a line, and the twiddles of the first passes.
pub(super) struct LongLines<T> {
    rows: usize,
    columns: usize,
    /// Columns that go together.
    few: usize,
    /// Scalars from one row to the next in the work area: an odd number of cache lines.
    pitch: usize,
    /// The number of first passes.
    levels: usize,
    /// In the order of their use. Real and imaginary parts, not vectors of each: as many bytes as the line has.
    twiddles: Vec<T>,
    /// The index of the first twiddle of each pass.
    at: Vec<usize>,
}

impl<T: Real> LongLines<T> {
    /// `None` for lines that fit a cache, and where rows are no multiples of the vector length.
    pub fn new<V: Vector<T = T>>(fft: &Fft<T>) -> Option<Self> {
        let element = 2 * size_of::<T>();
        let LastPass::Radix(last) = fft.last_pass else { return None };
        if fft.n * element <= LONG_BYTES || !last.is_multiple_of(V::LINES) {
            return None;
        }
        // About as many rows as columns.
        let rows = |levels: usize| fft.leading[..levels].iter().map(|level| level.radix).product::<usize>();
        let levels = (1..=fft.leading.len()).min_by_key(|&levels| rows(levels).max(fft.n / rows(levels)))?;
        let (rows, columns) = (rows(levels), fft.n / rows(levels));
        let few = (COLUMN_BYTES / element).max(V::LINES);
        let (mut twiddles, mut at, mut done) = (vec![], vec![], 1);
        for level in &fft.leading[..levels] {
            at.push(twiddles.len());
            for column in (0..columns).step_by(few) {
                for row in 0..level.m / columns {
                    for first in (column..columns.min(column + few)).step_by(V::LINES) {
                        for p in 1..level.radix {
                            twiddles.extend((first..first + V::LINES).flat_map(|column| {
                                let (re, im) = fft.twiddle(level.radix, (row * columns + column) * done, p);
                                [T::rounded(re), T::rounded(im)]
                            }));
                        }
                    }
                }
            }
            done *= level.radix;
        }
        Some(LongLines { rows, columns, few, pitch: row_pitch::<T>(columns), levels, twiddles, at })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Scalars from one row to the next in the work area.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The number of first passes.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Scalars of the work area.
    pub fn work_len(&self) -> usize {
        self.rows * self.pitch
    }

    /// The first passes of a line, into the rows of the work area.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; `self` was made for `fft`; the line has `n` elements, the work area
    /// [`work_len`](Self::work_len) scalars; they do not overlap.
    pub unsafe fn first_passes<V: Vector<T = T>>(&self, fft: &Fft<T>, from: *const T, work: *mut T) {
        for column in (0..self.columns).step_by(self.few) {
            let columns = self.few.min(self.columns - column);
            let to = work.wrapping_add(2 * column);
            let (mut source, mut from_pitch) = (from.wrapping_add(2 * column), 2 * self.columns);
            let mut blocks = 1;
            // The next columns, or the same ones where there are none.
            let ahead = if column + columns < self.columns { 2 * columns } else { 0 };
            for (level, &at) in fft.leading[..self.levels].iter().zip(&self.at) {
                let rows = level.m / self.columns;
                let twiddles = self.twiddles[at + 2 * column * rows * (level.radix - 1)..].as_ptr();
                let (pitch, backward, ahead) =
                    ([from_pitch, self.pitch], fft.backward, (blocks == 1).then_some(ahead));
                // SAFETY: this function's contract; blocks nest, so all passes stay within the rows.
                unsafe {
                    with_radix!(level.radix, V, R => V::enter(ColumnPass::<V, R> {
                        from: source, to, pitch, columns, rows, blocks, twiddles, backward, ahead,
                    }));
                }
                (source, from_pitch) = (to.cast_const(), self.pitch);
                blocks *= level.radix;
            }
        }
    }
}

/// Butterflies of `R` elements of a column, `rows` rows apart, for a vector of columns at once.
struct ColumnPass<V: Vector, const R: usize> {
    from: *const V::T,
    to: *mut V::T,
    /// Scalars from one row to the next, in the source and in the target.
    pitch: [usize; 2],
    columns: usize,
    rows: usize,
    blocks: usize,
    twiddles: *const V::T,
    backward: bool,
    /// Whether to prefetch the source, and scalars to the columns that come next.
    ahead: Option<usize>,
}

impl<V: Vector, const R: usize> Op<V> for ColumnPass<V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let (from_step, to_step) = (self.pitch[0] * self.rows, self.pitch[1] * self.rows);
        let (jump, stride) = steps::<R>(self.backward, to_step as isize);
        let signs = V::splat_complex(V::T::rounded(-1.0), V::T::rounded(1.0));
        for block in 0..self.blocks {
            let mut w = self.twiddles;
            for row in 0..self.rows {
                let at = block * R * self.rows + row;
                let soon = match (self.ahead, row + LEAD) {
                    (Some(_), soon) if soon < self.rows => Some(LEAD * self.pitch[0]),
                    (Some(ahead), soon) => {
                        Some((soon % self.rows * self.pitch[0] + ahead).wrapping_sub(row * self.pitch[0]))
                    }
                    (None, _) => None,
                };
                for column in (0..self.columns).step_by(V::LINES) {
                    // SAFETY: `Op::run`'s contract: all rows have these columns; R - 1 vectors of twiddles for each step.
                    unsafe {
                        let mut x = [V::zero(); R];
                        let mut from = self.from.add(at * self.pitch[0] + 2 * column);
                        for q in 0..R {
                            x[q] = V::load(from);
                            if let Some(soon) = soon {
                                prefetch_second_level(from.wrapping_add(soon).cast());
                            }
                            from = from.wrapping_add(from_step);
                        }
                        dft::<V, R>(&mut x);
                        let mut to = self.to.add(at * self.pitch[1] + 2 * column);
                        x[0].store(to);
                        to = to.wrapping_offset(jump);
                        for p in 1..R {
                            to = to.wrapping_offset(stride);
                            let factor = V::load(w);
                            x[p].times(factor.reals(), factor.swap().reals().mul(signs)).store(to);
                            w = w.add(V::LANES);
                        }
                    }
                }
            }
        }
    }
}
