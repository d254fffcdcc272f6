//! The two precisions.

use std::fmt::{Debug, Display};

use serde::{Deserialize, Serialize};

use crate::entry::KernelEntry;
use crate::lines::Lines;
use crate::spec::LinesSpec;

/// The precision of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

impl Precision {
    /// Bytes of a scalar.
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }
    }

    /// The distance from 1 to the next larger float.
    pub fn epsilon(self) -> f64 {
        match self {
            Precision::F32 => f32::EPSILON as f64,
            Precision::F64 => f64::EPSILON,
        }
    }

    /// `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F64 => "f64",
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`: the type of scalars.
pub trait Real:
    sealed::Sealed
    + rustfft::FftNum
    + num_complex::ComplexFloat<Real = Self>
    + Default
    + Display
    + Debug
    + PartialOrd
    + std::ops::MulAssign
{
    /// The precision of this type.
    const PRECISION: Precision;
    /// Rounds from `f64`.
    fn rounded(value: f64) -> Self;
    /// Widens to `f64`.
    fn widened(self) -> f64;
    /// The constructor of `entry` for this precision.
    #[doc(hidden)]
    fn lines(entry: &KernelEntry, spec: &LinesSpec) -> Box<dyn Lines<Self>>;
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;
    fn rounded(value: f64) -> Self {
        value as f32
    }
    fn widened(self) -> f64 {
        self as f64
    }
    fn lines(entry: &KernelEntry, spec: &LinesSpec) -> Box<dyn Lines<Self>> {
        (entry.f32)(spec)
    }
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;
    fn rounded(value: f64) -> Self {
        value
    }
    fn widened(self) -> f64 {
        self
    }
    fn lines(entry: &KernelEntry, spec: &LinesSpec) -> Box<dyn Lines<Self>> {
        (entry.f64)(spec)
    }
}
