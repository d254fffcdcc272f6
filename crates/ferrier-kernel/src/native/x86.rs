//! Vectors of AVX-512 and of AVX2 with FMA.

use std::arch::x86_64::*;

use super::factor::Radices;
use super::vector::{MAX_LANES, Op, Pair, Vector};

/// One vector type: the arithmetic differs in names only. What moves numbers
/// between lanes is written by hand below.
macro_rules! vector {
    ($name:ident, $raw:ty, $t:ty, $lanes:literal, $feature:literal, $order:expr, $radices:expr,
     $set1:ident, $add:ident, $sub:ident, $mul:ident, $fmadd:ident, $fmsub:ident, $fnmadd:ident,
     $load:ident, $store:ident, $stream:ident $(; $($own:tt)*)?) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($raw);

        impl Vector for $name {
            type T = $t;
            const LANES: usize = $lanes;
            const ORDER: [usize; MAX_LANES] = $order;
            const RADICES: Radices = $radices;

            #[inline(always)]
            unsafe fn enter<O: Op<Self>>(op: O) -> O::Out {
                #[target_feature(enable = $feature)]
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
                $name(unsafe { $set1(x) })
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
                // SAFETY: inside `enter`.
                $name(unsafe { $fmadd(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn mul_sub(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $fmsub(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $fnmadd(self.0, b.0, c.0) })
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
            const STREAMS: bool = true;
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: inside `enter`; the caller vouches for the numbers and where they lie.
                unsafe { $stream(p, self.0) }
            }
            #[inline(always)]
            unsafe fn stream_pairs(p: *mut $t, c: Pair<Self>) {
                // SAFETY: inside `enter`; the caller vouches for the numbers and where they lie.
                unsafe {
                    let (low, high) = $name::join(c.re.0, c.im.0);
                    $stream(p, low);
                    $stream(p.add($lanes), high);
                }
            }
            #[inline(always)]
            unsafe fn load_row(p: *const $t) -> Self {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe { $name($name::to_lanes($load(p))) }
            }
            #[inline(always)]
            unsafe fn store_row(self, p: *mut $t) {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe { $store(p, $name::to_lines(self.0)) }
            }
            #[inline(always)]
            unsafe fn load_pairs(p: *const $t) -> Pair<Self> {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe {
                    let (re, im) = $name::split($load(p), $load(p.add($lanes)));
                    Pair { re: $name(re), im: $name(im) }
                }
            }
            #[inline(always)]
            unsafe fn store_pairs(p: *mut $t, c: Pair<Self>) {
                // SAFETY: inside `enter`; the caller vouches for the numbers.
                unsafe {
                    let (low, high) = $name::join(c.re.0, c.im.0);
                    $store(p, low);
                    $store(p.add($lanes), high);
                }
            }
            #[inline(always)]
            fn transpose(rows: &mut [Self; MAX_LANES]) {
                // SAFETY: inside `enter`.
                unsafe { $name::columns(rows) }
            }
            $($($own)*)?
        }
    };
}

// 32 registers: radix 12 just fits. (15 and 16 were tried: they spill and lose to two passes.)
const WIDE: Radices = &[
    (2, 75),
    (3, 80),
    (4, 80),
    (5, 95),
    (7, 120),
    (8, 90),
    (9, 120),
    (10, 108),
    (11, 170),
    (12, 105),
    (13, 190),
];
// 16 registers: radix 4 fits; radix 8 spills, but beats a pass of radix 2.
const NARROW: Radices = &[(2, 60), (3, 80), (4, 75), (5, 100), (7, 140), (8, 125), (11, 200), (13, 230)];

vector!(
    Z64,
    __m512d,
    f64,
    8,
    "avx512f,avx512dq",
    super::natural_order(),
    WIDE,
    _mm512_set1_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_fmadd_pd,
    _mm512_fmsub_pd,
    _mm512_fnmadd_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_stream_pd;
    // Halves of two lines in one register: memory does a third of the shuffles.
    // (On the way back the compiler undoes such a scheme.).
    #[inline(always)]
    unsafe fn load_square(lines: &[*mut f64; MAX_LANES], m: usize) -> [Self; MAX_LANES] {
        // SAFETY: inside `enter`; the caller vouches for the numbers.
        unsafe { Z64::read_halves(lines, m) }
    }
);
vector!(
    Z32,
    __m512,
    f32,
    16,
    "avx512f,avx512dq",
    super::natural_order(),
    WIDE,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_fmsub_ps,
    _mm512_fnmadd_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_stream_ps
);
vector!(
    Y64,
    __m256d,
    f64,
    4,
    "avx2,fma",
    [0, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    NARROW,
    _mm256_set1_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_fmadd_pd,
    _mm256_fmsub_pd,
    _mm256_fnmadd_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_stream_pd
);
vector!(
    Y32,
    __m256,
    f32,
    8,
    "avx2,fma",
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    NARROW,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_fmsub_ps,
    _mm256_fnmadd_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_stream_ps
);

// Each function below is called inside `enter` only (safety) and inlined there.
// `split` parts interleaved complex numbers, `join` undoes it, `to_lanes` and
// `to_lines` go between line order and lane order.

impl Z64 {
    #[inline(always)]
    unsafe fn to_lanes(x: __m512d) -> __m512d {
        x
    }
    #[inline(always)]
    unsafe fn to_lines(x: __m512d) -> __m512d {
        x
    }
    #[inline(always)]
    unsafe fn split(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
        // SAFETY: inside `enter`.
        unsafe {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
        }
    }
    #[inline(always)]
    unsafe fn join(re: __m512d, im: __m512d) -> (__m512d, __m512d) {
        // SAFETY: inside `enter`.
        unsafe {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_pd(re, low, im), _mm512_permutex2var_pd(re, high, im))
        }
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let mut v = [[rows[0].0; 4]; 2];
            for g in 0..4 {
                v[0][g] = _mm512_unpacklo_pd(rows[2 * g].0, rows[2 * g + 1].0);
                v[1][g] = _mm512_unpackhi_pd(rows[2 * g].0, rows[2 * g + 1].0);
            }
            for i in 0..2 {
                let low0 = _mm512_shuffle_f64x2::<0x44>(v[i][0], v[i][1]);
                let high0 = _mm512_shuffle_f64x2::<0xEE>(v[i][0], v[i][1]);
                let low1 = _mm512_shuffle_f64x2::<0x44>(v[i][2], v[i][3]);
                let high1 = _mm512_shuffle_f64x2::<0xEE>(v[i][2], v[i][3]);
                rows[i] = Z64(_mm512_shuffle_f64x2::<0x88>(low0, low1));
                rows[2 + i] = Z64(_mm512_shuffle_f64x2::<0xDD>(low0, low1));
                rows[4 + i] = Z64(_mm512_shuffle_f64x2::<0x88>(high0, high1));
                rows[6 + i] = Z64(_mm512_shuffle_f64x2::<0xDD>(high0, high1));
            }
        }
    }
}

impl Z64 {
    #[inline(always)]
    unsafe fn read_halves(lines: &[*mut f64; MAX_LANES], m: usize) -> [Self; MAX_LANES] {
        // SAFETY: inside `enter`; four numbers at a time of the eight there are.
        unsafe {
            let mut columns = [Z64(_mm512_setzero_pd()); MAX_LANES];
            for half in 0..2 {
                let at = m + 4 * half;
                let mut v = [_mm512_setzero_pd(); 4];
                for (i, v) in v.iter_mut().enumerate() {
                    // Lines 0 and 2, 1 and 3, 4 and 6, 5 and 7.
                    let line = i / 2 * 4 + i % 2;
                    let low = _mm512_castpd256_pd512(_mm256_loadu_pd(lines[line].add(at)));
                    *v = _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(lines[line + 2].add(at)));
                }
                let (a0, a1) = (_mm512_unpacklo_pd(v[0], v[1]), _mm512_unpackhi_pd(v[0], v[1]));
                let (b0, b1) = (_mm512_unpacklo_pd(v[2], v[3]), _mm512_unpackhi_pd(v[2], v[3]));
                columns[4 * half] = Z64(_mm512_shuffle_f64x2::<0x88>(a0, b0));
                columns[4 * half + 1] = Z64(_mm512_shuffle_f64x2::<0x88>(a1, b1));
                columns[4 * half + 2] = Z64(_mm512_shuffle_f64x2::<0xDD>(a0, b0));
                columns[4 * half + 3] = Z64(_mm512_shuffle_f64x2::<0xDD>(a1, b1));
            }
            columns
        }
    }
}

impl Z32 {
    #[inline(always)]
    unsafe fn to_lanes(x: __m512) -> __m512 {
        x
    }
    #[inline(always)]
    unsafe fn to_lines(x: __m512) -> __m512 {
        x
    }
    #[inline(always)]
    unsafe fn split(a: __m512, b: __m512) -> (__m512, __m512) {
        // SAFETY: inside `enter`.
        unsafe {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
        }
    }
    #[inline(always)]
    unsafe fn join(re: __m512, im: __m512) -> (__m512, __m512) {
        // SAFETY: inside `enter`.
        unsafe {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (_mm512_permutex2var_ps(re, low, im), _mm512_permutex2var_ps(re, high, im))
        }
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let mut v = [[rows[0].0; 4]; 4];
            for g in 0..4 {
                let [a, b, c, d] = [rows[4 * g].0, rows[4 * g + 1].0, rows[4 * g + 2].0, rows[4 * g + 3].0];
                let ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
                let ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
                let cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
                let cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
                v[0][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0));
                v[1][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0));
                v[2][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1));
                v[3][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1));
            }
            for i in 0..4 {
                let low0 = _mm512_shuffle_f32x4::<0x44>(v[i][0], v[i][1]);
                let high0 = _mm512_shuffle_f32x4::<0xEE>(v[i][0], v[i][1]);
                let low1 = _mm512_shuffle_f32x4::<0x44>(v[i][2], v[i][3]);
                let high1 = _mm512_shuffle_f32x4::<0xEE>(v[i][2], v[i][3]);
                rows[i] = Z32(_mm512_shuffle_f32x4::<0x88>(low0, low1));
                rows[4 + i] = Z32(_mm512_shuffle_f32x4::<0xDD>(low0, low1));
                rows[8 + i] = Z32(_mm512_shuffle_f32x4::<0x88>(high0, high1));
                rows[12 + i] = Z32(_mm512_shuffle_f32x4::<0xDD>(high0, high1));
            }
        }
    }
}

impl Y64 {
    #[inline(always)]
    unsafe fn to_lanes(x: __m256d) -> __m256d {
        // SAFETY: inside `enter`.
        unsafe { _mm256_permute4x64_pd::<0b11_01_10_00>(x) }
    }
    #[inline(always)]
    unsafe fn to_lines(x: __m256d) -> __m256d {
        // SAFETY: inside `enter`.
        unsafe { _mm256_permute4x64_pd::<0b11_01_10_00>(x) }
    }
    #[inline(always)]
    unsafe fn split(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
        // SAFETY: inside `enter`.
        unsafe { (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)) }
    }
    #[inline(always)]
    unsafe fn join(re: __m256d, im: __m256d) -> (__m256d, __m256d) {
        // SAFETY: inside `enter`.
        unsafe { (_mm256_unpacklo_pd(re, im), _mm256_unpackhi_pd(re, im)) }
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let [a, b, c, d] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
            let (ab0, ab1) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            let (cd0, cd1) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
            rows[0] = Y64(_mm256_permute2f128_pd::<0x20>(ab0, cd0));
            rows[1] = Y64(_mm256_permute2f128_pd::<0x20>(ab1, cd1));
            rows[2] = Y64(_mm256_permute2f128_pd::<0x31>(ab0, cd0));
            rows[3] = Y64(_mm256_permute2f128_pd::<0x31>(ab1, cd1));
        }
    }
}

impl Y32 {
    #[inline(always)]
    unsafe fn to_lanes(x: __m256) -> __m256 {
        // SAFETY: inside `enter`.
        unsafe { _mm256_castpd_ps(Y64::to_lanes(_mm256_castps_pd(x))) }
    }
    #[inline(always)]
    unsafe fn to_lines(x: __m256) -> __m256 {
        // SAFETY: inside `enter`.
        unsafe { Y32::to_lanes(x) }
    }
    #[inline(always)]
    unsafe fn split(a: __m256, b: __m256) -> (__m256, __m256) {
        // SAFETY: inside `enter`.
        unsafe { (_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b)) }
    }
    #[inline(always)]
    unsafe fn join(re: __m256, im: __m256) -> (__m256, __m256) {
        // SAFETY: inside `enter`.
        unsafe { (_mm256_unpacklo_ps(re, im), _mm256_unpackhi_ps(re, im)) }
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LANES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let mut v = [[rows[0].0; 2]; 4];
            for g in 0..2 {
                let [a, b, c, d] = [rows[4 * g].0, rows[4 * g + 1].0, rows[4 * g + 2].0, rows[4 * g + 3].0];
                let ab0 = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
                let ab1 = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
                let cd0 = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
                let cd1 = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
                v[0][g] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab0, cd0));
                v[1][g] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab0, cd0));
                v[2][g] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab1, cd1));
                v[3][g] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab1, cd1));
            }
            for i in 0..4 {
                rows[i] = Y32(_mm256_permute2f128_ps::<0x20>(v[i][0], v[i][1]));
                rows[4 + i] = Y32(_mm256_permute2f128_ps::<0x31>(v[i][0], v[i][1]));
            }
        }
    }
}
