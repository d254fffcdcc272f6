//! Real lines. An even number of reals is transformed as half as many complex
//! numbers, with an extra pass before or after. Odd lengths use a complex
//! transform of the full length.

use std::marker::PhantomData;

use super::line_io::LineIo;
use super::vector::{FACTOR_LEN, Op, Vector, packed_factor};
use crate::real::Real;
use crate::roots::Roots;

/// Twiddles of the extra pass for `n` reals, one for each pair of elements;
/// conjugate for the backward transform.
pub(super) fn twiddles<T: Real>(n: usize, backward: bool) -> Vec<T> {
    let roots = Roots::new(n);
    let sign = if backward { 1.0 } else { -1.0 };
    let pairs = (0..=n / 4).map(|k| roots.get(k));
    pairs.flat_map(|(cos, sin)| packed_factor(cos, sign * sin)).collect()
}

/// After the complex transform of `half` elements: computes twice the spectrum of the reals.
pub(super) struct Unfold<'a, V: Vector, D> {
    pub area: *const V::T,
    pub half: usize,
    pub twiddles: &'a [V::T],
    pub to: D,
}

impl<V: Vector, D: LineIo<V>> Op<V> for Unfold<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (k, w) in self.twiddles.chunks_exact(FACTOR_LEN).enumerate() {
            let mirror = self.half - k;
            // SAFETY: the area has `half` elements, `to` has `half + 1`.
            unsafe {
                let a = V::get(self.area, k);
                let b = V::get(self.area, if k == 0 { 0 } else { mirror });
                let even = a.add_conj(b);
                let odd = a.sub_conj(b).times_factor(w.as_ptr());
                self.to.put(k, even.sub_i(odd));
                self.to.put(mirror, even.add_i(odd).conj());
            }
        }
    }
}

/// Before the backward complex transform: computes `half` elements from `half + 1`.
pub(super) struct Fold<'a, V: Vector, S> {
    pub from: S,
    pub half: usize,
    pub twiddles: &'a [V::T],
    pub area: *mut V::T,
}

impl<V: Vector, S: LineIo<V>> Op<V> for Fold<'_, V, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the source has `half + 1` elements, the area `half`.
        unsafe {
            // The imaginary parts of these two are taken as zero.
            let (a, b) = (self.from.get(0).reals(), self.from.get(self.half).reals());
            a.add_conj(b).put(self.area, 0);
            for (k, w) in self.twiddles.chunks_exact(FACTOR_LEN).enumerate().skip(1) {
                let mirror = self.half - k;
                let (a, b) = (self.from.get(k), self.from.get(mirror));
                let even = a.add_conj(b);
                let odd = a.sub_conj(b).times_factor(w.as_ptr());
                even.add_i(odd).put(self.area, k);
                even.sub_i(odd).conj().put(self.area, mirror);
            }
        }
    }
}

/// Fills the second half of an odd number of elements with conjugates of the first.
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
            for line in 0..V::LINES {
                *self.area.add(2 * line + 1) = V::T::default();
            }
            for k in 1..=self.n / 2 {
                V::get(self.area, k).conj().put(self.area, self.n - k);
            }
        }
    }
}
