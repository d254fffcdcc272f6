//! Lengths that no radix divides, as convolutions on the same lanes: Rader
//! for primes whose predecessor has small factors, Bluestein for the rest.

use std::marker::PhantomData;

use super::factor::{Radices, factors, is_prime, power, primitive_root, smooth_from};
use super::fft::{Desk, Fft, Places};
use super::portable::Portable;
use super::ports::{Even, Port};
use super::touch::Touch;
use super::vector::{FACTOR, Op, Vector, factor};
use crate::real::Real;
use crate::roots::Roots;

/// The spectrum of a convolution's kernel, over its length: in double
/// precision, whatever the precision of the lines.
fn spectrum<T: Real>(kernel: impl Iterator<Item = (f64, f64)>) -> Vec<T> {
    type V = Portable<f64>;
    let kernel: Vec<_> = kernel.collect();
    let n = kernel.len();
    let fft = Fft::<f64>::new(n, V::RADICES, false);
    let mut work = vec![0.0; (2 * n + fft.spare()) * V::LANES];
    for (k, x) in kernel.iter().enumerate() {
        (work[k * V::LANES], work[k * V::LANES + 1]) = *x;
    }
    let a = work.as_mut_ptr();
    // SAFETY: two areas of n elements and the spare one; plain arrays need no instruction set.
    unsafe {
        let b = a.add(n * V::LANES);
        let spare = b.add(n * V::LANES);
        let (one, two, touch) = (Even::areas::<V>(a, 0), Even::areas::<V>(b, 0), &mut Touch::nothing());
        fft.run::<V, _, _>(one, two, &mut Desk { work: one, groups: 1, scrambled: false, spare, touch });
    }
    let elements = work[n * V::LANES..].chunks_exact(V::LANES).take(n);
    elements.flat_map(|x| factor(x[0] / n as f64, x[1] / n as f64)).collect()
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
    /// As [`Fft::run`]; `to` has places for the p results.
    pub unsafe fn run<V: Vector<T = T>, D: Port<V>>(
        &self,
        block: *mut T,
        to: Places<D>,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        let size = (self.p - 1) * V::LANES;
        // SAFETY: the spare area holds two lines of p - 1, and the inner transform's own.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Reorder::<V> { from: block, order: &self.order_in, to: a });
            let (one, two) = (Even::areas::<V>(a, 0), Even::areas::<V>(b, 0));
            let mut desk = Desk { work: one, groups: 1, scrambled: false, spare: rest, touch };
            self.inner.run::<V, _, _>(one, two, &mut desk);
            V::enter(RaderMiddle::<V> { block, area: b, spectrum: &self.spectrum });
            desk.work = two;
            self.inner.run::<V, _, _>(two, one, &mut desk);
            V::enter(RaderEnd::<V, D> { block, area: a, order: &self.order_out, to });
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
            unsafe { V::get(self.from, k).put(self.to, q) };
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
            let first = V::get(self.block, 0);
            let sum = V::get(self.area, 0);
            for (q, w) in self.spectrum.chunks_exact(FACTOR).enumerate() {
                V::get(self.area, q).times_factor(w.as_ptr()).put(self.area, q);
            }
            V::get(self.area, 0).add(first).put(self.area, 0);
            first.add(sum).put(self.block, 0);
        }
    }
}

struct RaderEnd<'a, V: Vector, D> {
    block: *const V::T,
    area: *const V::T,
    order: &'a [usize],
    to: Places<D>,
}

impl<V: Vector, D: Port<V>> Op<V> for RaderEnd<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the order's entries lie within the line.
        unsafe {
            self.to.put(0, V::get(self.block, 0));
            for (q, &k) in self.order.iter().enumerate() {
                self.to.put(k, V::get(self.area, q));
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
            chirp: (0..n).map(chirp).flat_map(|(cos, sin)| factor(cos, -sin)).collect(),
        }
    }

    pub fn spare(&self) -> usize {
        2 * self.inner.n + self.inner.spare()
    }

    /// # Safety
    /// As [`Fft::run`]; `to` has places for the n results.
    pub unsafe fn run<V: Vector<T = T>, D: Port<V>>(
        &self,
        block: *mut T,
        to: Places<D>,
        spare: *mut T,
        touch: &mut Touch<'_, T>,
    ) {
        let len = self.inner.n;
        let size = len * V::LANES;
        // SAFETY: the spare area holds two lines of len, and the inner transform's own.
        unsafe {
            let (a, b, rest) = (spare, spare.add(size), spare.add(2 * size));
            V::enter(Times::<V> { from: block, by: &self.chirp, to: a, len });
            let (one, two) = (Even::areas::<V>(a, 0), Even::areas::<V>(b, 0));
            let mut desk = Desk { work: one, groups: 1, scrambled: false, spare: rest, touch };
            self.inner.run::<V, _, _>(one, two, &mut desk);
            V::enter(Times::<V> { from: b, by: &self.spectrum, to: b, len });
            desk.work = two;
            self.inner.run::<V, _, _>(two, one, &mut desk);
            let lanes = PhantomData::<V>;
            V::enter(BluesteinEnd { area: a, chirp: &self.chirp, len, to, lanes });
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
            for (k, w) in self.by.chunks_exact(FACTOR).enumerate() {
                V::get(self.from, k).times_factor(w.as_ptr()).put(self.to, k);
            }
            for k in self.by.len() / FACTOR..self.len {
                V::zero().put(self.to, k);
            }
        }
    }
}

struct BluesteinEnd<'a, V: Vector, D> {
    area: *const V::T,
    chirp: &'a [V::T],
    len: usize,
    to: Places<D>,
    lanes: PhantomData<V>,
}

impl<V: Vector, D: Port<V>> Op<V> for BluesteinEnd<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (k, w) in self.chirp.chunks_exact(FACTOR).enumerate() {
            // The second transform ran forward too, so its results come in reverse.
            let from = if k == 0 { 0 } else { self.len - k };
            // SAFETY: the area has len elements, `to` the places.
            unsafe {
                let x = V::get(self.area, from).times_factor(w.as_ptr());
                self.to.put(k, x);
            }
        }
    }
}
