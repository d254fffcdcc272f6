//! Lengths that no radix divides, as convolutions on the same lanes: Rader
//! for primes whose predecessor has small factors, Bluestein for the rest.

use std::marker::PhantomData;

use super::factor::{Radices, factors, is_prime, power, primitive_root, smooth_from};
use super::fft::Fft;
use super::portable::Portable;
use super::ports::{Area, Sink};
use super::roots::Roots;
use super::touch::Touch;
use super::vector::{Op, Pair, Vector};
use crate::Real;

/// The spectrum of a convolution's kernel, over its length: in double
/// precision, whatever the precision of the lines.
fn spectrum<T: Real>(kernel: impl Iterator<Item = (f64, f64)>) -> Vec<T> {
    type V = Portable<f64>;
    let kernel: Vec<_> = kernel.collect();
    let n = kernel.len();
    let fft = Fft::<f64>::new(n, V::RADICES, false);
    let mut work = vec![0.0; (2 * n + fft.spare()) * 2 * V::LANES];
    for (k, x) in kernel.iter().enumerate() {
        (work[2 * k * V::LANES], work[(2 * k + 1) * V::LANES]) = *x;
    }
    let a = work.as_mut_ptr();
    // SAFETY: two areas of n elements and the spare one; plain arrays need no instruction set.
    unsafe {
        let b = a.add(n * 2 * V::LANES);
        let spare = b.add(n * 2 * V::LANES);
        fft.run::<V, _, _>(Area(a), a, Area(b), spare, &mut Touch::nothing());
    }
    let lane = work[n * 2 * V::LANES..].iter().step_by(V::LANES).take(2 * n);
    lane.map(|x| T::rounded(x / n as f64)).collect()
}

/// Rader: but for element 0, a transform of a prime length is a cyclic
/// convolution in the order of the powers of a primitive root.
pub(super) struct Rader<T> {
    p: usize,
    inner: Fft<T>,
    order_in: Vec<usize>,
    order_out: Vec<usize>,
    spectrum: Vec<T>,
}

impl<T: Real> Rader<T> {
    /// None where Bluestein does better.
    pub fn new(p: usize, radices: Radices) -> Option<Self> {
        if !is_prime(p) || factors(p - 1, radices).1 > 1 {
            return None;
        }
        let n = p - 1;
        let g = primitive_root(p);
        let back = power(g, p - 2, p);
        let powers = |g: usize| std::iter::successors(Some(1), move |x| Some(x * g % p)).take(n);
        let roots = Roots::new(p);
        let minus = |(cos, sin): (f64, f64)| (cos, -sin);
        Some(Rader {
            p,
            inner: Fft::new(n, radices, false),
            order_in: powers(g).collect(),
            // The second transform runs forward too, so its results come in reverse.
            order_out: (0..n).map(|q| power(back, (n - q) % n, p)).collect(),
            spectrum: spectrum(powers(back).map(|k| minus(roots.get(k)))),
        })
    }

    pub fn spare(&self) -> usize {
        2 * (self.p - 1) + self.inner.spare()
    }

    /// # Safety
    /// As [`Fft::run`]; `to` has places for the p results, `stride` apart from `base`.
    pub unsafe fn run<V: Vector<T = T>, D: Sink<V>>(
        &self,
        block: *mut T,
        base: usize,
        stride: isize,
        to: D,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        let size = (self.p - 1) * 2 * V::LANES;
        // SAFETY: the spare area holds two lines of p - 1, and the inner transform's own.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Reorder::<V> { from: block, order: &self.order_in, to: a });
            self.inner.run::<V, _, _>(Area(a), a, Area(b), rest, touch);
            V::enter(RaderMiddle::<V> { block, area: b, spectrum: &self.spectrum });
            self.inner.run::<V, _, _>(Area(b), b, Area(a), rest, touch);
            V::enter(RaderEnd::<V, D> { block, area: a, order: &self.order_out, base, stride, to });
        }
    }
}

struct Reorder<'a, V: Vector> {
    from: *const V::T,
    order: &'a [usize],
    to: *mut V::T,
}

impl<V: Vector> Op<V> for Reorder<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (q, &k) in self.order.iter().enumerate() {
            // SAFETY: the order's entries lie within the block.
            unsafe { Pair::<V>::load(self.from, k).store(self.to, q) };
        }
    }
}

/// Multiplies the spectra. Element 0 takes part through the constant term:
/// once as its own result (left in the block), once in all others.
struct RaderMiddle<'a, V: Vector> {
    block: *mut V::T,
    area: *mut V::T,
    spectrum: &'a [V::T],
}

impl<V: Vector> Op<V> for RaderMiddle<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the area is as long as the spectrum, the block one longer.
        unsafe {
            let first = Pair::<V>::load(self.block, 0);
            let sum = Pair::<V>::load(self.area, 0);
            for (q, w) in self.spectrum.chunks_exact(2).enumerate() {
                Pair::<V>::load(self.area, q).times(V::splat(w[0]), V::splat(w[1])).store(self.area, q);
            }
            Pair::load(self.area, 0).add(first).store(self.area, 0);
            first.add(sum).store(self.block, 0);
        }
    }
}

struct RaderEnd<'a, V: Vector, D> {
    block: *const V::T,
    area: *const V::T,
    order: &'a [usize],
    base: usize,
    stride: isize,
    to: D,
}

impl<V: Vector, D: Sink<V>> Op<V> for RaderEnd<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the order's entries lie within the line.
        unsafe {
            self.to.put(self.base, Pair::load(self.block, 0));
            for (q, &k) in self.order.iter().enumerate() {
                self.to
                    .put(self.base.wrapping_add_signed(k as isize * self.stride), Pair::load(self.area, q));
            }
        }
    }
}

/// Bluestein: any length as a convolution with a chirp.
pub(super) struct Bluestein<T> {
    inner: Fft<T>,
    chirp: Vec<T>,
    spectrum: Vec<T>,
}

impl<T: Real> Bluestein<T> {
    pub fn new(n: usize, radices: Radices) -> Self {
        let len = smooth_from(2 * n - 1);
        let roots = Roots::new(2 * n);
        let chirp = |k: usize| roots.get((k as u128 * k as u128 % (2 * n as u128)) as usize);
        let kernel = (0..len).map(|k| match k.min(len - k) {
            k if k < n => chirp(k),
            _ => (0.0, 0.0),
        });
        Bluestein {
            inner: Fft::new(len, radices, false),
            spectrum: spectrum(kernel),
            chirp: (0..n).map(chirp).flat_map(|(cos, sin)| [T::rounded(cos), T::rounded(-sin)]).collect(),
        }
    }

    pub fn spare(&self) -> usize {
        2 * self.inner.n + self.inner.spare()
    }

    /// # Safety
    /// As [`Fft::run`]; `to` has places for the n results, `stride` apart from `base`.
    pub unsafe fn run<V: Vector<T = T>, D: Sink<V>>(
        &self,
        block: *mut T,
        base: usize,
        stride: isize,
        to: D,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        let len = self.inner.n;
        let size = len * 2 * V::LANES;
        // SAFETY: the spare area holds two lines of len, and the inner transform's own.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Times::<V> { from: block, by: &self.chirp, to: a, len });
            self.inner.run::<V, _, _>(Area(a), a, Area(b), rest, touch);
            V::enter(Times::<V> { from: b, by: &self.spectrum, to: b, len });
            self.inner.run::<V, _, _>(Area(b), b, Area(a), rest, touch);
            let lanes = PhantomData::<V>;
            V::enter(BluesteinEnd { area: a, chirp: &self.chirp, len, base, stride, to, lanes });
        }
    }
}

/// Products, and zeros from there to `len`.
struct Times<'a, V: Vector> {
    from: *const V::T,
    by: &'a [V::T],
    to: *mut V::T,
    len: usize,
}

impl<V: Vector> Op<V> for Times<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `from` is as long as `by`, `to` has len elements.
        unsafe {
            for (k, w) in self.by.chunks_exact(2).enumerate() {
                Pair::<V>::load(self.from, k).times(V::splat(w[0]), V::splat(w[1])).store(self.to, k);
            }
            for k in self.by.len() / 2..self.len {
                Pair::<V>::zero().store(self.to, k);
            }
        }
    }
}

struct BluesteinEnd<'a, V: Vector, D> {
    area: *const V::T,
    chirp: &'a [V::T],
    len: usize,
    base: usize,
    stride: isize,
    to: D,
    lanes: PhantomData<V>,
}

impl<V: Vector, D: Sink<V>> Op<V> for BluesteinEnd<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (k, w) in self.chirp.chunks_exact(2).enumerate() {
            // The second transform ran forward too, so its results come in reverse.
            let from = if k == 0 { 0 } else { self.len - k };
            // SAFETY: the area has len elements, `to` the places.
            unsafe {
                let x = Pair::<V>::load(self.area, from).times(V::splat(w[0]), V::splat(w[1]));
                self.to.put(self.base.wrapping_add_signed(k as isize * self.stride), x);
            }
        }
    }
}
