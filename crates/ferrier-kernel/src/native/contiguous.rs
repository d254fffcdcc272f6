//! Contiguous lines one by one, with vectors of neighbouring elements instead
//! of neighbouring lines. The arithmetic of each element is that of the passes
//! over groups, so results have the same bits; but data are transposed only
//! once, before the last pass, and not on loading and storing.
// Indexed loops: the compiler keeps their arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

use super::butterfly::{dft, lists, with_radix};
use super::fft::{Fft, LastPass, PassSpec};
use super::line_io::{LineArray, StoreMode, put};
use super::passes::steps;
use super::prefetch::Prefetcher;
use super::single_pass::SinglePassContiguous;
use super::vector::{FACTOR_LEN, MAX_LINES, Op, Vector, packed_factor};
use crate::real::Real;

/// Longer lines are transformed depth first.
const LONG_BYTES: usize = 128 << 10;

/// Twiddles as vectors, for every level of an [`Fft`].
pub(super) struct ContiguousFft<T> {
    twiddles: Vec<T>,
    /// The index of the first twiddle of each pass.
    at: Vec<usize>,
    streams: bool,
}

impl<T: Real> ContiguousFft<T> {
    /// `None` where the radices are no multiples of the vector length.
    pub fn new<V: Vector<T = T>>(fft: &Fft<T>) -> Option<Self> {
        let LastPass::Radix(last_pass) = fft.last_pass else { return None };
        // The last vector may overlap the one before it if no pass works in
        // place and little work is done twice.
        let little =
            |length: usize| length >= V::LINES && 5 * length.next_multiple_of(V::LINES) <= 7 * length;
        let Some(first) = fft.leading.first() else {
            let streams = !V::SHORT && last_pass.is_multiple_of(V::LINES);
            return little(last_pass).then(|| ContiguousFft { twiddles: vec![], at: vec![], streams });
        };
        let lengths = [last_pass, first.radix];
        let even = lengths.iter().all(|length| length.is_multiple_of(V::LINES));
        let long = fft.leading.len() == 1 && lengths.into_iter().all(little);
        if !even && !long {
            return None;
        }
        let whole = !V::SHORT || lengths[1].is_multiple_of(2 * V::LINES);
        let mut contiguous = ContiguousFft { twiddles: vec![], at: vec![], streams: even && whole };
        let mut done = 1;
        for level in &fft.leading {
            contiguous.at.push(contiguous.twiddles.len());
            for j in (0..level.m).step_by(V::LINES) {
                let j = j.min(level.m - V::LINES);
                for p in 1..level.radix {
                    contiguous.push::<V>(|i| fft.twiddle(level.radix, (j + i) * done, p));
                }
            }
            done *= level.radix;
        }
        Some(contiguous)
    }

    /// Whether results can use non-temporal stores: vectors do not overlap, so
    /// all are aligned and fill whole cache lines.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Appends the factors of a vector's elements: real parts twice, then imaginary parts.
    fn push<V: Vector<T = T>>(&mut self, twiddle: impl Fn(usize) -> (f64, f64)) {
        let factors: Vec<[T; FACTOR_LEN]> =
            (0..V::LINES).map(twiddle).map(|(re, im)| packed_factor(re, im)).collect();
        self.twiddles.extend(factors.iter().flat_map(|w| [w[0], w[0]]));
        self.twiddles.extend(factors.iter().flat_map(|w| [w[1], w[2]]));
    }

    /// Transforms `lines` lines from `from` through `work` to `to`.
    ///
    /// # Safety
    /// The processor has `V`'s instruction set; `self` was made for `fft`; all
    /// lines have its `n` elements; `work` overlaps neither `from` nor `to`.
    pub unsafe fn run<V: Vector<T = T>>(
        &self,
        fft: &Fft<T>,
        lines: usize,
        [from, work, to]: [LineArray<T>; 3],
        mode: StoreMode<T>,
        prefetcher: &mut Prefetcher<'_, T>,
    ) {
        if let (true, LastPass::Radix(radix)) = (fft.leading.is_empty(), &fft.last_pass) {
            let backward = fft.backward;
            // SAFETY: `run`'s contract: lines have n elements, the radix.
            return unsafe {
                with_radix!(*radix, V, R => V::enter(SinglePassContiguous::<V, R> {
                    lines, from, to, backward, mode, prefetcher,
                }))
            };
        }
        let PassSpec { radix: first_radix, m, .. } = fft.leading[0];
        // Lines that do not fit a cache are finished a few first digits at a time: as many as a vector has.
        let few = if V::SHORT { 2 * V::LINES } else { V::LINES };
        let long = fft.n * 2 * size_of::<T>() > LONG_BYTES && first_radix.is_multiple_of(few);
        let few = if long { few } else { first_radix };
        let passes = fft.leading.iter().zip(&self.at);
        // SAFETY: `run`'s contract; blocks nest, so all passes stay within n elements.
        unsafe {
            let pass = |(&PassSpec { radix, m, .. }, &at): (&PassSpec, &usize),
                        [from, work]: [LineArray<T>; 2],
                        blocks,
                        prefetcher: &mut Prefetcher<'_, T>| {
                let twiddles = self.twiddles[at..].as_ptr();
                with_radix!(radix, V, R => V::enter(Pass::<V, R> {
                    lines, from, work, blocks, m, twiddles, backward: fft.backward, prefetcher,
                }));
            };
            passes.clone().take(1).for_each(|first| pass(first, [from, work], 1, prefetcher));
            for digit in (0..first_radix).step_by(few) {
                let block = LineArray { start: work.start.wrapping_add(2 * digit * m), ..work };
                let mut blocks = few;
                for next in passes.clone().skip(1) {
                    pass(next, [block; 2], blocks, prefetcher);
                    blocks *= next.0.radix;
                }
                let base = &fft.base[..];
                let (stride, backward, digits) = (fft.stride, fft.backward, (digit, digit + few));
                let LastPass::Radix(radix) = fft.last_pass else { unreachable!("checked by `new`") };
                with_radix!(radix, V, R => V::enter(Last::<V, R> {
                    lines, work, to, base, stride, backward, first_radix, digits, mode, prefetcher,
                }));
            }
        }
    }
}

/// Butterflies of `R` elements `m` apart, for a vector of neighbours at once.
struct Pass<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    from: LineArray<V::T>,
    work: LineArray<V::T>,
    blocks: usize,
    m: usize,
    twiddles: *const V::T,
    backward: bool,
    prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Pass<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(R);
        let step = 2 * self.m;
        let (jump, stride) = steps::<R>(self.backward, step as isize);
        for line in 0..self.lines {
            let (mut source, mut target) = (self.from.line(line), self.work.line(line));
            for _ in 0..self.blocks {
                let mut w = self.twiddles;
                for j in (0..self.m).step_by(V::LINES) {
                    let at = 2 * j.min(self.m - V::LINES);
                    // SAFETY: `Op::run`'s contract: lines have all blocks; R - 1 pairs of vectors of twiddles for each step.
                    unsafe {
                        let mut x = [V::zero(); R];
                        let mut from = source.add(at);
                        for q in 0..R {
                            x[q] = V::load(from);
                            from = from.wrapping_add(step);
                        }
                        dft::<V, R>(&mut x);
                        let mut to = target.add(at);
                        x[0].store(to);
                        to = to.wrapping_offset(jump);
                        for p in 1..R {
                            to = to.wrapping_offset(stride);
                            x[p].times(V::load(w), V::load(w.add(V::LANES))).store(to);
                            w = w.add(2 * V::LANES);
                        }
                    }
                    self.prefetcher.visit(budget);
                }
                (source, target) = (source.wrapping_add(R * step), target.wrapping_add(R * step));
            }
        }
    }
}

/// Butterflies of `R` neighbours, for a vector of blocks whose results are
/// neighbours: blocks of neighbouring digits of the first pass.
struct Last<'a, 'b, V: Vector, const R: usize> {
    lines: usize,
    work: LineArray<V::T>,
    to: LineArray<V::T>,
    base: &'a [usize],
    stride: isize,
    backward: bool,
    first_radix: usize,
    /// The first digits whose blocks are ready: from, to.
    digits: (usize, usize),
    mode: StoreMode<V::T>,
    prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, const R: usize> Op<V> for Last<'_, '_, V, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        if R < V::LINES {
            return;
        }
        let budget = self.prefetcher.budget(R);
        let apart = self.base.len() / self.first_radix;
        // Non-temporal stores write whole cache lines.
        let pairs = V::SHORT && self.mode.stream && self.first_radix.is_multiple_of(2 * V::LINES);
        let mut held = [V::zero(); R];
        for line in 0..self.lines {
            let (work, to) = (self.work.line(line), self.to.line(line));
            for rest in 0..apart {
                for digit in (self.digits.0..self.digits.1).step_by(V::LINES) {
                    let digit = digit.min(self.first_radix - V::LINES);
                    let first = digit * apart + rest;
                    // SAFETY: `Op::run`'s contract: lines have a block of R elements for each base.
                    unsafe {
                        let mut x = Self::load(work.add(2 * R * first), 2 * R * apart);
                        dft::<V, R>(&mut x);
                        let x = self.mode.scaled(x);
                        let to = to.add(2 * *self.base.get_unchecked(first));
                        if !pairs {
                            self.store(to, [x]);
                        } else if digit.is_multiple_of(2 * V::LINES) {
                            held = x;
                        } else {
                            self.store(to.wrapping_sub(V::LANES), [held, x]);
                        }
                    }
                    self.prefetcher.visit(budget);
                }
            }
        }
    }
}

impl<V: Vector, const R: usize> Last<'_, '_, V, R> {
    /// Loads and transposes elements of `LINES` blocks, `apart` scalars apart.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; the blocks have R elements.
    #[inline(always)]
    unsafe fn load(work: *const V::T, apart: usize) -> [V; R] {
        let mut x = [V::zero(); R];
        for part in (0..R).step_by(V::LINES) {
            let part = part.min(R - V::LINES);
            let mut square = [V::zero(); MAX_LINES];
            for i in 0..V::LINES {
                // SAFETY: `load`'s contract: the blocks have R elements.
                square[i] = unsafe { V::load(work.add(i * apart + 2 * part)) };
            }
            V::transpose(&mut square);
            for i in 0..V::LINES {
                x[part + i] = square[i];
            }
        }
        x
    }

    /// Stores `G` neighbouring vectors of each result.
    ///
    /// # Safety
    /// Inside [`Vector::enter`]; `to` is valid for writes of `G` vectors at every result, `stride` apart.
    #[inline(always)]
    unsafe fn store<const G: usize>(&self, to: *mut V::T, x: [[V; R]; G]) {
        // SAFETY: `store`'s contract is that of `put`.
        unsafe { if self.mode.stream { self.put::<G, true>(to, x) } else { self.put::<G, false>(to, x) } }
    }

    /// # Safety
    /// As for [`store`](Last::store).
    #[inline(always)]
    unsafe fn put<const G: usize, const STREAM: bool>(&self, mut to: *mut V::T, x: [[V; R]; G]) {
        let (jump, stride) = steps::<R>(self.backward, 2 * self.stride);
        for p in 0..R {
            for g in 0..G {
                // SAFETY: `put`'s contract: `to` is valid for writes of G vectors at every result.
                unsafe { put::<V, STREAM>(x[g][p], to.wrapping_add(g * V::LANES)) };
            }
            to = to.wrapping_offset(if p == 0 { jump + stride } else { stride });
        }
    }
}
