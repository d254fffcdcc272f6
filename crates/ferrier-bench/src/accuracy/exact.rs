//! The exact spectrum, as far as it is known.

use ferrier::{Array, Comm, Plan, Real};
use num_complex::Complex;

use super::field::Field;
use crate::reference::Reference;
use crate::view::{View, distance, value};

/// The spectrum that results are compared with.
pub enum Exact {
    /// Of noise: the defining sums over the same values, at some frequencies.
    Sums(Reference),
    /// Of noise: a transform of the same values in f64, at all frequencies, and its own error.
    Double(Array<f64>, f64),
    /// Of the smooth function: the field has its spectrum.
    Known,
}

impl Exact {
    /// The relative error of a spectrum. Collective.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn error<T: Real>(
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
                // Every rank has the whole norm but only its part of the distance.
                let (distance, norm) = reference.distance(|index| view.at(0, index));
                Ok((comm.sum(&[distance])?[0] / norm).sqrt())
            }
            (Exact::Double(double, own), _) => {
                let (off, norm) = distance(comm, spectrum, |index| value(double, index))?;
                Ok(off / norm + own)
            }
            (Exact::Known, Field::Smooth(function)) => {
                let (off, norm) = distance(comm, spectrum, |index| Complex::from(function.mode(index)))?;
                Ok(off / norm)
            }
            (Exact::Known, Field::Noise(_)) => Ok(f64::NAN),
        }
    }
}
