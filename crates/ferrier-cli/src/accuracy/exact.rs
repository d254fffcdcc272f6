//! The data of `ferrier accuracy`, and what their spectrum must be.

use ferrier::{Array, Comm, Plan, Real};
use num_complex::Complex;

use super::{DataName, Work, complex};
use crate::noise::Noise;
use crate::parts::Number;
use crate::pulse::Pulse;
use crate::reference::{Reference, Wanted};
use crate::view::{View, distance, value};

/// What is transformed.
pub enum Field {
    Noise(Noise),
    Smooth(Box<Pulse>),
}

impl Field {
    pub fn new(name: DataName, shape: [usize; 3]) -> Self {
        match name {
            DataName::Noise => Field::Noise(Noise::new(shape, 1)),
            DataName::Smooth => Field::Smooth(Box::new(Pulse::new(shape))),
        }
    }

    /// The value at a global index.
    pub fn at(&self, index: [usize; 3]) -> Complex<f64> {
        match self {
            Field::Noise(noise) => noise.at(0, index),
            Field::Smooth(pulse) => complex(pulse.value(index)),
        }
    }
}

/// What a spectrum is compared with.
pub enum Exact {
    /// Of noise: the defining sums over these very numbers, at some frequencies.
    Sums(Reference),
    /// Of noise: a transform in f64 of the same numbers, at all frequencies,
    /// and its own error.
    Double(Array<f64>, f64),
    /// Of the pulse: the field knows it.
    Known,
}

impl Exact {
    /// For the transform in f64 of `input`. Collective.
    pub fn new<T: Real + Number + Into<f64>>(
        comm: &Comm,
        work: &Work<'_>,
        input: &Array<T>,
    ) -> ferrier::Result<Self> {
        let Field::Noise(_) = work.field else { return Ok(Exact::Known) };
        let (shape, spectrum) = (work.problem.shape(), work.problem.spectrum_shape());
        let wanted = Wanted::fourier(shape, spectrum, &work.axes);
        Ok(Exact::Sums(Reference::new(comm, &wanted, &View::of_input(input, 1))?))
    }

    /// The distance of a spectrum from this one, over its norm. Collective.
    pub fn error<T: Real + Number>(
        &self,
        comm: &Comm,
        field: &Field,
        plan: &Plan<T>,
        spectrum: &Array<T>,
    ) -> ferrier::Result<f64> {
        match (self, field) {
            (Exact::Sums(reference), _) => {
                let order = plan.output_layout().order();
                let view = View::of_spectrum(spectrum, plan.output_box(), order, 1);
                // Every rank has the whole norm but only its own part of the distance.
                let (distance, norm) = reference.distance(|index| view.at(0, index));
                Ok((comm.sum(&[distance])?[0] / norm).sqrt())
            }
            (Exact::Double(double, own), _) => {
                let (off, norm) = distance(comm, spectrum, |index| value(double, index))?;
                Ok(off / norm + own)
            }
            (Exact::Known, Field::Smooth(pulse)) => {
                let (off, norm) = distance(comm, spectrum, |index| complex(pulse.mode(index)))?;
                Ok(off / norm)
            }
            (Exact::Known, Field::Noise(_)) => Ok(f64::NAN),
        }
    }
}
