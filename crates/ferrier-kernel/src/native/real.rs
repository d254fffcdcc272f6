//! Real lines. An even number of reals is half as many complex numbers; one
//! more pass over the halves, before or after, makes up for that. Odd lengths
//! go through a complex transform of the full length.

use std::marker::PhantomData;

use super::ports::{Sink, Source};
use super::roots::Roots;
use super::vector::{Op, Pair, Vector};
use crate::Real;

/// Twiddles of the extra pass for `n` reals: one for each pair of elements.
pub(super) fn twiddles<T: Real>(n: usize) -> Vec<T> {
    let roots = Roots::new(n);
    let pairs = (0..=n / 4).map(|k| roots.get(k));
    pairs.flat_map(|(cos, sin)| [T::rounded(cos), T::rounded(-sin)]).collect()
}

/// After the complex transform of `half` elements: twice the spectrum of the reals.
pub(super) struct Unfold<'a, V: Vector, D> {
    pub area: *const V::T,
    pub half: usize,
    pub twiddles: &'a [V::T],
    pub to: D,
}

impl<V: Vector, D: Sink<V>> Op<V> for Unfold<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (k, w) in self.twiddles.chunks_exact(2).enumerate() {
            let mirror = self.half - k;
            // SAFETY: the area has `half` elements, `to` one place more.
            unsafe {
                let a = Pair::<V>::load(self.area, k);
                let b = Pair::<V>::load(self.area, if k == 0 { 0 } else { mirror });
                let even = Pair { re: a.re.add(b.re), im: a.im.sub(b.im) };
                let odd = Pair { re: a.re.sub(b.re), im: a.im.add(b.im) };
                let odd = odd.times(V::splat(w[0]), V::splat(w[1]));
                self.to.put(k, even.sub_i(odd));
                // The conjugate of even + i odd.
                self.to.put(mirror, Pair { re: even.re.sub(odd.im), im: (odd.re.add(even.im)).negated() });
            }
        }
    }
}

/// Before the complex transform backwards: `half` elements from one more.
pub(super) struct Fold<'a, V: Vector, S> {
    pub from: S,
    pub half: usize,
    pub twiddles: &'a [V::T],
    pub area: *mut V::T,
}

impl<V: Vector, S: Source<V>> Op<V> for Fold<'_, V, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the source has `half + 1` elements, the area `half`.
        unsafe {
            // The imaginary parts of these two count as zero.
            let (a, b) = (self.from.get(0).re, self.from.get(self.half).re);
            Pair { re: a.add(b), im: a.sub(b) }.store(self.area, 0);
            for (k, w) in self.twiddles.chunks_exact(2).enumerate().skip(1) {
                let mirror = self.half - k;
                let (a, b) = (self.from.get(k), self.from.get(mirror));
                let even = Pair { re: a.re.add(b.re), im: a.im.sub(b.im) };
                let odd = Pair { re: a.re.sub(b.re), im: a.im.add(b.im) };
                // Backwards: the conjugate twiddle.
                let odd = odd.times(V::splat(w[0]), V::splat(w[1]).negated());
                even.add_i(odd).store(self.area, k);
                Pair { re: even.re.add(odd.im), im: odd.re.sub(even.im) }.store(self.area, mirror);
            }
        }
    }
}

/// Imaginary parts of zero.
pub(super) struct Blank<V: Vector> {
    pub area: *mut V::T,
    pub n: usize,
}

impl<V: Vector> Op<V> for Blank<V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for k in 0..self.n {
            // SAFETY: the area has n elements.
            unsafe { V::splat(V::T::default()).store(self.area.add((2 * k + 1) * V::LANES)) };
        }
    }
}

/// The conjugate second half of an odd number of elements.
pub(super) struct Mirror<V: Vector> {
    pub area: *mut V::T,
    pub n: usize,
    pub lanes: PhantomData<V>,
}

impl<V: Vector> Op<V> for Mirror<V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the area has n elements.
        unsafe {
            let first = Pair::<V>::load(self.area, 0);
            Pair { re: first.re, im: Pair::<V>::zero().im }.store(self.area, 0);
            for k in 1..=self.n / 2 {
                let x = Pair::<V>::load(self.area, k);
                Pair { re: x.re, im: x.im.negated() }.store(self.area, self.n - k);
            }
        }
    }
}
