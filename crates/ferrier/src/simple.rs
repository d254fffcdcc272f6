//! One-liners for a single process, on `ndarray` views, with numpy's conventions.

use ndarray::{Array3, ArrayView3};
use num_complex::Complex;

use crate::{Comm, Plan, Problem, Real, Result};

fn dense<E: Clone>(view: &ArrayView3<'_, E>) -> Vec<E> {
    view.iter().cloned().collect()
}

fn shape(view: &[usize]) -> [usize; 3] {
    [view[0], view[1], view[2]]
}

fn array<E>(shape: [usize; 3], values: Vec<E>) -> Array3<E> {
    Array3::from_shape_vec(shape, values).expect("the plan's output has the shape of its problem")
}

fn complex<T: Real>(view: ArrayView3<'_, Complex<T>>, forward: bool) -> Result<Array3<Complex<T>>> {
    let shape = shape(view.shape());
    let mut plan = Plan::<T>::new(&Comm::one_rank(), &Problem::c2c(shape))?;
    let mut values = dense(&view);
    match forward {
        true => plan.call().forward_in_place(&mut values)?,
        false => plan.call().backward_in_place(&mut values)?,
    }
    Ok(array(shape, values))
}

/// The complex transform of all three axes, not scaled: `numpy.fft.fftn`.
///
/// ```
/// use ndarray::Array3;
/// let ones = Array3::from_elem((2, 3, 4), ferrier::Complex::new(1.0, 0.0));
/// let modes = ferrier::fft3(ones.view())?;
/// assert_eq!(modes[[0, 0, 0]].re, 24.0);
/// # Ok::<(), ferrier::Error>(())
/// ```
///
/// # Errors
/// An axis of length 0, or memory that cannot be had.
pub fn fft3<T: Real>(view: ArrayView3<'_, Complex<T>>) -> Result<Array3<Complex<T>>> {
    complex(view, true)
}

/// The inverse of [`fft3`], scaled by 1/N: `numpy.fft.ifftn`.
///
/// # Errors
/// As [`fft3`].
pub fn ifft3<T: Real>(view: ArrayView3<'_, Complex<T>>) -> Result<Array3<Complex<T>>> {
    complex(view, false)
}

/// The transform of a real array, the last axis halved: `numpy.fft.rfftn`.
///
/// # Errors
/// As [`fft3`].
pub fn rfft3<T: Real>(view: ArrayView3<'_, T>) -> Result<Array3<Complex<T>>> {
    let problem = Problem::r2c(shape(view.shape()));
    let mut plan = Plan::<T>::new(&Comm::one_rank(), &problem)?;
    let out = problem.spectrum_shape();
    let mut spectrum = vec![Complex::new(T::zero(), T::zero()); out.iter().product()];
    plan.forward(&dense(&view), &mut spectrum)?;
    Ok(array(out, spectrum))
}

/// The inverse of [`rfft3`], scaled by 1/N, with `last` points on the last
/// axis: `numpy.fft.irfftn`.
///
/// # Errors
/// As [`fft3`], and [`Error::Problem`](crate::Error::Problem) where the last
/// axis does not have `last / 2 + 1` elements.
pub fn irfft3<T: Real>(view: ArrayView3<'_, Complex<T>>, last: usize) -> Result<Array3<T>> {
    let [x, y, halved] = shape(view.shape());
    if last / 2 + 1 != halved {
        return Err(crate::Error::problem(
            "shape",
            format!("{last} real points have {} complex ones, but the last axis has {halved}", last / 2 + 1),
        ));
    }
    let mut plan = Plan::<T>::new(&Comm::one_rank(), &Problem::r2c([x, y, last]))?;
    let mut values = vec![T::zero(); x * y * last];
    plan.backward(&dense(&view), &mut values)?;
    Ok(array([x, y, last], values))
}
