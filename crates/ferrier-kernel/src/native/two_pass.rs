//! Lines of two butterflies whose lengths the compiler knows: addresses are constants, loops are unrolled, and contiguous
//! lines stay in registers between the passes. In a first-level cache this takes two thirds of the time of the general
//! passes. The arithmetic of each element is theirs, so bits are the same.
//!
//! Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::{dft, lists};
use super::line_io::{LineArray, LineIo, StoreMode, StridedIo, put};
use super::passes::steps;
use super::prefetch::Prefetcher;
use super::vector::{FACTOR_LEN, MAX_LINES, Op, Vector};

/// The most vectors of a contiguous line: more do not stay in registers.
const MAX_VECTORS: usize = 16;

/// Runs `$body` with the constants `$A` and `$B` equal to the radices `$passes`, if they are a pair that `$condition` is true
/// for; else `$otherwise`. Other pairs are not compiled.
macro_rules! with_pair {
    (@ $passes:expr, $V:ty, $condition:ident, $A:ident, $B:ident => $body:expr, else $otherwise:expr; $(($a:literal $b:literal))*) => {
        match $passes {
            $(($a, $b) if const { $condition::<$V>($a, $b) } => {
                const $A: usize = $a;
                const $B: usize = $b;
                $body
            })*
            _ => $otherwise,
        }
    };
    ($($arguments:tt)*) => { with_pairs!(with_pair; $($arguments)*) };
}
pub(super) use with_pair;

/// Whether vectors have both radices.
pub(super) const fn has_pair<V: Vector>(a: usize, b: usize) -> bool {
    lists(V::RADICES, a) && lists(V::RADICES, b)
}

/// Whether a contiguous line of `a * b` elements stays in registers: whole vectors of neighbours in both passes.
pub(super) const fn fits_registers<V: Vector>(a: usize, b: usize) -> bool {
    has_pair::<V>(a, b)
        && a.is_multiple_of(V::LINES)
        && b.is_multiple_of(V::LINES)
        && a * b <= MAX_VECTORS * V::LINES
}

/// Rows of neighbouring lines: the first pass of all groups to scratch, then the last one.
pub(super) struct TwoPass<'a, 'b, V: Vector, const A: usize, const B: usize> {
    pub from: StridedIo<V::T>,
    pub to: StridedIo<V::T>,
    pub work: StridedIo<V::T>,
    pub groups: usize,
    /// Those of the first pass, as packed factors.
    pub twiddles: *const V::T,
    pub backward: bool,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const A: usize, const B: usize> Op<V> for TwoPass<'_, '_, V, A, B> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(A * self.groups);
        let (jump, stride) = steps::<A>(self.backward, (B * V::LANES) as isize);
        let mut w = self.twiddles;
        for j in 0..B {
            let (mut from, mut work) = (self.from, self.work.start.wrapping_add(j * V::LANES));
            for _ in 0..self.groups {
                // SAFETY: `Op::run`'s contract: source and work area have A * B elements of every group; there are A - 1
                // twiddles for each j.
                unsafe {
                    let [mut x] = LineIo::<V>::read::<A, 1>(&from, j, B as isize);
                    dft::<V, A>(&mut x);
                    x[0].store(work);
                    let mut to = work.wrapping_offset(jump);
                    for p in 1..A {
                        to = to.wrapping_offset(stride);
                        x[p].times_factor(w.add(FACTOR_LEN * (p - 1))).store(to);
                    }
                }
                (from, work) = (LineIo::<V>::of_group(&from, 1), work.wrapping_add(self.work.pitch));
            }
            w = w.wrapping_add(FACTOR_LEN * (A - 1));
            self.prefetcher.visit(budget);
        }
        let budget = self.prefetcher.budget(B * self.groups);
        let (jump, stride) = steps::<B>(self.backward, A as isize);
        for block in 0..A {
            let (mut to, mut work) = (self.to, self.work.start.wrapping_add(block * B * V::LANES));
            for _ in 0..self.groups {
                // SAFETY: `Op::run`'s contract: work area and target have A * B elements of every group.
                unsafe {
                    let mut x = [V::zero(); B];
                    for q in 0..B {
                        x[q] = V::get(work, q);
                    }
                    dft::<V, B>(&mut x);
                    to.write::<B, 1>(block, block.wrapping_add_signed(jump), stride, [x]);
                }
                (to, work) = (LineIo::<V>::of_group(&to, 1), work.wrapping_add(self.work.pitch));
            }
            self.prefetcher.visit(budget);
        }
    }
}

/// Contiguous lines, one by one: vectors hold neighbouring elements, which are transposed once, between the passes.
pub(super) struct TwoPassContiguous<'a, 'b, V: Vector, const A: usize, const B: usize, const BACKWARD: bool> {
    pub lines: usize,
    pub from: LineArray<V::T>,
    pub to: LineArray<V::T>,
    /// Those of the first pass, as vectors of real and of imaginary parts.
    pub twiddles: *const V::T,
    pub mode: StoreMode<V::T>,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const A: usize, const B: usize, const BACKWARD: bool> Op<V>
    for TwoPassContiguous<'_, '_, V, A, B, BACKWARD>
{
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(2 * A * B / V::LINES);
        let (mut from, mut to) = (self.from.start, self.to.start);
        for _ in 0..self.lines {
            // SAFETY: `Op::run`'s contract: lines have A * B elements, aligned if stores are non-temporal.
            unsafe {
                let middle = self.first(from);
                self.last(middle, to);
            }
            (from, to) = (from.wrapping_offset(self.from.lane), to.wrapping_offset(self.to.lane));
            self.prefetcher.visit(budget);
        }
    }
}

impl<V: Vector, const A: usize, const B: usize, const BACKWARD: bool>
    TwoPassContiguous<'_, '_, V, A, B, BACKWARD>
{
    /// Butterflies of `A` elements `B` apart, with twiddles: of each result the vectors of its `B` elements.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the line has A * B elements.
    #[inline(always)]
    unsafe fn first(&self, from: *const V::T) -> [[V; B]; A] {
        let mut middle = [[V::zero(); B]; A];
        let mut w = self.twiddles;
        for j in (0..B).step_by(V::LINES) {
            let mut x = [V::zero(); A];
            for q in 0..A {
                // SAFETY: this function's contract.
                x[q] = unsafe { V::load(from.add(2 * (q * B + j))) };
            }
            dft::<V, A>(&mut x);
            middle[0][j / V::LINES] = x[0];
            for p in 1..A {
                let slot = if BACKWARD { A - p } else { p };
                // SAFETY: there are A - 1 pairs of vectors of twiddles for each vector of elements.
                unsafe {
                    middle[slot][j / V::LINES] = x[p].times(V::load(w), V::load(w.add(V::LANES)));
                    w = w.add(2 * V::LANES);
                }
            }
        }
        middle
    }

    /// Butterflies of the `B` elements of each first result, for a vector of neighbouring results at once.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the line is writable, and aligned if stores are non-temporal.
    #[inline(always)]
    unsafe fn last(&self, middle: [[V; B]; A], to: *mut V::T) {
        for digit in (0..A).step_by(V::LINES) {
            let mut x = [V::zero(); B];
            for part in (0..B).step_by(V::LINES) {
                let mut square = [V::zero(); MAX_LINES];
                for i in 0..V::LINES {
                    square[i] = middle[digit + i][part / V::LINES];
                }
                V::transpose(&mut square);
                for i in 0..V::LINES {
                    x[part + i] = square[i];
                }
            }
            dft::<V, B>(&mut x);
            let x = self.mode.scaled(x);
            // SAFETY: this function's contract.
            unsafe {
                if self.mode.stream {
                    Self::store::<true>(to.add(2 * digit), x);
                } else {
                    Self::store::<false>(to.add(2 * digit), x);
                }
            }
        }
    }

    /// Stores the results of a butterfly, `A` elements apart.
    ///
    /// # Safety
    /// As for [`last`](Self::last).
    #[inline(always)]
    unsafe fn store<const STREAM: bool>(to: *mut V::T, x: [V; B]) {
        for q in 0..B {
            let slot = if BACKWARD { (B - q) % B } else { q };
            // SAFETY: this function's contract.
            unsafe { put::<V, STREAM>(x[q], to.add(2 * A * slot)) };
        }
    }
}
