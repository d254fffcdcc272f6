//! What plans read and write: slices, vectors, and arrays made by plans.

use num_complex::Complex;

use super::backend::Backend;
use super::field_table::{FieldSpans, FieldTable};
use crate::Real;

/// Keeps types outside this crate from listing fields: the addresses must stay valid when the visit has ended.
pub(crate) mod sealed {
    /// Other crates cannot name it.
    #[derive(Clone, Copy, Debug)]
    pub struct Token;
}

/// Arrays in main memory that a plan can read: `[T]`, `[Complex<T>]`, vectors of them, [`Array`](crate::Array).
pub trait Data<T: Real> {
    /// All scalars; a complex element is two.
    fn scalars(&self) -> &[T];
    /// Whether the elements are real; `None` where they may be either.
    fn is_real(&self) -> Option<bool>;
    /// Visits the scalars of each array of a batch where each has memory of its own, as [`Fields`] do.
    #[doc(hidden)]
    fn each_field(&self, _: sealed::Token, _visit: &mut dyn FnMut(&[T])) {}
}

/// Arrays in main memory that a plan can write.
pub trait DataMut<T: Real>: Data<T> {
    /// All scalars; a complex element is two.
    fn scalars_mut(&mut self) -> &mut [T];
    /// Visits the scalars of each array of a batch where each has memory of its own, as [`FieldsMut`] do.
    #[doc(hidden)]
    fn each_field_mut(&mut self, _: sealed::Token, _visit: &mut dyn FnMut(&mut [T])) {}
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
    /// The arrays of a batch, if each has memory of its own.
    pub fields: Option<FieldSpans>,
}

/// Arrays that plans of backend `B` can read: [`Data`] in main memory, `cuda::DeviceData` on a GPU.
pub trait Input<T: Real, B: Backend> {
    /// Runs `work` with the place of the array, and those of `fields` if it is a list of arrays; the array is not written to meanwhile.
    #[doc(hidden)]
    fn with_span<R>(
        &self,
        access: &B::Access,
        fields: &mut FieldTable,
        work: impl FnOnce(Span, &FieldTable) -> R,
    ) -> R;
}

/// Arrays that plans of backend `B` can write: [`DataMut`] in main memory, `cuda::DeviceDataMut` on a GPU.
pub trait Output<T: Real, B: Backend> {
    /// Runs `work` with the place of the array, and those of `fields` if it is a list of arrays; only `work` accesses the array meanwhile.
    #[doc(hidden)]
    fn with_span_mut<R>(
        &mut self,
        access: &B::Access,
        fields: &mut FieldTable,
        work: impl FnOnce(Span, &FieldTable) -> R,
    ) -> R;
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

/// Scalars that are real or complex elements, as the plan needs them: for callers that do not know it, such as other
/// languages.
///
/// ```
/// use ferrier::{Plan, Problem, Scalars};
/// ferrier::ranks(1).run(|comm| {
///     let mut plan = Plan::<f64>::new(&comm, &Problem::r2c([2, 2, 2]))?;
///     let (real, mut complex) = (vec![1.0; 8], vec![0.0; 2 * 8]);
///     plan.forward(&Scalars(&real), &mut Scalars(&mut complex))?;
///     assert_eq!(complex[..2], [8.0, 0.0]);
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scalars<S>(
    /// The memory; a complex element is two scalars.
    pub S,
);

impl<T: Real, S: AsRef<[T]>> Data<T> for Scalars<S> {
    fn scalars(&self) -> &[T] {
        self.0.as_ref()
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Real, S: AsRef<[T]> + AsMut<[T]>> DataMut<T> for Scalars<S> {
    fn scalars_mut(&mut self) -> &mut [T] {
        self.0.as_mut()
    }
}

/// A batch of arrays that were allocated one by one, to read from: a plan of [`batch`](crate::Problem::batch) `n` takes `n`
/// of them in one call, with the messages of a batch.
///
/// ```
/// use ferrier::{Complex, Fields, FieldsMut, Plan, Problem};
/// ferrier::ranks(2).run(|comm| {
///     let mut plan = Plan::<f64>::new(&comm, &Problem::r2c([4, 4, 4]).batch(3))?;
///     let [u, v, w] = [1.0, 2.0, 3.0].map(|value| vec![value; 2 * 4 * 4]);
///     let [mut a, mut b, mut c] = [(); 3].map(|()| vec![Complex::default(); 2 * 4 * 3]);
///     plan.forward(&Fields(&[&u, &v, &w]), &mut FieldsMut(&mut [&mut a, &mut b, &mut c]))?;
///     if comm.rank() == 0 {
///         assert_eq!([a[0].re, b[0].re, c[0].re], [64.0, 128.0, 192.0]);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Debug)]
pub struct Fields<'a, D: ?Sized>(
    /// The arrays.
    pub &'a [&'a D],
);

impl<D: ?Sized> Clone for Fields<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: ?Sized> Copy for Fields<'_, D> {}

/// A batch of arrays that were allocated one by one, to write to; see [`Fields`].
#[derive(Debug)]
pub struct FieldsMut<'a, 'b, D: ?Sized>(
    /// The arrays.
    pub &'a mut [&'b mut D],
);

/// Of several arrays: what all of them are.
fn common_kind(kinds: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    kinds.flatten().next()
}

impl<T: Real, D: Data<T> + ?Sized> Data<T> for Fields<'_, D> {
    fn scalars(&self) -> &[T] {
        self.0.first().map_or(&[], |field| field.scalars())
    }
    fn is_real(&self) -> Option<bool> {
        common_kind(self.0.iter().map(|field| field.is_real()))
    }
    fn each_field(&self, _: sealed::Token, visit: &mut dyn FnMut(&[T])) {
        self.0.iter().for_each(|field| visit(field.scalars()));
    }
}

impl<T: Real, D: Data<T> + ?Sized> Data<T> for FieldsMut<'_, '_, D> {
    fn scalars(&self) -> &[T] {
        self.0.first().map_or(&[], |field| field.scalars())
    }
    fn is_real(&self) -> Option<bool> {
        common_kind(self.0.iter().map(|field| field.is_real()))
    }
    fn each_field(&self, _: sealed::Token, visit: &mut dyn FnMut(&[T])) {
        self.0.iter().for_each(|field| visit(field.scalars()));
    }
}

impl<T: Real, D: DataMut<T> + ?Sized> DataMut<T> for FieldsMut<'_, '_, D> {
    fn scalars_mut(&mut self) -> &mut [T] {
        self.0.first_mut().map_or(&mut [], |field| field.scalars_mut())
    }
    fn each_field_mut(&mut self, _: sealed::Token, visit: &mut dyn FnMut(&mut [T])) {
        self.0.iter_mut().for_each(|field| visit(field.scalars_mut()));
    }
}
