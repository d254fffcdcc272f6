//! Complex elements as twice as many real scalars.

use ferrier::Real;
use num_complex::Complex;

/// Evaluates an expression with the type `$T` of scalars of a precision.
#[macro_export]
macro_rules! in_precision {
    ($precision:expr, $T:ident => $work:expr) => {
        match $precision {
            ferrier::Precision::F32 => {
                type $T = f32;
                $work
            }
            ferrier::Precision::F64 => {
                type $T = f64;
                $work
            }
        }
    };
}

/// Complex elements as real scalars.
pub fn scalars<T: Real>(elements: &[Complex<T>]) -> &[T] {
    // SAFETY: `Complex` is `repr(C)` with two fields `T`, so the same memory holds twice as many `T`.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len() * 2) }
}

/// Complex elements as real scalars.
pub fn scalars_mut<T: Real>(elements: &mut [Complex<T>]) -> &mut [T] {
    // SAFETY: as in `scalars`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len() * 2) }
}

/// A value in the precision of the transform.
pub fn rounded<T: Real>(value: Complex<f64>) -> Complex<T> {
    Complex::new(T::rounded(value.re), T::rounded(value.im))
}

/// A value in double precision.
pub fn widened<T: Real>(value: Complex<T>) -> Complex<f64> {
    Complex::new(value.re.widened(), value.im.widened())
}
