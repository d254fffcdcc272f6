//! The data of the benchmark.

use num_complex::Complex;

use crate::noise::Noise;
use crate::test_function::TestFunction;

/// The kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Uniform random values.
    Noise,
    /// A smooth periodic function with a known spectrum.
    Smooth,
}

impl Data {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Data::Noise => "noise",
            Data::Smooth => "smooth",
        }
    }

    /// The reference that errors of the spectrum are measured against.
    pub fn reference(self) -> &'static str {
        match self {
            Data::Noise => {
                "all f64: the defining sums in twice the precision, at up to 256 frequencies; others: all f64, at all frequencies"
            }
            Data::Smooth => "the known spectrum of the function, at all frequencies",
        }
    }
}

/// Data on a grid.
pub enum Field {
    /// Uniform random values.
    Noise(Noise),
    /// A smooth periodic function.
    Smooth(Box<TestFunction>),
}

impl Field {
    /// Data on a grid of this shape.
    pub fn new(data: Data, shape: [usize; 3]) -> Self {
        match data {
            Data::Noise => Field::Noise(Noise::new(shape, 1)),
            Data::Smooth => Field::Smooth(Box::new(TestFunction::new(shape))),
        }
    }

    /// The value at a global index.
    pub fn at(&self, index: [usize; 3]) -> Complex<f64> {
        match self {
            Field::Noise(noise) => noise.at(0, index),
            Field::Smooth(function) => Complex::from(function.value(index)),
        }
    }
}
