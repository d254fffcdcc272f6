//! Vectors of NEON. Written with care, not yet run: no such machine was at hand.

use std::arch::aarch64::*;

use super::factor::Radices;
use super::vector::{MAX_LINES, Op, Vector};

// 32 registers, but narrow ones: as for AVX-512.
const RADICES: Radices =
    &[(2, 60), (3, 80), (4, 75), (5, 95), (7, 120), (8, 90), (9, 120), (11, 170), (13, 190)];

/// One vector type: all but the moves between lanes differs in names only.
macro_rules! vector {
    ($name:ident, $raw:ty, $t:ty, $lanes:literal, $dup:ident, $add:ident, $sub:ident,
     $mul:ident, $fma:ident, $fms:ident, $load:ident, $store:ident) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($raw);

        impl Vector for $name {
            type T = $t;
            const LANES: usize = $lanes;
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
            fn twin(re: $t, im: $t) -> Self {
                let numbers: [$t; $lanes] = std::array::from_fn(|i| if i % 2 == 0 { re } else { im });
                // SAFETY: inside `enter`; the array has LANES numbers.
                $name(unsafe { $load(numbers.as_ptr()) })
            }
            #[inline(always)]
            unsafe fn load_twin(p: *const $t) -> Self {
                // SAFETY: the caller vouches for two numbers.
                unsafe { $name::read_twin(p) }
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
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $fms(c.0, self.0, b.0) })
            }
            #[inline(always)]
            fn swap(self) -> Self {
                // SAFETY: inside `enter`.
                unsafe { $name::swapped(self) }
            }
            #[inline(always)]
            fn reals(self) -> Self {
                // SAFETY: inside `enter`.
                unsafe { $name::real_parts(self) }
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                // SAFETY: inside `enter`.
                unsafe { $name::reversed(self) }
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
            fn transpose(rows: &mut [Self; MAX_LINES]) {
                // SAFETY: inside `enter`.
                unsafe { $name::columns(rows) }
            }
        }
    };
}

vector!(
    N64,
    float64x2_t,
    f64,
    2,
    vdupq_n_f64,
    vaddq_f64,
    vsubq_f64,
    vmulq_f64,
    vfmaq_f64,
    vfmsq_f64,
    vld1q_f64,
    vst1q_f64
);
vector!(
    N32,
    float32x4_t,
    f32,
    4,
    vdupq_n_f32,
    vaddq_f32,
    vsubq_f32,
    vmulq_f32,
    vfmaq_f32,
    vfmsq_f32,
    vld1q_f32,
    vst1q_f32
);

impl N64 {
    #[inline(always)]
    unsafe fn read_twin(p: *const f64) -> Self {
        // SAFETY: inside `enter`; the caller vouches for two numbers.
        N64(unsafe { vld1q_f64(p) })
    }
    #[inline(always)]
    unsafe fn swapped(self) -> Self {
        // SAFETY: inside `enter`.
        N64(unsafe { vextq_f64::<1>(self.0, self.0) })
    }
    #[inline(always)]
    unsafe fn real_parts(self) -> Self {
        // SAFETY: inside `enter`.
        N64(unsafe { vtrn1q_f64(self.0, self.0) })
    }
    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        self
    }
    /// One line: its row is its column.
    #[inline(always)]
    unsafe fn columns(_: &mut [Self; MAX_LINES]) {}
}

impl N32 {
    #[inline(always)]
    unsafe fn read_twin(p: *const f32) -> Self {
        // SAFETY: inside `enter`; the caller vouches for two numbers.
        unsafe {
            let pair = vld1_f32(p);
            N32(vcombine_f32(pair, pair))
        }
    }
    #[inline(always)]
    unsafe fn swapped(self) -> Self {
        // SAFETY: inside `enter`.
        N32(unsafe { vrev64q_f32(self.0) })
    }
    #[inline(always)]
    unsafe fn real_parts(self) -> Self {
        // SAFETY: inside `enter`.
        N32(unsafe { vtrn1q_f32(self.0, self.0) })
    }
    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        // SAFETY: inside `enter`.
        N32(unsafe { vextq_f32::<2>(self.0, self.0) })
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LINES]) {
        // SAFETY: inside `enter`. A complex number is as long as a double.
        unsafe {
            let (a, b) = (vreinterpretq_f64_f32(rows[0].0), vreinterpretq_f64_f32(rows[1].0));
            rows[0] = N32(vreinterpretq_f32_f64(vzip1q_f64(a, b)));
            rows[1] = N32(vreinterpretq_f32_f64(vzip2q_f64(a, b)));
        }
    }
}
