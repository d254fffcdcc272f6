//! Rows of several planes at once: blocks that are repeated at a constant distance, in memory that is in cache. Groups
//! of lines need not be adjacent: where a row has few, those of several planes form a set.

use super::fft::{Fft, FftScratch};
use super::line_io::{StoreMode, StridedIo, are_aliases, are_apart, are_rows, whole, whole_cache_lines};
use super::prefetch::Prefetcher;
use super::vector::Vector;
use crate::lines::{LineBlock, Repeat, StoreHint, Strip};
use crate::real::Real;

/// Complex lines whose neighbours are adjacent, each in one strip.
pub(super) struct RowPlanes<'a, T> {
    fft: &'a Fft<T>,
    from: &'a Strip<T>,
    to: &'a Strip<T>,
    /// Lines of a plane. A group that is not full is done again with lines before it.
    lines: usize,
    repeat: Repeat,
    /// Whether to use non-temporal stores.
    stream: bool,
}

/// The most groups of a set that needs no scratch.
const UNLIMITED: usize = 64;

impl<'a, T: Real> RowPlanes<'a, T> {
    /// `None` where lines are in pieces, rows conflict in caches, or groups are not full and lines return where they
    /// were loaded from.
    pub fn new<V: Vector<T = T>>(fft: &'a Fft<T>, block: &LineBlock<'a, T>, repeat: Repeat) -> Option<Self> {
        let (from, to) = (whole(block.from, fft.n)?, whole(block.to, fft.n)?);
        let lines = block.lines;
        let rows = are_rows(&[*from, *to], lines) && lines >= V::LINES && !are_aliases(block.from);
        let all = |strip: &Strip<T>, skip: isize| [Strip { run: lines, skip, ..*strip }];
        let apart = || {
            let (from, to) = (all(from, repeat.from), all(to, repeat.to));
            are_apart(&LineBlock::new(lines * repeat.count, &from, &to))
        };
        let stream = block.store == StoreHint::Stream
            && whole_cache_lines::<V>(block.to, 2, lines, lines / V::LINES)
            && (repeat.to.unsigned_abs() * size_of::<T>()).is_multiple_of(64);
        let fits = rows && (lines.is_multiple_of(V::LINES) || apart());
        fits.then_some(RowPlanes { fft, from, to, lines, repeat, stream })
    }

    /// Transforms all planes; results are multiplied by `scale`. Advances the prefetcher.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; source and target are valid in every plane; the scratch has so many
    /// areas of so many scalars, and the spare scratch of the transform.
    pub unsafe fn run<V: Vector<T = T>>(
        &self,
        scale: T,
        (scratch, areas, area_len): (*mut T, usize, usize),
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        let Repeat { count, from: from_step, to: to_step } = self.repeat;
        let mode = StoreMode::new(scale, self.stream);
        let max_groups = if self.fft.is_single_pass() { UNLIMITED } else { areas };
        let mut set = |plane: usize, line: usize, groups: usize, pitches: [usize; 2]| {
            let io = |strip: &Strip<T>, distance: isize, pitch: usize, mode| {
                let start = strip.ptr.wrapping_offset(plane as isize * distance);
                StridedIo { start: start.wrapping_add(2 * line), step: strip.step, pitch, mode }
            };
            let from = io(self.from, from_step, pitches[0], StoreMode::plain());
            let to = io(self.to, to_step, pitches[1], mode);
            let work = StridedIo::scratch::<V>(scratch, area_len);
            let (spare, prefetcher) = (scratch.wrapping_add(areas * area_len), &mut *prefetcher);
            let mut scratch = FftScratch { work, groups, permuted: false, spare, prefetcher };
            // SAFETY: this function's contract; sets lie within the planes.
            unsafe { self.fft.run::<V, _, _>(from, to, &mut scratch) };
        };
        let (full, last) = (self.lines / V::LINES, self.lines - V::LINES);
        if full >= max_groups.min(count) {
            for plane in 0..count {
                for group in (0..full).step_by(max_groups) {
                    set(plane, group * V::LINES, max_groups.min(full - group), [V::LANES; 2]);
                }
                if full * V::LINES < self.lines {
                    set(plane, last, 1, [V::LANES; 2]);
                }
            }
        } else {
            let pitches = [from_step, to_step].map(isize::cast_unsigned);
            for plane in (0..count).step_by(max_groups) {
                for line in (0..self.lines).step_by(V::LINES) {
                    set(plane, line.min(last), max_groups.min(count - plane), pitches);
                }
            }
        }
    }
}
