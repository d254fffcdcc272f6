//! What the passes need of a vector: complex numbers of several lines.

use super::factor::Radices;
use crate::real::Real;

/// The widest vector there is: its numbers, and the lines it carries.
pub(super) const MAX_LANES: usize = 16;
pub(super) const MAX_LINES: usize = MAX_LANES / 2;

/// A vector with one complex number of each of `LINES` lines, imaginary parts
/// next to real ones, as they lie in the caller's memory. So a row of
/// neighbouring lines is loaded as it is, and a number takes one register.
///
/// Values may exist only inside [`Vector::enter`], which is where the
/// instructions behind them are known to be there: that is what makes the
/// arithmetic safe to call.
pub(super) trait Vector: Copy + 'static {
    /// The numbers in it.
    type T: Real;
    /// How many numbers.
    const LANES: usize;
    /// How many lines.
    const LINES: usize = Self::LANES / 2;
    /// Whether it is less than a cache line.
    const SHORT: bool = Self::LANES * size_of::<Self::T>() < 64;
    /// Radices worth a pass of their own and what it costs: large ones save trips
    /// to the cache, but only where there are registers for them.
    const RADICES: Radices;

    /// Runs `op` in a function compiled for this instruction set.
    ///
    /// # Safety
    /// The processor has the instruction set; what `op` asks of its caller holds.
    unsafe fn enter<O: Op<Self>>(op: O) -> O::Out;

    fn splat(x: Self::T) -> Self;
    /// `re + i im` in every line.
    fn twin(re: Self::T, im: Self::T) -> Self;
    /// The two numbers at `p`, in every line.
    /// # Safety
    /// Two numbers can be read.
    unsafe fn load_twin(p: *const Self::T) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    /// Number by number, not complex; likewise below.
    fn mul(self, b: Self) -> Self;
    /// `self * b + c`
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// Real and imaginary parts in each other's place.
    fn swap(self) -> Self;
    /// The real part in the place of both.
    fn reals(self) -> Self;
    /// The complex numbers in reverse order.
    fn reverse(self) -> Self;

    /// # Safety
    /// `LANES` numbers can be read.
    unsafe fn load(p: *const Self::T) -> Self;
    /// # Safety
    /// `LANES` numbers can be written.
    unsafe fn store(self, p: *mut Self::T);
    /// Whether there are stores that go past the caches.
    const STREAMS: bool = false;
    /// [`store`](Vector::store) past the caches where that can be.
    /// # Safety
    /// `LANES` numbers can be written, aligned to the vector's size.
    #[inline(always)]
    unsafe fn stream(self, p: *mut Self::T) {
        // SAFETY: the caller's promise.
        unsafe { self.store(p) };
    }
    /// Turns the first `LINES` rows of complex numbers into columns.
    fn transpose(rows: &mut [Self; MAX_LINES]);

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(Self::T::default())
    }

    /// `self + i b`. Products with one change no bit.
    #[inline(always)]
    fn add_i(self, b: Self) -> Self {
        b.swap().mul_add(Self::twin(Self::T::rounded(-1.0), Self::T::rounded(1.0)), self)
    }

    /// `self - i b`
    #[inline(always)]
    fn sub_i(self, b: Self) -> Self {
        b.swap().neg_mul_add(Self::twin(Self::T::rounded(-1.0), Self::T::rounded(1.0)), self)
    }

    /// `self + conj(b)`
    #[inline(always)]
    fn add_conj(self, b: Self) -> Self {
        b.mul_add(Self::twin(Self::T::rounded(1.0), Self::T::rounded(-1.0)), self)
    }

    /// `self - conj(b)`
    #[inline(always)]
    fn sub_conj(self, b: Self) -> Self {
        b.neg_mul_add(Self::twin(Self::T::rounded(1.0), Self::T::rounded(-1.0)), self)
    }

    #[inline(always)]
    fn conj(self) -> Self {
        self.mul(Self::twin(Self::T::rounded(1.0), Self::T::rounded(-1.0)))
    }

    /// The complex product with `re + i im`, which come as `re` everywhere
    /// and as `-im` and `im` in the places of real and imaginary parts.
    #[inline(always)]
    fn times(self, re: Self, im: Self) -> Self {
        self.mul_add(re, self.swap().mul(im))
    }

    /// The complex product with a [`factor`].
    ///
    /// # Safety
    /// Three numbers can be read.
    #[inline(always)]
    unsafe fn times_factor(self, w: *const Self::T) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.times(Self::splat(*w), Self::load_twin(w.add(1))) }
    }

    /// Element `k` of an area of scratch, vector after vector.
    ///
    /// # Safety
    /// The area reaches that far.
    #[inline(always)]
    unsafe fn get(area: *const Self::T, k: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(area.add(Self::LANES * k)) }
    }

    /// # Safety
    /// The area reaches as far as element `k`.
    #[inline(always)]
    unsafe fn put(self, area: *mut Self::T, k: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.store(area.add(Self::LANES * k)) };
    }
}

/// Numbers of a [`factor`].
pub(super) const FACTOR: usize = 3;

/// A complex factor as tables hold it, ready for [`Vector::times_factor`].
pub(super) fn factor<T: Real>(re: f64, im: f64) -> [T; FACTOR] {
    [T::rounded(re), T::rounded(-im), T::rounded(im)]
}

/// Work that runs inside [`Vector::enter`].
pub(super) trait Op<V: Vector> {
    type Out;
    /// Must be `#[inline(always)]`, or it is compiled without the instructions.
    ///
    /// # Safety
    /// Called through [`Vector::enter`]; the pointers that the op holds are good.
    unsafe fn run(self) -> Self::Out;
}
