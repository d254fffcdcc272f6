//! What the passes need of a vector of lanes, and complex numbers made of two.

use super::factor::Radices;
use crate::Real;

/// The widest vector there is, in lanes.
pub(super) const MAX_LANES: usize = 16;

/// A vector with one number of each of `LANES` lines.
///
/// Values may exist only inside [`Vector::enter`], which is where the
/// instructions behind them are known to be there: that is what makes the
/// arithmetic safe to call.
pub(super) trait Vector: Copy + 'static {
    /// The number in a lane.
    type T: Real;
    /// How many lines.
    const LANES: usize;
    /// Lane `i` holds line `ORDER[i]` of the group: the order in which
    /// [`load_pairs`](Vector::load_pairs) is cheapest.
    const ORDER: [usize; MAX_LANES];
    /// Radices worth a pass of their own and what it costs: large ones save trips
    /// to the cache, but only where there are registers for them.
    const RADICES: Radices;

    /// Runs `op` in a function compiled for this instruction set.
    ///
    /// # Safety
    /// The processor has the instruction set; what `op` asks of its caller holds.
    unsafe fn enter<O: Op<Self>>(op: O) -> O::Out;

    fn splat(x: Self::T) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    #[inline(always)]
    fn negated(self) -> Self {
        Self::splat(Self::T::rounded(-0.0)).sub(self)
    }
    /// `self * b + c`
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `self * b - c`
    fn mul_sub(self, b: Self, c: Self) -> Self;
    /// `c - self * b`
    fn neg_mul_add(self, b: Self, c: Self) -> Self;

    /// # Safety
    /// `LANES` numbers can be read.
    unsafe fn load(p: *const Self::T) -> Self;
    /// # Safety
    /// `LANES` numbers can be written.
    unsafe fn store(self, p: *mut Self::T);
    /// Numbers of neighbouring lines, in line order in memory.
    /// # Safety
    /// `LANES` numbers can be read.
    unsafe fn load_row(p: *const Self::T) -> Self;
    /// # Safety
    /// `LANES` numbers can be written.
    unsafe fn store_row(self, p: *mut Self::T);
    /// Complex numbers of neighbouring lines, in line order in memory.
    /// # Safety
    /// `2 * LANES` numbers can be read.
    unsafe fn load_pairs(p: *const Self::T) -> Pair<Self>;
    /// # Safety
    /// `2 * LANES` numbers can be written.
    unsafe fn store_pairs(p: *mut Self::T, c: Pair<Self>);
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
    /// [`store_pairs`](Vector::store_pairs) past the caches where that can be.
    /// # Safety
    /// `2 * LANES` numbers can be written, aligned to the vector's size.
    #[inline(always)]
    unsafe fn stream_pairs(p: *mut Self::T, c: Pair<Self>) {
        // SAFETY: the caller's promise.
        unsafe { Self::store_pairs(p, c) };
    }
    /// Turns the first `LANES` rows into columns.
    fn transpose(rows: &mut [Self; MAX_LANES]);

    /// `LANES` numbers of each lane's line, from number `m` on, one vector for each number.
    /// # Safety
    /// They can be read.
    #[inline(always)]
    unsafe fn load_square(lines: &[*mut Self::T; MAX_LANES], m: usize) -> [Self; MAX_LANES] {
        let mut rows = [Self::splat(Self::T::default()); MAX_LANES];
        for i in 0..Self::LANES {
            // SAFETY: the caller's promise.
            rows[i] = unsafe { Self::load(lines[i].add(m)) };
        }
        Self::transpose(&mut rows);
        rows
    }

    /// The way back.
    /// # Safety
    /// They can be written, and are aligned to the vector's size for `stream`.
    #[inline(always)]
    unsafe fn store_square(
        mut columns: [Self; MAX_LANES],
        lines: &[*mut Self::T; MAX_LANES],
        m: usize,
        stream: bool,
    ) {
        Self::transpose(&mut columns);
        for i in 0..Self::LANES {
            // SAFETY: the caller's promise.
            unsafe {
                if stream {
                    columns[i].stream(lines[i].add(m));
                } else {
                    columns[i].store(lines[i].add(m));
                }
            }
        }
    }
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

/// A complex number of each of `LANES` lines.
#[derive(Clone, Copy)]
pub(super) struct Pair<V> {
    pub re: V,
    pub im: V,
}

impl<V: Vector> Pair<V> {
    #[inline(always)]
    pub fn zero() -> Self {
        let zero = V::splat(<V::T as Default>::default());
        Pair { re: zero, im: zero }
    }

    #[inline(always)]
    pub fn add(self, b: Self) -> Self {
        Pair { re: self.re.add(b.re), im: self.im.add(b.im) }
    }

    #[inline(always)]
    pub fn sub(self, b: Self) -> Self {
        Pair { re: self.re.sub(b.re), im: self.im.sub(b.im) }
    }

    /// `self + i b`
    #[inline(always)]
    pub fn add_i(self, b: Self) -> Self {
        Pair { re: self.re.sub(b.im), im: self.im.add(b.re) }
    }

    /// `self - i b`
    #[inline(always)]
    pub fn sub_i(self, b: Self) -> Self {
        Pair { re: self.re.add(b.im), im: self.im.sub(b.re) }
    }

    #[inline(always)]
    pub fn times(self, wr: V, wi: V) -> Self {
        Pair { re: self.re.mul_sub(wr, self.im.mul(wi)), im: self.re.mul_add(wi, self.im.mul(wr)) }
    }

    #[inline(always)]
    pub fn scaled(self, s: V) -> Self {
        Pair { re: self.re.mul(s), im: self.im.mul(s) }
    }

    /// Element `k` of an area of scratch, where the real parts of all lanes
    /// are followed by their imaginary parts.
    ///
    /// # Safety
    /// The area reaches that far.
    #[inline(always)]
    pub unsafe fn load(area: *const V::T, k: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let p = area.add(2 * V::LANES * k);
            Pair { re: V::load(p), im: V::load(p.add(V::LANES)) }
        }
    }

    /// # Safety
    /// The area reaches as far as element `k`.
    #[inline(always)]
    pub unsafe fn store(self, area: *mut V::T, k: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let p = area.add(2 * V::LANES * k);
            self.re.store(p);
            self.im.store(p.add(V::LANES));
        }
    }
}
