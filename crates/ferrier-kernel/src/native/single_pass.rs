//! Lines that one butterfly transforms: in registers from the source to the target, without scratch.
//!
//! Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::dft;
use super::line_io::{LineArray, LineIo, StoreMode, put};
use super::passes::steps;
use super::prefetch::Prefetcher;
use super::vector::{MAX_LINES, Op, Vector};

/// Groups of lines whose neighbours are adjacent; two groups at once where they share cache lines that conflict, or
/// use non-temporal stores.
pub(super) struct SinglePass<'a, 'b, V: Vector, S, D, const R: usize> {
    pub from: S,
    pub to: D,
    pub groups: usize,
    pub backward: bool,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, S: LineIo<V>, D: LineIo<V>, const R: usize> Op<V> for SinglePass<'_, '_, V, S, D, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(mut self) {
        let uncached = S::UNCACHED || D::UNCACHED || self.to.store_mode().stream;
        // SAFETY: `Op::run`'s contract: source and target have R elements of every group.
        unsafe {
            if V::SHORT && uncached && self.groups.is_multiple_of(2) {
                self.sets::<2>();
            } else {
                self.sets::<1>();
            }
        }
    }
}

impl<V: Vector, S: LineIo<V>, D: LineIo<V>, const R: usize> SinglePass<'_, '_, V, S, D, R> {
    /// Transforms `G` groups at a time.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; source and target have R elements of every group.
    #[inline(always)]
    unsafe fn sets<const G: usize>(&mut self) {
        let budget = self.prefetcher.budget(G * R);
        let (jump, stride) = steps::<R>(self.backward, 1);
        let (mut from, mut to) = (self.from, self.to);
        for first in (0..self.groups).step_by(G) {
            // SAFETY: this function's contract.
            unsafe {
                let mut x = from.read::<R, G>(0, 1);
                if S::UNCACHED
                    && let Some(next) = from.next()
                {
                    next.prefetch::<R>(0, 1, false);
                }
                for g in 0..G {
                    dft::<V, R>(&mut x[g]);
                }
                to.write::<R, G>(0, jump as usize, stride, x);
                (from, to) = (from.of_group(G), to.of_group(G));
                if D::UNCACHED && first + G < self.groups {
                    to.prefetch::<R>(0, 1, true);
                }
            }
            self.prefetcher.visit(budget);
        }
    }
}

/// Contiguous lines, a vector of them at a time: squares of elements are transposed on the way in and out.
pub(super) struct SinglePassContiguous<'a, 'b, V: Vector, const R: usize> {
    pub lines: usize,
    pub from: LineArray<V::T>,
    pub to: LineArray<V::T>,
    pub backward: bool,
    pub mode: StoreMode<V::T>,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for SinglePassContiguous<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(R);
        for first in (0..self.lines).step_by(V::LINES) {
            let mut starts = [self.from.line(first); MAX_LINES];
            let mut targets = [self.to.line(first); MAX_LINES];
            for i in 1..V::LINES {
                // Lanes without a line use the last line, and store it once more.
                let lanes = if first + i < self.lines { [self.from.lane, self.to.lane] } else { [0; 2] };
                starts[i] = starts[i - 1].wrapping_offset(lanes[0]);
                targets[i] = targets[i - 1].wrapping_offset(lanes[1]);
            }
            let mut x = [V::zero(); R];
            for part in (0..R).step_by(V::LINES) {
                let part = part.min(R.saturating_sub(V::LINES));
                let mut square = [V::zero(); MAX_LINES];
                for i in 0..V::LINES {
                    let line = starts[i];
                    // SAFETY: `Op::run`'s contract: lines have R elements.
                    square[i] = unsafe {
                        if R < V::LINES {
                            V::zero().load_lines(line, 0, R)
                        } else {
                            V::load(line.add(2 * part))
                        }
                    };
                }
                V::transpose(&mut square);
                for i in 0..V::LINES.min(R) {
                    x[part + i] = square[i];
                }
            }
            dft::<V, R>(&mut x);
            let x = self.mode.scaled(x);
            // SAFETY: `Op::run`'s contract: lines have R elements, aligned if stores are non-temporal.
            unsafe {
                if self.mode.stream {
                    self.store::<true>(&targets, x);
                } else {
                    self.store::<false>(&targets, x);
                }
            }
            self.prefetcher.visit(budget);
        }
    }
}

impl<V: Vector, const R: usize> SinglePassContiguous<'_, '_, V, R> {
    /// # Safety
    /// Inside [`Vector::enter`]; the lines are writable, and aligned if `STREAM`.
    #[inline(always)]
    unsafe fn store<const STREAM: bool>(&self, targets: &[*mut V::T; MAX_LINES], x: [V; R]) {
        for part in (0..R).step_by(V::LINES) {
            let part = part.min(R.saturating_sub(V::LINES));
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES.min(R) {
                let k = part + i;
                // Butterflies have sign -1: with sign +1 the results are in reverse order.
                square[i] = if self.backward { x[(R - k) % R] } else { x[k] };
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                let to = targets[i];
                // SAFETY: this function's contract.
                unsafe {
                    if R < V::LINES {
                        square[i].store_lines(to, 0, R);
                    } else {
                        put::<V, STREAM>(square[i], to.add(2 * part));
                    }
                }
            }
        }
    }
}
