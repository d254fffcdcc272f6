//! Vectors of AVX-512 and of AVX2 with FMA.

use std::arch::x86_64::*;

use super::factorization::Radices;
use super::vector::{MAX_LINES, Op, Vector};

/// A vector type: its arithmetic differs in names only. Operations across
/// lanes are written by hand below.
macro_rules! vector {
    ($name:ident, $half:ident, $raw:ty, $t:ty, $lanes:literal, $feature:literal, $radices:expr,
     $set1:ident, $add:ident, $sub:ident, $mul:ident, $fmadd:ident, $fnmadd:ident,
     $load:ident, $store:ident, $stream:ident, $swap:expr, $reals:ident) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($raw);

        impl Vector for $name {
            type T = $t;
            const LANES: usize = $lanes;
            const RADICES: Radices = $radices;
            type Half = $half;

            #[inline(always)]
            unsafe fn enter<O: Op<Self>>(op: O) -> O::Out {
                #[target_feature(enable = $feature)]
                unsafe fn inside<O: Op<$name>>(op: O) -> O::Out {
                    // SAFETY: `enter`'s contract covers `op`; this function is compiled for the instruction set.
                    unsafe { op.run() }
                }
                // SAFETY: `enter`'s contract: the processor has the instruction set, and `op`'s contract holds.
                unsafe { inside(op) }
            }
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: values exist only inside `enter`, so the processor has the instruction set; likewise below.
                $name(unsafe { $set1(x) })
            }
            #[inline(always)]
            fn splat_complex(re: $t, im: $t) -> Self {
                let mut scalars = [re; $lanes];
                for i in 0..$lanes / 2 {
                    scalars[2 * i + 1] = im;
                }
                // SAFETY: inside `enter`; the array has as many scalars as the vector.
                $name(unsafe { $load(scalars.as_ptr()) })
            }
            #[inline(always)]
            unsafe fn load_complex(p: *const $t) -> Self {
                // SAFETY: `load_complex`'s contract: `p` is valid for two reads.
                unsafe { $name::broadcast_complex(p) }
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
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $fnmadd(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn swap(self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $swap(self.0) })
            }
            #[inline(always)]
            fn reals(self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $reals(self.0) })
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                // SAFETY: inside `enter`.
                $name(unsafe { $name::reversed(self.0) })
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: inside `enter`; `load`'s contract: `p` is valid for LANES reads.
                $name(unsafe { $load(p) })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: inside `enter`; `store`'s contract: `p` is valid for LANES writes.
                unsafe { $store(p, self.0) }
            }
            #[inline(always)]
            unsafe fn load_lines(self, p: *const $t, from: usize, to: usize) -> Self {
                // SAFETY: `load_lines`'s contract is that of `load_some`; inside `enter`.
                unsafe { self.load_some(p, from, to) }
            }
            #[inline(always)]
            unsafe fn store_lines(self, p: *mut $t, from: usize, to: usize) {
                // SAFETY: `store_lines`'s contract is that of `store_some`; inside `enter`.
                unsafe { self.store_some(p, from, to) }
            }
            const STREAMS: bool = true;
            #[inline(always)]
            unsafe fn stream(self, p: *mut $t) {
                // SAFETY: inside `enter`; `stream`'s contract: `p` is valid for LANES writes, and aligned.
                unsafe { $stream(p, self.0) }
            }
            #[inline(always)]
            fn transpose(rows: &mut [Self; MAX_LINES]) {
                // SAFETY: inside `enter`.
                unsafe { $name::columns(rows) }
            }
        }
    };
}

/// A table of radices and the costs of their passes.
macro_rules! radices {
    ($($radix:literal $cost:literal),*) => { &[$(($radix, $cost)),*] };
}

// 32 registers: enough for radix 16.
const WIDE: Radices = radices! {
    2 75, 3 80, 4 80, 5 95, 7 120, 8 88, 9 120, 10 108, 11 170, 12 105, 13 190, 15 112, 16 98, 24 140, 25 150, 27 175
};
// Builds with sanitizers have fewer radices: the others differ in arithmetic only and take long to compile.
#[cfg(ferrier_lean)]
const NARROW: Radices = &[(2, 75), (3, 80), (4, 78), (5, 95), (8, 90)];
// 16 registers: the spills of radix 16 cost less than another pass, but more than two passes of radix 8 and one of 4 save.
#[cfg(not(ferrier_lean))]
const NARROW: Radices = radices! {
    2 75, 3 80, 4 78, 5 95, 7 120, 8 90, 9 120, 10 108, 11 170, 12 112, 13 190, 15 112, 16 130, 24 165, 25 150, 27 175
};

vector! {
    Z64, Y64, __m512d, f64, 8, "avx512f,avx512dq", WIDE,
    _mm512_set1_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_fmadd_pd, _mm512_fnmadd_pd,
    _mm512_loadu_pd, _mm512_storeu_pd, _mm512_stream_pd, _mm512_permute_pd::<0x55>, _mm512_movedup_pd
}
vector! {
    Z32, Y32, __m512, f32, 16, "avx512f,avx512dq", WIDE,
    _mm512_set1_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps,
    _mm512_loadu_ps, _mm512_storeu_ps, _mm512_stream_ps, _mm512_permute_ps::<0xB1>, _mm512_moveldup_ps
}
vector! {
    Y64, Y64, __m256d, f64, 4, "avx2,fma", NARROW,
    _mm256_set1_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd,
    _mm256_loadu_pd, _mm256_storeu_pd, _mm256_stream_pd, _mm256_permute_pd::<0x5>, _mm256_movedup_pd
}
vector! {
    Y32, Y32, __m256, f32, 8, "avx2,fma", NARROW,
    _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps,
    _mm256_loadu_ps, _mm256_storeu_ps, _mm256_stream_ps, _mm256_permute_ps::<0xB1>, _mm256_moveldup_ps
}

/// The mask of the scalars of lines `from..to`.
#[inline(always)]
fn scalars(from: usize, to: usize) -> __mmask16 {
    ((1u32 << (2 * to)) - (1 << (2 * from))) as __mmask16
}

// Each function below is called only inside `enter` (its safety contract) and inlined there.

/// The mask of doubles `from..to`.
#[inline(always)]
unsafe fn doubles(from: usize, to: usize) -> __m256i {
    // SAFETY: inside `enter`.
    unsafe {
        let index = _mm256_setr_epi64x(0, 1, 2, 3);
        let (from, to) = (_mm256_set1_epi64x(from as i64), _mm256_set1_epi64x(to as i64));
        _mm256_andnot_si256(_mm256_cmpgt_epi64(from, index), _mm256_cmpgt_epi64(to, index))
    }
}

impl Z64 {
    #[inline(always)]
    unsafe fn load_some(self, p: *const f64, from: usize, to: usize) -> Self {
        // SAFETY: inside `enter`; the scalars that the mask selects are valid for reads, others are not accessed.
        Z64(unsafe { _mm512_mask_loadu_pd(self.0, scalars(from, to) as __mmask8, p) })
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut f64, from: usize, to: usize) {
        // SAFETY: inside `enter`; the scalars that the mask selects are valid for writes, others are not accessed.
        unsafe { _mm512_mask_storeu_pd(p, scalars(from, to) as __mmask8, self.0) }
    }
    #[inline(always)]
    unsafe fn reversed(x: __m512d) -> __m512d {
        // SAFETY: inside `enter`.
        unsafe { _mm512_shuffle_f64x2::<0x1B>(x, x) }
    }
    #[inline(always)]
    unsafe fn broadcast_complex(p: *const f64) -> Self {
        // SAFETY: inside `enter`; `load_complex`'s contract: `p` is valid for two reads.
        Z64(unsafe { _mm512_broadcast_f64x2(_mm_loadu_pd(p)) })
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LINES]) {
        let [a, b, c, d] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
        // SAFETY: inside `enter`. Pairs of elements first, then single ones.
        unsafe {
            let (ab0, ab1) = (_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0xEE>(a, b));
            let (cd0, cd1) = (_mm512_shuffle_f64x2::<0x44>(c, d), _mm512_shuffle_f64x2::<0xEE>(c, d));
            rows[0] = Z64(_mm512_shuffle_f64x2::<0x88>(ab0, cd0));
            rows[1] = Z64(_mm512_shuffle_f64x2::<0xDD>(ab0, cd0));
            rows[2] = Z64(_mm512_shuffle_f64x2::<0x88>(ab1, cd1));
            rows[3] = Z64(_mm512_shuffle_f64x2::<0xDD>(ab1, cd1));
        }
    }
}

impl Z32 {
    #[inline(always)]
    unsafe fn load_some(self, p: *const f32, from: usize, to: usize) -> Self {
        // SAFETY: inside `enter`; the scalars that the mask selects are valid for reads, others are not accessed.
        Z32(unsafe { _mm512_mask_loadu_ps(self.0, scalars(from, to), p) })
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut f32, from: usize, to: usize) {
        // SAFETY: inside `enter`; the scalars that the mask selects are valid for writes, others are not accessed.
        unsafe { _mm512_mask_storeu_ps(p, scalars(from, to), self.0) }
    }
    #[inline(always)]
    unsafe fn reversed(x: __m512) -> __m512 {
        // SAFETY: inside `enter`.
        unsafe {
            _mm512_castpd_ps(_mm512_permutexvar_pd(
                _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                _mm512_castps_pd(x),
            ))
        }
    }
    #[inline(always)]
    unsafe fn broadcast_complex(p: *const f32) -> Self {
        // SAFETY: inside `enter`; `load_complex`'s contract: `p` is valid for two reads.
        Z32(unsafe { _mm512_castpd_ps(_mm512_set1_pd(p.cast::<f64>().read_unaligned())) })
    }
    /// A complex number has the size of a double.
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LINES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let mut v = [[_mm512_setzero_pd(); 4]; 2];
            for g in 0..4 {
                let (a, b) = (_mm512_castps_pd(rows[2 * g].0), _mm512_castps_pd(rows[2 * g + 1].0));
                v[0][g] = _mm512_unpacklo_pd(a, b);
                v[1][g] = _mm512_unpackhi_pd(a, b);
            }
            for i in 0..2 {
                let low0 = _mm512_shuffle_f64x2::<0x44>(v[i][0], v[i][1]);
                let high0 = _mm512_shuffle_f64x2::<0xEE>(v[i][0], v[i][1]);
                let low1 = _mm512_shuffle_f64x2::<0x44>(v[i][2], v[i][3]);
                let high1 = _mm512_shuffle_f64x2::<0xEE>(v[i][2], v[i][3]);
                rows[i] = Z32(_mm512_castpd_ps(_mm512_shuffle_f64x2::<0x88>(low0, low1)));
                rows[2 + i] = Z32(_mm512_castpd_ps(_mm512_shuffle_f64x2::<0xDD>(low0, low1)));
                rows[4 + i] = Z32(_mm512_castpd_ps(_mm512_shuffle_f64x2::<0x88>(high0, high1)));
                rows[6 + i] = Z32(_mm512_castpd_ps(_mm512_shuffle_f64x2::<0xDD>(high0, high1)));
            }
        }
    }
}

impl Y64 {
    #[inline(always)]
    unsafe fn load_some(self, p: *const f64, from: usize, to: usize) -> Self {
        // SAFETY: inside `enter`; the doubles that the mask selects are valid for reads, others are not accessed.
        unsafe {
            let mask = doubles(2 * from, 2 * to);
            Y64(_mm256_blendv_pd(self.0, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask)))
        }
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut f64, from: usize, to: usize) {
        // SAFETY: inside `enter`; the doubles that the mask selects are valid for writes, others are not accessed.
        unsafe { _mm256_maskstore_pd(p, doubles(2 * from, 2 * to), self.0) }
    }
    #[inline(always)]
    unsafe fn reversed(x: __m256d) -> __m256d {
        // SAFETY: inside `enter`.
        unsafe { _mm256_permute2f128_pd::<0x01>(x, x) }
    }
    #[inline(always)]
    unsafe fn broadcast_complex(p: *const f64) -> Self {
        // SAFETY: inside `enter`; `load_complex`'s contract: `p` is valid for two reads.
        Y64(unsafe { _mm256_set_m128d(_mm_loadu_pd(p), _mm_loadu_pd(p)) })
    }
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LINES]) {
        let (a, b) = (rows[0].0, rows[1].0);
        // SAFETY: inside `enter`.
        unsafe {
            rows[0] = Y64(_mm256_permute2f128_pd::<0x20>(a, b));
            rows[1] = Y64(_mm256_permute2f128_pd::<0x31>(a, b));
        }
    }
}

impl Y32 {
    #[inline(always)]
    unsafe fn load_some(self, p: *const f32, from: usize, to: usize) -> Self {
        // SAFETY: as for `Y64`; a complex number has the size of a double.
        unsafe {
            let (mask, x) = (doubles(from, to), _mm256_castps_pd(self.0));
            let loaded = _mm256_maskload_pd(p.cast(), mask);
            Y32(_mm256_castpd_ps(_mm256_blendv_pd(x, loaded, _mm256_castsi256_pd(mask))))
        }
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut f32, from: usize, to: usize) {
        // SAFETY: as for `Y64`; a complex number has the size of a double.
        unsafe { _mm256_maskstore_pd(p.cast(), doubles(from, to), _mm256_castps_pd(self.0)) }
    }
    #[inline(always)]
    unsafe fn reversed(x: __m256) -> __m256 {
        // SAFETY: inside `enter`.
        unsafe { _mm256_castpd_ps(_mm256_permute4x64_pd::<0x1B>(_mm256_castps_pd(x))) }
    }
    #[inline(always)]
    unsafe fn broadcast_complex(p: *const f32) -> Self {
        // SAFETY: inside `enter`; `load_complex`'s contract: `p` is valid for two reads.
        Y32(unsafe { _mm256_castpd_ps(_mm256_set1_pd(p.cast::<f64>().read_unaligned())) })
    }
    /// A complex number has the size of a double.
    #[inline(always)]
    unsafe fn columns(rows: &mut [Self; MAX_LINES]) {
        // SAFETY: inside `enter`.
        unsafe {
            let (a, b) = (_mm256_castps_pd(rows[0].0), _mm256_castps_pd(rows[1].0));
            let (c, d) = (_mm256_castps_pd(rows[2].0), _mm256_castps_pd(rows[3].0));
            let (ab0, ab1) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            let (cd0, cd1) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
            rows[0] = Y32(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x20>(ab0, cd0)));
            rows[1] = Y32(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x20>(ab1, cd1)));
            rows[2] = Y32(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x31>(ab0, cd0)));
            rows[3] = Y32(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x31>(ab1, cd1)));
        }
    }
}
