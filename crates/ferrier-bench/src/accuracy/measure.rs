//! The data, the exact spectrum as far as it is known, and the measurements.

use ferrier::codec::RAW;
use ferrier::{Array, Choice, Comm, DeviceSpec, Problem, Real};
use num_complex::Complex;

use super::field::Field;
use super::report::AccuracyRow;
use crate::agree::agree_result;
use crate::failure::{Outcome, fail};
use crate::hosted_plan::HostedPlan;
use crate::reference::{Reference, ReferenceProblem};
use crate::timing::median;
use crate::view::{View, distance, value};

/// The spectrum that results are compared with.
enum Exact {
    /// Of noise: the defining sums over the same values, at some frequencies.
    Sums(Reference),
    /// Of noise: a transform of the same values in f64, at all frequencies, and its own error.
    Double(Array<f64>, f64),
    /// Of the smooth function: the field has its spectrum.
    Known,
}

impl Exact {
    /// The relative error of a spectrum. Collective.
    fn error<T: Real>(
        &self,
        comm: &Comm,
        field: &Field,
        plan: &HostedPlan<T>,
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

/// Options for one number of ranks.
pub struct AccuracyOptions {
    /// The transform.
    pub problem: Problem,
    /// Its axes.
    pub axes: Vec<usize>,
    /// The choice, except the codec.
    pub choice: Choice,
    /// The codecs.
    pub codecs: Vec<String>,
    /// The data.
    pub field: Field,
    /// Where arrays lie and are transformed.
    pub device: DeviceSpec,
}

impl AccuracyOptions {
    /// A row for each precision and codec. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn run(&self, comm: &Comm) -> Outcome<Vec<AccuracyRow>> {
        let mut double = AccuracyRun::<f64>::new(comm, self, RAW, |x| x)?;
        let exact = match self.field {
            Field::Smooth(_) => Exact::Known,
            Field::Noise(_) => {
                let (shape, spectrum) = (self.problem.shape(), self.problem.spectrum_shape());
                let problem = ReferenceProblem::fourier(shape, spectrum, &self.axes);
                Exact::Sums(Reference::new(comm, &problem, &View::of_input(&double.input, 1))?)
            }
        };
        let mut rows = vec![double.row(comm, self, &exact)?];
        let own = rows[0].error_forward;
        // Data rounded to f32 are other values; their spectrum in f64 is a reference as well.
        let mut single = AccuracyRun::<f32>::new(comm, self, RAW, |x| x)?;
        let of_single = match &exact {
            Exact::Known => Exact::Known,
            _ => Exact::Double(
                AccuracyRun::<f64>::new(comm, self, RAW, |x| f64::from(x as f32))?.spectrum(comm)?,
                own,
            ),
        };
        rows.push(single.row(comm, self, &of_single)?);
        drop((single, of_single));
        let exact = match exact {
            Exact::Known => Exact::Known,
            _ => Exact::Double(double.spectrum, own),
        };
        // One rank sends nothing.
        for name in self.codecs.iter().filter(|_| comm.size() > 1) {
            rows.push(AccuracyRun::<f64>::new(comm, self, name, |x| x)?.row(comm, self, &exact)?);
        }
        Ok(rows)
    }
}

/// Timed repetitions of each transform.
const REPEAT: usize = 3;

/// A plan with its arrays.
struct AccuracyRun<T: Real> {
    codec: String,
    plan: HostedPlan<T>,
    input: Array<T>,
    spectrum: Array<T>,
    back: Array<T>,
}

impl<T: Real> AccuracyRun<T> {
    /// With the data of `options`, `change` applied to each scalar. Collective.
    fn new(
        comm: &Comm,
        options: &AccuracyOptions,
        codec: &str,
        change: impl Fn(f64) -> f64,
    ) -> Outcome<Self> {
        let choice = options.choice.clone().codec(codec);
        // Up to three runs of three arrays exist at once.
        let plan = HostedPlan::<T>::new(comm, &options.problem, choice, options.device, 9)?;
        let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?, plan.make_input()?)));
        let (mut input, spectrum, back) = agree_result(comm, arrays)?;
        let at = |index| {
            let Complex { re, im } = options.field.at(index);
            Complex::new(T::rounded(change(re)), T::rounded(change(im)))
        };
        match input.is_real() {
            true => input.fill_real(|_, index| at(index).re),
            false => input.fill_complex(|_, index| at(index)),
        }
        Ok(AccuracyRun { codec: codec.into(), plan, input, spectrum, back })
    }

    /// The spectrum alone. Collective.
    fn spectrum(mut self, comm: &Comm) -> Outcome<Array<T>> {
        self.plan.forward(&self.input, &mut self.spectrum)?;
        comm.barrier()?;
        Ok(self.spectrum)
    }

    /// Transforms forward and backward, and measures the errors. Collective.
    fn row(&mut self, comm: &Comm, options: &AccuracyOptions, exact: &Exact) -> Outcome<AccuracyRow> {
        let AccuracyRun { codec, plan, input, spectrum, back } = self;
        plan.forward(&*input, spectrum)?;
        let (sent, error_bound) = sent(comm, plan)?;
        let error_forward = exact.error(comm, &options.field, plan, spectrum)?;
        plan.backward(&*spectrum, back)?;
        let (off, norm) = distance(comm, back, |index| value(input, index))?;
        let seconds = (0..REPEAT).map(|_| plan.timed_forward(comm, input, spectrum));
        let seconds = seconds.collect::<ferrier::Result<Vec<f64>>>()?;
        let scalars = plan.recipe().wire_bytes() as f64 / size_of::<T>() as f64;
        Ok(AccuracyRow {
            arithmetic: plan.recipe().precision.name(),
            codec: codec.clone(),
            exchange: plan.recipe().exchange.clone(),
            ranks: comm.size(),
            error_l2: off / norm,
            error_forward,
            error_bound,
            wire_bytes: sent,
            bits: (scalars > 0.0).then(|| sent as f64 * 8.0 / scalars),
            median_ms: median(&seconds) * 1e3,
        })
    }
}

/// Bytes that all ranks sent in the last transform, and the bound of its error. Collective.
fn sent<T: Real>(comm: &Comm, plan: &HostedPlan<T>) -> Outcome<(u64, f64)> {
    let Some(certificate) = plan.certificate() else { return fail("the transform has no certificate") };
    Ok((comm.sum(&[plan.wire_bytes() as f64])?[0] as u64, certificate.bound()))
}
