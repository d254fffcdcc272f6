//! Vectors for any processor: plain arrays, which the compiler vectorizes.

use super::factorization::Radices;
use super::vector::{MAX_LINES, Op, Vector};
use crate::real::Real;

const WIDTH: usize = 4;

/// A vector of two lines on every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable<T>([T; WIDTH]);

impl<T: Real> Portable<T> {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(T, T) -> T) -> Self {
        Portable(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }
}

impl<T: Real> Vector for Portable<T> {
    type T = T;
    const LANES: usize = WIDTH;
    #[cfg(not(ferrier_lean))]
    const RADICES: Radices = &[(2, 60), (3, 80), (4, 75), (5, 100), (7, 140), (9, 150), (11, 200), (13, 230)];
    #[cfg(ferrier_lean)]
    const RADICES: Radices = &[(2, 60), (3, 80), (4, 75), (5, 100)];
    type Half = Self;

    // Not inlined, as on the other instruction sets: otherwise one function contains all radices.
    #[inline(never)]
    unsafe fn enter<O: Op<Self>>(op: O) -> O::Out {
        // SAFETY: `enter`'s contract covers `op`; no instruction set is needed.
        unsafe { op.run() }
    }

    #[inline(always)]
    fn splat(x: T) -> Self {
        Portable([x; WIDTH])
    }
    #[inline(always)]
    fn splat_complex(re: T, im: T) -> Self {
        Portable([re, im, re, im])
    }
    #[inline(always)]
    unsafe fn load_complex(p: *const T) -> Self {
        // SAFETY: `load_complex`'s contract: `p` is valid for two reads.
        unsafe { Self::splat_complex(*p, *p.add(1)) }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        self.zip(b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        self.zip(b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        self.zip(b, |a, b| a * b)
    }
    // Not fused: without the instruction this would be a library call per scalar.
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self.mul(b).add(c)
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c.sub(self.mul(b))
    }
    #[inline(always)]
    fn swap(self) -> Self {
        let [a, b, c, d] = self.0;
        Portable([b, a, d, c])
    }
    #[inline(always)]
    fn reals(self) -> Self {
        let [a, _, c, _] = self.0;
        Portable([a, a, c, c])
    }
    #[inline(always)]
    fn reverse(self) -> Self {
        let [a, b, c, d] = self.0;
        Portable([c, d, a, b])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: `load`'s contract: `p` is valid for LANES reads; an array of T has T's alignment.
        unsafe { Portable(*p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: `store`'s contract: `p` is valid for LANES writes; an array of T has T's alignment.
        unsafe { *p.cast() = self.0 };
    }
    #[inline(always)]
    unsafe fn load_lines(mut self, p: *const T, from: usize, to: usize) -> Self {
        let (p, x) = (p.wrapping_add(2 * from), self.0[2 * from..2 * to].as_mut_ptr());
        // SAFETY: `load_lines`'s contract: lines `from..to` are valid for reads.
        unsafe { std::ptr::copy_nonoverlapping(p, x, 2 * (to - from)) };
        self
    }
    #[inline(always)]
    unsafe fn store_lines(self, p: *mut T, from: usize, to: usize) {
        let (p, x) = (p.wrapping_add(2 * from), self.0[2 * from..2 * to].as_ptr());
        // SAFETY: `store_lines`'s contract: lines `from..to` are valid for writes.
        unsafe { std::ptr::copy_nonoverlapping(x, p, 2 * (to - from)) };
    }
    #[inline(always)]
    fn transpose(rows: &mut [Self; MAX_LINES]) {
        let ([a, b, c, d], [e, f, g, h]) = (rows[0].0, rows[1].0);
        (rows[0], rows[1]) = (Portable([a, b, e, f]), Portable([c, d, g, h]));
    }
}
