//! The vector operations of the passes: complex numbers of several lines.

use super::factorization::Radices;
use crate::real::Real;

/// Scalars and lines of the widest vector.
pub(super) const MAX_LANES: usize = 16;
pub(super) const MAX_LINES: usize = MAX_LANES / 2;

/// A vector with one complex number of each of `LINES` lines, imaginary parts
/// next to real ones, as in the caller's memory. So a row of neighbouring lines
/// is loaded without shuffles into one register.
///
/// Values exist only inside [`Vector::enter`], where the processor is known to
/// have the instruction set: that makes the arithmetic safe to call.
pub(super) trait Vector: Copy + 'static {
    /// The type of its scalars.
    type T: Real;
    /// Number of scalars.
    const LANES: usize;
    /// Number of lines.
    const LINES: usize = Self::LANES / 2;
    /// Whether it is shorter than a cache line.
    const SHORT: bool = Self::LANES * size_of::<Self::T>() < 64;
    /// Radices of passes and their costs: large radices save memory accesses,
    /// but only with enough registers.
    const RADICES: Radices;
    /// The vector of half as many lines, or itself.
    type Half: Vector<T = Self::T>;

    /// Runs `op` in a function compiled for this instruction set.
    ///
    /// # Safety
    /// The processor has the instruction set; the contract of `op`'s `run` holds.
    unsafe fn enter<O: Op<Self>>(op: O) -> O::Out;

    fn splat(x: Self::T) -> Self;
    /// `re + i im` in every line.
    fn splat_complex(re: Self::T, im: Self::T) -> Self;
    /// The complex number at `p`, in every line.
    /// # Safety
    /// `p` is valid for two reads.
    unsafe fn load_complex(p: *const Self::T) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    /// Scalar by scalar, not complex; likewise below.
    fn mul(self, b: Self) -> Self;
    /// `self * b + c`
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// Real and imaginary parts exchanged.
    fn swap(self) -> Self;
    /// The imaginary parts replaced by the real parts.
    fn reals(self) -> Self;
    /// The complex numbers in reverse order.
    fn reverse(self) -> Self;

    /// # Safety
    /// `p` is valid for `LANES` reads.
    unsafe fn load(p: *const Self::T) -> Self;
    /// # Safety
    /// `p` is valid for `LANES` writes.
    unsafe fn store(self, p: *mut Self::T);
    /// With the complex numbers of lines `from..to` loaded; that of line 0 would be at `p`. Accesses only what it loads.
    /// # Safety
    /// `from <= to <= LINES`; the complex numbers are valid for reads.
    unsafe fn load_lines(self, p: *const Self::T, from: usize, to: usize) -> Self;
    /// Stores the complex numbers of lines `from..to`, and accesses nothing else, like [`load_lines`](Vector::load_lines).
    /// # Safety
    /// `from <= to <= LINES`; the complex numbers are valid for writes.
    unsafe fn store_lines(self, p: *mut Self::T, from: usize, to: usize);
    /// Whether there are non-temporal stores.
    const STREAMS: bool = false;
    /// [`store`](Vector::store), non-temporal if there are such stores.
    /// # Safety
    /// `p` is valid for `LANES` writes and aligned to the vector's size.
    #[inline(always)]
    unsafe fn stream(self, p: *mut Self::T) {
        // SAFETY: `stream`'s contract includes that of `store`.
        unsafe { self.store(p) };
    }
    /// Transposes the square of the first `LINES` rows of complex numbers.
    fn transpose(rows: &mut [Self; MAX_LINES]);

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(Self::T::default())
    }

    /// `self + i b`. Multiplying by one changes no bit.
    #[inline(always)]
    fn add_i(self, b: Self) -> Self {
        b.swap().mul_add(Self::splat_complex(Self::T::rounded(-1.0), Self::T::rounded(1.0)), self)
    }

    /// `self - i b`
    #[inline(always)]
    fn sub_i(self, b: Self) -> Self {
        b.swap().neg_mul_add(Self::splat_complex(Self::T::rounded(-1.0), Self::T::rounded(1.0)), self)
    }

    /// `self + conj(b)`
    #[inline(always)]
    fn add_conj(self, b: Self) -> Self {
        b.mul_add(Self::splat_complex(Self::T::rounded(1.0), Self::T::rounded(-1.0)), self)
    }

    /// `self - conj(b)`
    #[inline(always)]
    fn sub_conj(self, b: Self) -> Self {
        b.neg_mul_add(Self::splat_complex(Self::T::rounded(1.0), Self::T::rounded(-1.0)), self)
    }

    #[inline(always)]
    fn conj(self) -> Self {
        self.mul(Self::splat_complex(Self::T::rounded(1.0), Self::T::rounded(-1.0)))
    }

    /// The complex product with a factor given by its real part in all lanes, and
    /// by `-im` and `im` in the lanes of real and imaginary parts.
    #[inline(always)]
    fn times(self, re: Self, im: Self) -> Self {
        self.mul_add(re, self.swap().mul(im))
    }

    /// The complex product with a [`packed_factor`].
    ///
    /// # Safety
    /// `w` is valid for three reads.
    #[inline(always)]
    unsafe fn times_factor(self, w: *const Self::T) -> Self {
        // SAFETY: `times_factor`'s contract: `w` is valid for three reads.
        unsafe { self.times(Self::splat(*w), Self::load_complex(w.add(1))) }
    }

    /// Element `k` of an area of scratch, vector after vector.
    ///
    /// # Safety
    /// The area has more than `k` elements.
    #[inline(always)]
    unsafe fn get(area: *const Self::T, k: usize) -> Self {
        // SAFETY: `get`'s contract: the area has element `k`.
        unsafe { Self::load(area.add(Self::LANES * k)) }
    }

    /// # Safety
    /// The area has more than `k` elements.
    #[inline(always)]
    unsafe fn put(self, area: *mut Self::T, k: usize) {
        // SAFETY: `put`'s contract: the area has element `k`.
        unsafe { self.store(area.add(Self::LANES * k)) };
    }
}

/// Scalars of a packed factor.
pub(super) const FACTOR_LEN: usize = 3;

/// A complex factor as stored in tables, for [`Vector::times_factor`].
pub(super) fn packed_factor<T: Real>(re: f64, im: f64) -> [T; FACTOR_LEN] {
    [T::rounded(re), T::rounded(-im), T::rounded(im)]
}

/// Work that runs inside [`Vector::enter`].
pub(super) trait Op<V: Vector> {
    type Out;
    /// Must be `#[inline(always)]`; otherwise it is compiled without the instruction set.
    ///
    /// # Safety
    /// Called through [`Vector::enter`]; the pointers of the op are valid for its accesses.
    unsafe fn run(self) -> Self::Out;
}
