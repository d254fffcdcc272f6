//! Complex lines of which arrays hold the real parts only: real input of complex transforms.

use std::sync::Arc;

use crate::Real;
use ferrier_kernel::{LineBlock, Lines, StoreHint, Strip};

/// A transform of complex lines that are loaded from real ones, or of whose results the real parts are stored. A block of
/// complex lines in scratch stands between.
pub(super) struct RealParts<T> {
    pub lines: Arc<dyn Lines<T>>,
    pub end: RealEnd,
    /// Elements of a line.
    pub points: usize,
}

/// Which array is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RealEnd {
    Source,
    Target,
}

impl<T: Real> RealParts<T> {
    /// Scalars from one element to the next in scratch: an odd number of cache lines, so that elements spread over all
    /// sets.
    fn pitch(lines: usize) -> usize {
        let line = 64 / size_of::<T>();
        ((2 * lines).div_ceil(line) | 1) * line
    }
}

/// The addresses of the elements of strips: index in the line, line, address.
///
/// # Safety
/// The strips are those of a block of so many lines.
unsafe fn elements<T>(strips: &[Strip<T>], lines: usize, mut visit: impl FnMut(usize, usize, *mut T)) {
    for strip in strips {
        for k in 0..strip.len {
            for line in 0..lines {
                visit(strip.at + k, line, strip.line(line).wrapping_offset(k as isize * strip.step));
            }
        }
    }
}

impl<T: Real> Lines<T> for RealParts<T> {
    fn block(&self, strided: bool) -> usize {
        self.lines.block(strided)
    }

    fn scratch(&self, lines: usize) -> usize {
        self.points * Self::pitch(lines) + self.lines.scratch(lines)
    }

    unsafe fn run(&self, block: &LineBlock<'_, T>, scratch: &mut [T]) -> bool {
        let (lines, pitch) = (block.lines, Self::pitch(block.lines));
        let (area, rest) = scratch.split_at_mut(self.points * pitch);
        let (ptr, step) = (area.as_mut_ptr(), pitch as isize);
        let strip = Strip { ptr, at: 0, len: self.points, step, lane: 2, ..Strip::default() };
        let whole = &[strip];
        let part = |element: usize, line: usize| ptr.wrapping_add(element * pitch + 2 * line);
        // SAFETY: `run`'s contract; `part` is inside the area, which is accessed by its pointer alone after `fill`.
        unsafe {
            match self.end {
                RealEnd::Source => {
                    area.fill(T::zero());
                    elements(block.from, lines, |element, line, from| *part(element, line) = *from);
                    let block = LineBlock { from: whole, ahead: &[], ahead_lines: 0, ..*block };
                    self.lines.run(&block, rest);
                }
                RealEnd::Target => {
                    let block_in = LineBlock { to: whole, store: StoreHint::Plain, ..*block };
                    self.lines.run(&block_in, rest);
                    elements(block.to, lines, |element, line, to| *to = *part(element, line));
                }
            }
        }
        false
    }
}
