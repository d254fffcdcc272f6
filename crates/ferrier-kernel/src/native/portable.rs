//! Vectors for any processor: plain arrays, left to the compiler.

use super::factor::Radices;
use super::vector::{MAX_LANES, Op, Pair, Vector};
use crate::Real;

const WIDTH: usize = 4;

/// Four lanes, whatever the processor.
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
    const ORDER: [usize; MAX_LANES] = super::natural_order();
    const RADICES: Radices = &[(2, 60), (3, 80), (4, 75), (5, 100), (7, 140), (9, 150), (11, 200), (13, 230)];

    // Out of line, as on the others: otherwise all radices end up in one function.
    #[inline(never)]
    unsafe fn enter<O: Op<Self>>(op: O) -> O::Out {
        // SAFETY: needs no instruction set; the rest is the caller's promise.
        unsafe { op.run() }
    }

    #[inline(always)]
    fn splat(x: T) -> Self {
        Portable([x; WIDTH])
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
    // Not fused: without the instruction that would be a call per lane.
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self.mul(b).add(c)
    }
    #[inline(always)]
    fn mul_sub(self, b: Self, c: Self) -> Self {
        self.mul(b).sub(c)
    }
    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c.sub(self.mul(b))
    }

    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller vouches for LANES numbers; an array of T has T's alignment.
        unsafe { Portable(*p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: as in load.
        unsafe { *p.cast() = self.0 };
    }
    #[inline(always)]
    unsafe fn load_row(p: *const T) -> Self {
        // SAFETY: the same promise.
        unsafe { Self::load(p) }
    }
    #[inline(always)]
    unsafe fn store_row(self, p: *mut T) {
        // SAFETY: the same promise.
        unsafe { self.store(p) };
    }
    #[inline(always)]
    unsafe fn load_pairs(p: *const T) -> Pair<Self> {
        // SAFETY: the caller vouches for 2 * LANES numbers.
        let x: [T; 2 * WIDTH] = unsafe { *p.cast() };
        Pair {
            re: Portable(std::array::from_fn(|i| x[2 * i])),
            im: Portable(std::array::from_fn(|i| x[2 * i + 1])),
        }
    }
    #[inline(always)]
    unsafe fn store_pairs(p: *mut T, c: Pair<Self>) {
        let x: [T; 2 * WIDTH] =
            std::array::from_fn(|i| if i % 2 == 0 { c.re.0[i / 2] } else { c.im.0[i / 2] });
        // SAFETY: the caller vouches for 2 * LANES numbers.
        unsafe { *p.cast() = x };
    }
    #[inline(always)]
    fn transpose(rows: &mut [Self; MAX_LANES]) {
        for i in 0..WIDTH {
            for j in 0..i {
                (rows[i].0[j], rows[j].0[i]) = (rows[j].0[i], rows[i].0[j]);
            }
        }
    }
}
