//! What plans read and write: slices, vectors, and arrays made by plans.

use num_complex::Complex;

use super::backend::Backend;
use crate::Real;

/// Arrays in main memory that a plan can read: `[T]`, `[Complex<T>]`, vectors of them, [`Array`](crate::Array).
pub trait Data<T: Real> {
    /// All scalars; a complex element is two.
    fn scalars(&self) -> &[T];
    /// Whether the elements are real; `None` where they may be either.
    fn is_real(&self) -> Option<bool>;
}

/// Arrays in main memory that a plan can write.
pub trait DataMut<T: Real>: Data<T> {
    /// All scalars; a complex element is two.
    fn scalars_mut(&mut self) -> &mut [T];
}

/// Where an array lies in the memory of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The address of the first scalar.
    pub start: usize,
    /// How many scalars; a complex element is two.
    pub scalars: usize,
    /// Whether the elements are real; `None` where they may be either.
    pub is_real: Option<bool>,
}

/// Arrays that plans of backend `B` can read: [`Data`] in main memory, `cuda::DeviceData` on a GPU.
pub trait Input<T: Real, B: Backend> {
    /// Runs `work` with the place of the array; the array is not written to meanwhile.
    #[doc(hidden)]
    fn with_span<R>(&self, access: &B::Access, work: impl FnOnce(Span) -> R) -> R;
}

/// Arrays that plans of backend `B` can write: [`DataMut`] in main memory, `cuda::DeviceDataMut` on a GPU.
pub trait Output<T: Real, B: Backend> {
    /// Runs `work` with the place of the array; only `work` accesses the array meanwhile.
    #[doc(hidden)]
    fn with_span_mut<R>(&mut self, access: &B::Access, work: impl FnOnce(Span) -> R) -> R;
}

impl<T: Real> Data<T> for [T] {
    fn scalars(&self) -> &[T] {
        self
    }
    fn is_real(&self) -> Option<bool> {
        Some(true)
    }
}

impl<T: Real> DataMut<T> for [T] {
    fn scalars_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Real> Data<T> for [Complex<T>] {
    fn scalars(&self) -> &[T] {
        // SAFETY: Complex<T> is two T, with T's alignment.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), self.len() * 2) }
    }
    fn is_real(&self) -> Option<bool> {
        Some(false)
    }
}

impl<T: Real> DataMut<T> for [Complex<T>] {
    fn scalars_mut(&mut self) -> &mut [T] {
        // SAFETY: Complex<T> is two T, with T's alignment, and any T are a Complex<T>.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), self.len() * 2) }
    }
}

impl<T: Real, E> Data<T> for Vec<E>
where
    [E]: Data<T>,
{
    fn scalars(&self) -> &[T] {
        self.as_slice().scalars()
    }
    fn is_real(&self) -> Option<bool> {
        self.as_slice().is_real()
    }
}

impl<T: Real, E> DataMut<T> for Vec<E>
where
    [E]: DataMut<T>,
{
    fn scalars_mut(&mut self) -> &mut [T] {
        self.as_mut_slice().scalars_mut()
    }
}
