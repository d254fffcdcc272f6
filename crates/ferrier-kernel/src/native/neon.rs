//! Vectors of NEON. Written with care, not yet run: no such machine was at hand.

use std::arch::aarch64::*;

use super::factor::Radices;
use super::vector::{MAX_LANES, Op, Pair, Vector};

// 32 registers, but narrow ones: as for AVX-512.
const RADICES: Radices =
    &[(2, 60), (3, 80), (4, 75), (5, 95), (7, 120), (8, 90), (9, 120), (11, 170), (13, 190)];

/// One vector type: all but the transpose differs in names only.
macro_rules! vector {
    ($name:ident, $raw:ty, $pair:ident, $t:ty, $lanes:literal, $dup:ident, $add:ident, $sub:ident,
     $mul:ident, $fma:ident, $fms:ident, $neg:ident, $load:ident, $store:ident, $load2:ident, $store2:ident) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($raw);

        impl Vector for $name {
            type T = $t;
            const LANES: usize = $lanes;
            const ORDER: [usize; MAX_LANES] = super::natural_order();
            const RADICES: Radices = RADICES;

            #[inline(always)]
            unsafe fn enter<O: Op<Self>>(op: O) -> O::Out {
                #[target_feature(enable = "neon")]
                unsafe fn inside<O: Op<$name>>(op: O) -> O::Out {
                    // SAFETY: the caller's promise.
                    unsafe { op.run() }
                }
                // SAFETY: the caller vouches for the instruction set and for what op needs.
                unsafe { inside(op) }
            }
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: inside `enter`, so the instructions are there; likewise below.
                $name(unsafe { $dup(x) })
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $add(self.0, b.0) })
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $sub(self.0, b.0) })
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $mul(self.0, b.0) })
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`. The sum comes first here.
                $name(unsafe { $fma(c.0, self.0, b.0) })
            }
            #[inline(always)]
            fn mul_sub(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`. Rounding is symmetric, so this is a b - c.
                $name(unsafe { $neg($fms(c.0, self.0, b.0)) })
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $fms(c.0, self.0, b.0) })
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                $name(unsafe { $load(p) })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe { $store(p, self.0) }
            }
            #[inline(always)]
            unsafe fn load_row(p: *const $t) -> Self {
                // SAFETY: the same promise.
                unsafe { Self::load(p) }
            }
            #[inline(always)]
            unsafe fn store_row(self, p: *mut $t) {
                // SAFETY: the same promise.
                unsafe { self.store(p) }
            }
            #[inline(always)]
            unsafe fn load_pairs(p: *const $t) -> Pair<Self> {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                let both = unsafe { $load2(p) };
                Pair { re: $name(both.0), im: $name(both.1) }
            }
            #[inline(always)]
            unsafe fn store_pairs(p: *mut $t, c: Pair<Self>) {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe { $store2(p, $pair(c.re.0, c.im.0)) }
            }
            #[inline(always)]
            fn transpose(rows: &mut [Self; MAX_LANES]) {
                // SAFETY: inside `enter`.
                unsafe { $name::columns(rows) }
            }
        }
    };
}

vector!(
    N64,
    float64x2_t,
    float64x2x2_t,
    f64,
    2,
    vdupq_n_f64,
    vaddq_f64,
    vsubq_f64,
    vmulq_f64,
    vfmaq_f64,
    vfmsq_f64,
    vnegq_f64,
    vld1q_f64,
    vst1q_f64,
    vld2q_f64,
    vst2q_f64
);
vector!(
    N32,
    float32x4_t,
    float32x4x2_t,
    f32,
    4,
    vdupq_n_f32,
    vaddq_f32,
    vsubq_f32,
    vmulq_f32,
    vfmaq_f32,
    vfmsq_f32,
    vnegq_f32,
    vld1q_f32,
    vst1q_f32,
    vld2q_f32,
    vst2q_f32
);

impl N64 {
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        let (a, b) = (rows[0].0, rows[1].0);
        // SAFETY: inside `enter`.
        unsafe {
            rows[0] = N64(vzip1q_f64(a, b));
            rows[1] = N64(vzip2q_f64(a, b));
        }
    }
}

impl N32 {
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        let [a, b, c, d] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
        // SAFETY: inside `enter`. Pairs first, then pairs of pairs.
        unsafe {
            let (ab0, ab1) = (vzip1q_f32(a, b), vzip2q_f32(a, b));
            let (cd0, cd1) = (vzip1q_f32(c, d), vzip2q_f32(c, d));
            let low = |x, y| {
                let (x, y) = (vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y));
                N32(vreinterpretq_f32_f64(vzip1q_f64(x, y)))
            };
            let high = |x, y| {
                let (x, y) = (vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y));
                N32(vreinterpretq_f32_f64(vzip2q_f64(x, y)))
            };
            [rows[0], rows[1]] = [low(ab0, cd0), high(ab0, cd0)];
            [rows[2], rows[3]] = [low(ab1, cd1), high(ab1, cd1)];
        }
    }
}
