//! Copies lines: the pass of a group without a transform.

use crate::Real;
use ferrier_kernel::{LineBlock, Lines, Strip};

/// Copies elements of `width` scalars.
pub(crate) struct Copy {
    pub width: usize,
}

/// Elements of a line and lines of a tile: source and target of a tile fit in L1.
const TILE: usize = 16;

impl<T: Real> Lines<T> for Copy {
    fn block(&self, _strided: bool) -> usize {
        TILE
    }

    fn scratch(&self, _lines: usize) -> usize {
        0
    }

    unsafe fn run(&self, block: &LineBlock<'_, T>, _scratch: &mut [T]) -> bool {
        for from in block.from {
            for to in block.to {
                let (first, last) = (from.at.max(to.at), (from.at + from.len).min(to.at + to.len));
                if first < last {
                    // SAFETY: `run`'s contract: both strips hold these elements.
                    unsafe { self.copy(from, to, first, last, block.lines) };
                }
            }
        }
        if block.factor != 1.0 {
            let factor = T::rounded(block.factor);
            for to in block.to {
                // SAFETY: `run`'s contract: every element of the strip is valid for writes, and was written above.
                unsafe { self.scale(to, block.lines, factor) };
            }
        }
        false
    }
}

impl Copy {
    /// Multiplies the elements of a strip by the factor of a call.
    ///
    /// # Safety
    /// All elements of the strip's lines are valid for reads and writes.
    unsafe fn scale<T: Real>(&self, strip: &Strip<T>, lines: usize, factor: T) {
        let multiply = |k: usize, line: usize, elements: usize| {
            // SAFETY: elements of the strip; more than one only where they are contiguous.
            let scalars = unsafe {
                let start = strip.line(line).offset(k as isize * strip.step);
                std::slice::from_raw_parts_mut(start, elements * self.width)
            };
            scalars.iter_mut().for_each(|scalar| *scalar *= factor);
        };
        if strip.step == self.width as isize {
            (0..lines).for_each(|line| multiply(0, line, strip.len));
        } else {
            (0..strip.len).for_each(|k| (0..lines).for_each(|line| multiply(k, line, 1)));
        }
    }

    /// # Safety
    /// Elements `first..last` of all lines are valid in both strips.
    unsafe fn copy<T: Real>(&self, from: &Strip<T>, to: &Strip<T>, first: usize, last: usize, lines: usize) {
        let width = self.width as isize;
        let place = |strip: &Strip<T>, k: usize, line: usize| {
            // SAFETY: an element of the strip.
            unsafe { strip.line(line).offset((k - strip.at) as isize * strip.step) }
        };
        if from.step == width && to.step == width {
            for line in 0..lines {
                let (source, target) = (place(from, first, line), place(to, first, line));
                // SAFETY: elements are contiguous in both; source and target are disjoint or the same.
                unsafe { std::ptr::copy(source, target, (last - first) * self.width) };
            }
            return;
        }
        if [from, to].iter().all(|strip| strip.lane == width && strip.run >= lines) {
            for k in first..last {
                let (source, target) = (place(from, k, 0), place(to, k, 0));
                // SAFETY: neighbouring lines are contiguous in both.
                unsafe { std::ptr::copy(source, target, lines * self.width) };
            }
            return;
        }
        for start in (first..last).step_by(TILE) {
            for line in 0..lines {
                for k in start..last.min(start + TILE) {
                    let (source, target) = (place(from, k, line), place(to, k, line));
                    for w in 0..self.width {
                        // SAFETY: scalar `w` of an element of both strips.
                        unsafe { *target.add(w) = *source.add(w) };
                    }
                }
            }
        }
    }
}
