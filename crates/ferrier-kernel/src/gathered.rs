//! Kernels of libraries that transform contiguous lines: lines are gathered to scratch, transformed there one by one,
//! and scattered.

use crate::lines::{LineBlock, Lines, Strip};
use crate::real::Real;
use crate::spec::{LineKind, LinesSpec};

/// The transform of a contiguous line.
pub(crate) trait LineEngine<T>: Send + Sync {
    /// Scalars of scratch for [`transform`](Self::transform).
    fn scratch(&self) -> usize;
    /// Transforms the line that begins at `line[0]`. Its result begins at `line[result]`: there complex lines are
    /// transformed in place (`result` is 0); what is left of the input does not matter. Both are 64-byte aligned.
    fn transform(&self, line: &mut [T], result: usize, scratch: &mut [T]);
}

/// Lines of an engine.
pub(crate) struct GatheredLines<E> {
    pub engine: E,
    pub spec: LinesSpec,
}

/// Rounds up, so that the next area of the scratch is 64-byte aligned.
fn padded(scalars: usize) -> usize {
    scalars.next_multiple_of(16)
}

/// Scalars of a line before and after its transform.
pub(crate) fn scalars(spec: &LinesSpec) -> [usize; 2] {
    let LinesSpec { n, kind, .. } = *spec;
    [kind.len_in(n) * kind.width_in(), kind.len_out(n) * kind.width_out()]
}

/// Where the result of a line begins: complex lines are transformed in place.
pub(crate) fn result(spec: &LinesSpec) -> usize {
    match spec.kind {
        LineKind::Forward | LineKind::Backward => 0,
        _ => padded(scalars(spec)[0]),
    }
}

impl<E> GatheredLines<E> {
    /// Scalars of a line in scratch.
    fn pitch(&self) -> usize {
        let [before, after] = scalars(&self.spec);
        match result(&self.spec) {
            0 => padded(before),
            result => result + padded(after),
        }
    }
}

impl<T: Real, E: LineEngine<T>> Lines<T> for GatheredLines<E> {
    fn block(&self, _strided: bool) -> usize {
        // One cache line of complex scalars, so that a strided load uses whole cache lines.
        64 / (2 * T::PRECISION.bytes())
    }

    fn scratch(&self, lines: usize) -> usize {
        lines * self.pitch() + self.engine.scratch()
    }

    unsafe fn run(&self, block: &LineBlock<'_, T>, scratch: &mut [T]) -> bool {
        let (pitch, result) = (self.pitch(), result(&self.spec));
        let (area, inner) = scratch.split_at_mut(block.lines * pitch);
        let inner = &mut inner[..self.engine.scratch()];
        let (kind, [before, after]) = (self.spec.kind, scalars(&self.spec));
        if block.from.iter().map(|strip| strip.len).sum::<usize>() < kind.len_in(self.spec.n) {
            area.fill(T::zero());
        }
        for strip in block.from {
            // SAFETY: `run`'s contract: every element of the strip is valid for reads.
            unsafe { gather(strip, block.lines, kind.width_in(), area, pitch) };
        }
        let scale = self.spec.scale * block.factor;
        for line in area.chunks_exact_mut(pitch) {
            if kind == LineKind::RealBackward {
                // Taken as zero; some libraries report an error if these are not, or use them.
                line[1] = T::zero();
                if self.spec.n.is_multiple_of(2) {
                    line[before - 1] = T::zero();
                }
            }
            self.engine.transform(line, result, inner);
            if scale != 1.0 {
                let scale = T::rounded(scale);
                line[result..result + after].iter_mut().for_each(|scalar| *scalar *= scale);
            }
        }
        for strip in block.to {
            // SAFETY: `run`'s contract: every element of the strip is valid for writes.
            unsafe { scatter(strip, block.lines, kind.width_out(), &area[result..], pitch) };
        }
        false
    }
}

/// Copies the elements of a strip to scratch. Elements in the outer loop:
/// neighbouring lines are usually adjacent in memory.
///
/// # Safety
/// All elements of the strip's lines are valid for reads.
unsafe fn gather<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &mut [T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                // SAFETY: `gather`'s contract covers element strip.at + k of line j.
                let value = unsafe { *strip.line(j).offset(k as isize * strip.step).add(w) };
                area[j * pitch + (strip.at + k) * width + w] = value;
            }
        }
    }
}

/// Copies the elements of a strip from scratch.
///
/// # Safety
/// All elements of the strip's lines are valid for writes.
unsafe fn scatter<T: Real>(strip: &Strip<T>, lines: usize, width: usize, area: &[T], pitch: usize) {
    for k in 0..strip.len {
        for j in 0..lines {
            for w in 0..width {
                let value = area[j * pitch + (strip.at + k) * width + w];
                // SAFETY: `scatter`'s contract covers element strip.at + k of line j.
                unsafe { *strip.line(j).offset(k as isize * strip.step).add(w) = value };
            }
        }
    }
}
