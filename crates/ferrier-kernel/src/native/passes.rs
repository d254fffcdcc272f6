//! The passes of a transform: butterflies over groups of lines.
//!
//! Indexed loops: the compiler unrolls them; it does not always unroll iterators over arrays.
#![allow(clippy::needless_range_loop)]

use std::marker::PhantomData;

use super::butterfly::dft;
use super::line_io::{LineIo, StridedIo};
use super::prefetch::Prefetcher;
use super::vector::{FACTOR_LEN, Op, Vector};

/// The indices of one block's results: the first, the distance from one to the
/// next, and their number if they are stored in reverse order (else 0).
#[derive(Clone, Copy)]
pub(super) struct ResultSlots<D> {
    pub base: usize,
    pub stride: isize,
    pub len: usize,
    pub to: D,
}

impl<D> ResultSlots<D> {
    /// # Safety
    /// Inside [`Vector::enter`]; `k` is less than the number of results.
    #[inline(always)]
    pub unsafe fn put<V: Vector>(&self, k: usize, x: V)
    where
        D: LineIo<V>,
    {
        let k = if k == 0 { 0 } else { self.len.abs_diff(k) };
        // SAFETY: `put`'s contract: result `k` exists, so `to` has its element.
        unsafe { self.to.put(self.base.wrapping_add_signed(k as isize * self.stride), x) };
    }
}

/// Copies elements from a source to scratch.
pub(super) struct CopyIn<V: Vector, S> {
    pub from: S,
    pub work: StridedIo<V::T>,
    pub n: usize,
    pub groups: usize,
    pub lanes: PhantomData<V>,
}

impl<V: Vector, S: LineIo<V>> Op<V> for CopyIn<V, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for k in 0..self.n {
            for g in 0..self.groups {
                // SAFETY: source and scratch have n elements of every group.
                unsafe {
                    let x = self.from.of_group(g).get(k);
                    x.put(self.work.group(g), k);
                }
            }
        }
    }
}

/// Butterflies of `R` elements `m` apart, then twiddles, in `blocks` blocks
/// of every group. The groups alternate at each butterfly, so that the twiddles
/// and rows they share are still in cache. Conflicting rows do not stay in
/// cache even that long: two groups that share cache lines are read at once.
pub(super) struct Pass<'a, 'b, V: Vector, S, const R: usize> {
    pub from: S,
    pub work: StridedIo<V::T>,
    pub groups: usize,
    pub start: usize,
    pub blocks: usize,
    pub m: usize,
    pub twiddles: *const V::T,
    pub backward: bool,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
}

impl<V: Vector, S: LineIo<V>, const R: usize> Op<V> for Pass<'_, '_, V, S, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(R);
        let pairs = V::SHORT && S::UNCACHED && self.groups.is_multiple_of(2);
        let mut held = [V::zero(); R];
        let (m, step) = (self.m, self.m as isize);
        let (jump, stride) = steps::<R>(self.backward, step * V::LANES as isize);
        for block in 0..self.blocks {
            let start = self.start + block * R * m;
            let mut w = self.twiddles;
            for j in start..start + m {
                let mut from = self.from;
                let mut work = self.work.start.wrapping_add(j * V::LANES);
                for g in 0..self.groups {
                    // SAFETY: `Op::run`'s contract: source and work area have all blocks; R - 1 twiddles for each j.
                    unsafe {
                        let second = pairs && g % 2 == 1;
                        let mut x = held;
                        if !pairs {
                            [x] = from.read::<R, 1>(j, step);
                        } else if !second {
                            [x, held] = from.read::<R, 2>(j, step);
                        }
                        // The next rows replace those just read in their cache sets.
                        if S::UNCACHED && !second {
                            match from.next() {
                                _ if j + 1 < start + m => from.prefetch::<R>(j + 1, step, false),
                                Some(next) => next.prefetch::<R>(0, step, false),
                                None => {}
                            }
                        }
                        dft::<V, R>(&mut x);
                        let mut to = work;
                        x[0].store(to);
                        to = to.wrapping_offset(jump);
                        for p in 1..R {
                            to = to.wrapping_offset(stride);
                            x[p].times_factor(w.add(FACTOR_LEN * (p - 1))).store(to);
                        }
                    }
                    (from, work) = (from.of_group(1), work.wrapping_add(self.work.pitch));
                    self.prefetcher.visit(budget);
                }
                w = w.wrapping_add(FACTOR_LEN * (R - 1));
            }
        }
    }
}

/// The offsets of results `step` apart: one added after the first result, one
/// before each of the others (backward transforms reverse their order).
#[inline(always)]
pub(super) fn steps<const R: usize>(backward: bool, step: isize) -> (isize, isize) {
    if backward { (R as isize * step, -step) } else { (0, step) }
}

/// Butterflies of `R` neighbours, stored in natural order; two groups at once
/// where they share cache lines that conflict, or use non-temporal stores.
pub(super) struct Last<'a, 'b, V: Vector, D, const R: usize> {
    pub work: StridedIo<V::T>,
    pub groups: usize,
    pub base: &'a [usize],
    pub stride: isize,
    pub backward: bool,
    pub to: D,
    pub prefetcher: &'a mut Prefetcher<'b, V::T>,
    pub lanes: PhantomData<V>,
}

impl<V: Vector, D: LineIo<V>, const R: usize> Op<V> for Last<'_, '_, V, D, R> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        let budget = self.prefetcher.budget(R);
        let pairs = V::SHORT && (D::UNCACHED || self.to.store_mode().stream) && self.groups.is_multiple_of(2);
        let mut held = (self.to, [V::zero(); R]);
        let (jump, stride) = steps::<R>(self.backward, self.stride);
        for (block, &base) in self.base.iter().enumerate() {
            let next = self.base.get(block + 1);
            let mut to = self.to;
            let mut work = self.work.start.wrapping_add(block * R * V::LANES);
            for g in 0..self.groups {
                // SAFETY: `Op::run`'s contract: the work area has a block of R elements for every base and group.
                unsafe {
                    let mut x = [V::zero(); R];
                    for q in 0..R {
                        x[q] = V::get(work, q);
                    }
                    dft::<V, R>(&mut x);
                    let (first, half) = (base.wrapping_add_signed(jump), pairs && g % 2 == 0);
                    if !pairs {
                        to.write::<R, 1>(base, first, stride, [x]);
                    } else if half {
                        held = (to, x);
                    } else {
                        held.0.write::<R, 2>(base, first, stride, [held.1, x]);
                    }
                    if D::UNCACHED
                        && !half
                        && let Some(&next) = next
                    {
                        to.prefetch::<R>(next, self.stride, true);
                    }
                }
                (to, work) = (to.of_group(1), work.wrapping_add(self.work.pitch));
                self.prefetcher.visit(budget);
            }
        }
    }
}
