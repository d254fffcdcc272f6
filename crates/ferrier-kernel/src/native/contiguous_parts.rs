//! Contiguous lines in parts, as where they go through the boxes of several ranks: the parts of a few lines at a time are put
//! together in a first-level cache, and are transformed there as whole lines are. Gathering them vector by vector takes
//! about as long as a pass.

use super::line_io::{LineArray, gaps, whole};
use crate::lines::Strip;

/// Elements of a part of a line that are worth a copy of their own.
const PART: usize = 8;

/// The source of contiguous lines.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    /// One strip has whole lines.
    Whole(&'a Strip<T>),
    /// Each strip has a part of every line.
    Parts(&'a [Strip<T>]),
}

impl<'a, T: Copy> Source<'a, T> {
    /// Lines of `len` elements of `width` scalars. `None` where elements of a line are apart or missing, or parts are short.
    pub fn new(strips: &'a [Strip<T>], len: usize, width: usize) -> Option<Self> {
        let dense = strips.iter().all(|strip| strip.step == width as isize);
        match whole(strips, len) {
            Some(strip) => dense.then_some(Source::Whole(strip)),
            None => {
                let covered = gaps(strips, len).next().is_none() && len >= PART * strips.len();
                (dense && covered).then_some(Source::Parts(strips))
            }
        }
    }

    /// The strip of whole lines.
    pub fn whole(&self) -> Option<&'a Strip<T>> {
        if let Source::Whole(strip) = self { Some(strip) } else { None }
    }

    /// The number of lines from `line` on that are in its run in every strip.
    pub fn left_in_run(&self, line: usize) -> usize {
        match self {
            Source::Whole(strip) => strip.left_in_run(line),
            Source::Parts(strips) => strips.iter().map(|strip| strip.left_in_run(line)).min().unwrap_or(0),
        }
    }

    /// Lines from `first` on, of a repetition that is `moved` scalars away: where they are, or in `area`, where their parts are
    /// put together. `width`: scalars of an element.
    ///
    /// # Safety
    /// The strips are readable; where there are parts, the area is writable, has `lines` lines and is not a part.
    pub unsafe fn lines(
        &self,
        (first, lines): (usize, usize),
        moved: isize,
        area: LineArray<T>,
        width: usize,
    ) -> LineArray<T> {
        match self {
            Source::Whole(strip) => {
                LineArray { start: strip.line(first).wrapping_offset(moved), lane: strip.lane }
            }
            Source::Parts(strips) => {
                for line in 0..lines {
                    for strip in *strips {
                        let place = area.line(line).wrapping_add(strip.at * width);
                        let part = strip.line(first + line).cast_const();
                        // SAFETY: this function's contract.
                        unsafe { std::ptr::copy_nonoverlapping(part, place, strip.len * width) };
                    }
                }
                area
            }
        }
    }
}
