//! What a pass does to a block of lines: a transform, or two with a pointwise operator between them.

use std::sync::Arc;

use super::sparse_lines::clear_between;
use super::twiddle::Twiddle;
use crate::Real;
use crate::exec::operator::{Modes, Operator};
use ferrier_kernel::{LineBlock, Lines, StoreHint, Strip};
use ferrier_plan::modes::{IndexRun, Ragged, total_len};

/// What is done to a block of lines.
pub(crate) enum LineOp<T> {
    /// A transform.
    Lines(Arc<dyn Lines<T>>),
    /// Two transforms with an operator between them.
    FusedLineOp(FusedLineOp<T>),
}

/// `before` transforms lines into scratch, an operator changes them there, and `after` transforms them to their
/// target. One of the two may be a copy.
pub(crate) struct FusedLineOp<T> {
    pub before: Arc<dyn Lines<T>>,
    pub after: Arc<dyn Lines<T>>,
    /// The elements of a line between the two, and scalars of an element.
    pub runs: Vec<IndexRun>,
    pub width: usize,
    /// The elements of each line, where they differ from line to line.
    pub ragged: Option<Arc<Ragged>>,
    pub change: LineChange<T>,
}

/// What becomes of lines between two transforms.
pub(crate) enum LineChange<T> {
    /// What the operator of the call makes of them.
    Operator,
    /// The factors between the halves of a long transform.
    Twiddle(Arc<Twiddle<T>>),
    /// Their conjugates.
    Conjugate,
}

/// Which lines a block has: global index of the first element of its first
/// line, array of the batch, axis of the lines and axis across them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub first: [usize; 3],
    pub batch: usize,
    pub along: usize,
    pub side: usize,
}

impl<T: Real> LineOp<T> {
    /// Lines of a block for the best speed.
    pub fn block(&self, strided: bool) -> usize {
        match self {
            LineOp::Lines(lines) => lines.block(strided),
            LineOp::FusedLineOp(fused) => fused.block(strided),
        }
    }

    /// Scalars of scratch for blocks of `lines` lines.
    pub fn scratch(&self, lines: usize) -> usize {
        match self {
            LineOp::Lines(kernel) => kernel.scratch(lines),
            LineOp::FusedLineOp(fused) => fused.scratch(lines),
        }
    }

    /// Whether contiguous lines that are whole cache lines can be stored past the caches.
    pub fn streams_lines(&self) -> bool {
        match self {
            LineOp::Lines(lines) => lines.streams_lines(),
            LineOp::FusedLineOp(fused) => fused.after.streams_lines(),
        }
    }

    /// Whether rows of neighbouring lines are stored past the caches several cache lines at a time.
    pub fn streams_rows(&self) -> bool {
        match self {
            LineOp::Lines(lines) => lines.streams_rows(),
            LineOp::FusedLineOp(fused) => fused.after.streams_rows(),
        }
    }

    /// The transform that loads the lines.
    pub fn loader(&self) -> &dyn Lines<T> {
        match self {
            LineOp::Lines(lines) => &**lines,
            LineOp::FusedLineOp(fused) => &*fused.before,
        }
    }

    /// # Safety
    /// As [`Lines::run`].
    pub unsafe fn run(
        &self,
        block: &LineBlock<'_, T>,
        spot: impl FnOnce() -> Spot,
        operator: Option<&dyn Operator<T>>,
        scratch: &mut [T],
    ) -> bool {
        match self {
            // SAFETY: this function's contract.
            LineOp::Lines(lines) => unsafe { lines.run(block, scratch) },
            // SAFETY: this function's contract.
            LineOp::FusedLineOp(fused) => unsafe { fused.run(block, &spot(), operator, scratch) },
        }
    }
}

impl<T: Real> FusedLineOp<T> {
    /// Bytes of a block between the two transforms: with the kernel's scratch it fits in a second-level cache.
    const ROOM: usize = 256 << 10;

    fn block(&self, strided: bool) -> usize {
        let wanted = self.before.block(strided).max(self.after.block(strided));
        let least = self.before.block(false).min(self.after.block(false)).max(1);
        let fit = Self::ROOM / (total_len(&self.runs).max(1) * self.width * size_of::<T>());
        wanted.min(fit / least * least).max(least)
    }

    /// Scalars between neighbouring elements: an odd number of cache lines, so that elements spread over all sets.
    fn pitch(&self, lines: usize) -> usize {
        let line = 64 / size_of::<T>();
        ((lines * self.width).div_ceil(line) | 1) * line
    }

    fn scratch(&self, lines: usize) -> usize {
        let spare = match &self.change {
            LineChange::Twiddle(twiddle) => twiddle.spare(lines),
            _ => 0,
        };
        let inner = self.before.scratch(lines).max(self.after.scratch(lines)).max(spare);
        total_len(&self.runs) * self.pitch(lines) + inner
    }

    unsafe fn run(
        &self,
        block: &LineBlock<'_, T>,
        spot: &Spot,
        operator: Option<&dyn Operator<T>>,
        scratch: &mut [T],
    ) -> bool {
        let pitch = self.pitch(block.lines);
        let scalars = total_len(&self.runs) * pitch;
        let (area, rest) = scratch.split_at_mut(scalars);
        let start = area.as_mut_ptr();
        let strip = |run: &IndexRun| Strip {
            // SAFETY: inside the area.
            ptr: unsafe { start.add(run.at * pitch) },
            at: run.line,
            len: run.len,
            step: pitch as isize,
            lane: self.width as isize,
            ..Strip::default()
        };
        let [Some(first), last] = [self.runs.first(), self.runs.get(1)] else { return false };
        let strips = [strip(first), strip(last.unwrap_or(first))];
        let strips = &strips[..self.runs.len().min(2)];
        // SAFETY: this function's contract; the strips are this scratch, which is this thread's alone.
        let taken = unsafe {
            self.before.run(&LineBlock { to: strips, store: StoreHint::Plain, factor: 1.0, ..*block }, rest)
        };
        // SAFETY: the same memory, which only the strips' pointers have been used for since.
        let area = unsafe { std::slice::from_raw_parts_mut(start, scalars) };
        self.clear(spot, area, block.lines);
        let mut modes = Modes {
            scalars: &mut *area,
            first: spot.first,
            batch: spot.batch,
            along: spot.along,
            side: spot.side,
            pitch,
            len: block.lines,
            width: self.width,
        };
        match (&self.change, operator) {
            (LineChange::Twiddle(twiddle), _) => twiddle.apply(&mut modes, rest),
            (LineChange::Conjugate, _) => conjugate(&mut modes),
            (LineChange::Operator, Some(operator)) => operator.apply(&mut modes),
            (LineChange::Operator, None) => {
                unreachable!("a pass with an operator runs only in calls that bring one")
            }
        }
        self.clear(spot, area, block.lines);
        // SAFETY: as above.
        unsafe {
            self.after.run(
                &LineBlock {
                    store: block.store,
                    factor: block.factor,
                    ..LineBlock::new(block.lines, strips, block.to)
                },
                rest,
            );
        }
        taken
    }

    /// Sets elements that lines do not have to zero, before and after the operator.
    fn clear(&self, spot: &Spot, area: &mut [T], lines: usize) {
        let Some(ragged) = &self.ragged else { return };
        let (pitch, all) = (self.pitch(lines), total_len(&self.runs));
        for lane in 0..lines {
            let line = spot.first[ragged.lanes] + if spot.side == ragged.lanes { lane } else { 0 };
            let parts = ragged.runs[line].iter().map(|run| (run.at, run.len));
            clear_between(parts, all, |element| {
                area[element * pitch + lane * self.width..][..self.width].fill(T::zero());
            });
        }
    }
}

fn conjugate<T: Real>(modes: &mut Modes<'_, T>) {
    for mut run in modes.runs() {
        run.complex().iter_mut().for_each(|mode| *mode = mode.conj());
    }
}
