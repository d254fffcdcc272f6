//! Element types that can be added on a GPU.

use std::ops::AddAssign;

use crate::{Complex, Element};

mod sealed {
    pub trait Sealed {
        /// The type of its scalars in CUDA C++, and their bytes.
        const SCALAR: (&'static str, usize);
    }
}

pub(crate) use sealed::Sealed;

/// Elements that [`GhostSum`](crate::GhostSum) adds on a GPU: `f32`, `f64`, integers of 32 and 64 bits, and complex numbers of
/// these.
pub trait DeviceSum: Element + AddAssign + Sealed {}

macro_rules! sums {
    ($($name:ty: $text:expr),* $(,)?) => {
        $(
            impl Sealed for $name {
                const SCALAR: (&'static str, usize) = ($text, size_of::<$name>());
            }
            impl DeviceSum for $name {}
        )*
    };
}

// Integers wrap: that is defined for unsigned ones alone.
sums!(f32: "float", f64: "double", i32: "Word32", u32: "Word32", i64: "Word", u64: "Word");

impl<S: Sealed> Sealed for Complex<S> {
    const SCALAR: (&'static str, usize) = S::SCALAR;
}

impl<S: DeviceSum> DeviceSum for Complex<S> where Complex<S>: AddAssign {}
