//! The pointwise steps of Rader's and Bluestein's algorithms: both compute a
//! transform as a convolution, by transforms of another length.

use std::marker::PhantomData;

use super::line_io::LineIo;
use super::passes::ResultSlots;
use super::vector::{FACTOR_LEN, Op, Vector};

pub(super) struct Reorder<'a, V: Vector> {
    pub from: *const V::T,
    pub order: &'a [usize],
    pub to: *mut V::T,
}

impl<V: Vector> Op<V> for Reorder<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (q, &k) in self.order.iter().enumerate() {
            // SAFETY: the entries of `order` lie within the block; `to` has as many elements.
            unsafe { V::get(self.from, k).put(self.to, q) };
        }
    }
}

/// Multiplies the spectra. Element 0 enters through the constant term: once in
/// its own result (left in the block), once in all others.
pub(super) struct RaderProduct<'a, V: Vector> {
    pub block: *mut V::T,
    pub area: *mut V::T,
    pub spectrum: &'a [V::T],
}

impl<V: Vector> Op<V> for RaderProduct<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the area has the length of the spectrum, the block one element more.
        unsafe {
            let first = V::get(self.block, 0);
            let sum = V::get(self.area, 0);
            for (q, w) in self.spectrum.chunks_exact(FACTOR_LEN).enumerate() {
                V::get(self.area, q).times_factor(w.as_ptr()).put(self.area, q);
            }
            V::get(self.area, 0).add(first).put(self.area, 0);
            first.add(sum).put(self.block, 0);
        }
    }
}

pub(super) struct RaderStore<'a, V: Vector, D> {
    pub block: *const V::T,
    pub area: *const V::T,
    pub order: &'a [usize],
    pub to: ResultSlots<D>,
}

impl<V: Vector, D: LineIo<V>> Op<V> for RaderStore<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the entries of `order` lie within the line, whose slots `to` has.
        unsafe {
            self.to.put(0, V::get(self.block, 0));
            for (q, &k) in self.order.iter().enumerate() {
                self.to.put(k, V::get(self.area, q));
            }
        }
    }
}

/// Multiplies by factors; fills with zeros up to `len`.
pub(super) struct Multiply<'a, V: Vector> {
    pub from: *const V::T,
    pub by: &'a [V::T],
    pub to: *mut V::T,
    pub len: usize,
}

impl<V: Vector> Op<V> for Multiply<'_, V> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `from` has an element per factor, `to` has `len` elements.
        unsafe {
            for (k, w) in self.by.chunks_exact(FACTOR_LEN).enumerate() {
                V::get(self.from, k).times_factor(w.as_ptr()).put(self.to, k);
            }
            for k in self.by.len() / FACTOR_LEN..self.len {
                V::zero().put(self.to, k);
            }
        }
    }
}

pub(super) struct BluesteinStore<'a, V: Vector, D> {
    pub area: *const V::T,
    pub chirp: &'a [V::T],
    pub len: usize,
    pub to: ResultSlots<D>,
    pub lanes: PhantomData<V>,
}

impl<V: Vector, D: LineIo<V>> Op<V> for BluesteinStore<'_, V, D> {
    type Out = ();
    #[inline(always)]
    unsafe fn run(self) {
        for (k, w) in self.chirp.chunks_exact(FACTOR_LEN).enumerate() {
            // The second transform is forward too, so its results are in reverse order.
            let from = if k == 0 { 0 } else { self.len - k };
            // SAFETY: the area has `len` elements, `to` a slot per factor.
            unsafe {
                let x = V::get(self.area, from).times_factor(w.as_ptr());
                self.to.put(k, x);
            }
        }
    }
}
