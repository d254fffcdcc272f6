//! Transforms of numpy's arrays, with the arguments and results of `scipy.fft`.

mod arguments;
mod arrays;
mod cache;
mod calls;
mod job;

use ferrier::Kind;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use arguments::{Axes, Norm, no_points, workers};
pub use arrays::{Element, data};
use arrays::{Out, Source, empty, extent, kinds_in_order};
use cache::Cached;
use calls::{Axis, calls};
use job::Job;

/// Transforms of fewer scalars keep the interpreter's lock: releasing it takes longer.
const SHORT: usize = 2048;

/// Which values a transform takes and gives.
#[derive(Clone, Copy, Debug)]
enum Family {
    /// Complex to complex.
    C2c,
    /// Real to complex.
    R2c,
    /// Complex to real.
    C2r,
    /// Cosines and sines.
    R2r(Kind),
}

/// The arguments that all transforms have.
struct Request<'a, 'py> {
    x: &'a Bound<'py, PyAny>,
    forward: bool,
    s: &'a Bound<'py, PyAny>,
    axes: &'a Bound<'py, PyAny>,
    norm: &'a Bound<'py, PyAny>,
    overwrite: bool,
    workers: &'a Bound<'py, PyAny>,
    out: &'a Bound<'py, PyAny>,
    orthogonalize: Option<bool>,
}

impl<'py> Request<'_, 'py> {
    fn run(&self, family: Family) -> PyResult<Bound<'py, PyAny>> {
        let (norm, workers) = (Norm::parse(self.norm)?, workers(self.workers)?);
        let Some(source) = Source::take(self.x)? else { return self.long_double(family) };
        let source = match family {
            Family::R2c if source.element.complex => {
                return Err(PyTypeError::new_err("x must be a real sequence"));
            }
            Family::C2c | Family::C2r => source.complex()?,
            _ => source,
        };
        let Axes { mut lengths, axes } = Axes::resolve(source.array.shape(), self.s, self.axes)?;
        let Some(&last) = axes.last() else { return self.no_axes(family) };
        // The points of the transforms; those of the input, of which the last may be halved.
        let mut points = lengths.clone();
        if let Family::C2r = family {
            let end = lengths.len() - 1;
            if self.s.is_none() {
                points[end] = (source.array.shape()[last] - 1) * 2;
                if points[end] == 0 {
                    return Err(no_points("0"));
                }
            }
            lengths[end] = points[end] / 2 + 1;
        }
        let mut source = source.resized(&lengths, &axes)?;
        if let (Family::C2r, true) = (family, self.forward) {
            source = source.conjugate()?;
        }
        let ndim = source.array.ndim();
        let kinds = kinds_in_order(ndim, &axes, |i| match family {
            Family::R2r(kind) => kind,
            Family::R2c | Family::C2r if i + 1 == axes.len() => Kind::Real,
            _ => Kind::Complex,
        });
        let size = axes.iter().zip(&points).map(|(&axis, &n)| kinds[axis].size(n) as f64).product();
        let mut job = Job {
            calls: Vec::new(),
            forward: match family {
                Family::R2c => true,
                Family::C2r => false,
                _ => self.forward,
            },
            to_real: matches!(family, Family::C2r),
            factor: norm.factor(self.forward, size),
            complex: matches!(family, Family::R2r(_)) && source.element.complex,
            ortho: matches!(family, Family::R2r(_)) && self.orthogonalize.unwrap_or(norm == Norm::Ortho),
            workers,
        };
        let (source, order) = source.dense()?;
        let mut lens = source.array.shape().to_vec();
        lens[last] = points[points.len() - 1];
        let in_order: Vec<Axis> =
            order.iter().map(|&axis| Axis { len: lens[axis], kind: kinds[axis] }).collect();
        job.calls = calls(&in_order);
        let mut shape = lens;
        if let Family::R2c = family {
            shape[last] = shape[last] / 2 + 1;
        }
        let element = match family {
            Family::R2c => source.element.complex(),
            Family::C2r => source.element.real(),
            _ => source.element,
        };
        let result = self.execute(&job, source, &order, &shape, element)?;
        match (family, self.forward) {
            (Family::R2c, false) => conjugated(result),
            _ => Ok(result),
        }
    }

    /// Chooses where the result goes, and runs.
    fn execute(
        &self,
        job: &Job,
        source: Source<'py>,
        order: &[usize],
        shape: &[usize],
        element: Element,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.x.py();
        if self.out.is_none() {
            let owned = source.fresh || (self.overwrite && source.is_writeable());
            if owned && source.element == element {
                run_job(job, None, &source.array, element)?;
                return Ok(source.array.into_any());
            }
            let result = empty(py, shape, order, element)?;
            run_job(job, Some(&source), &result, element)?;
            return Ok(result.into_any());
        }
        let out = Out::check(self.out, shape, element)?;
        if !out.is_dense(order) {
            let result = empty(py, shape, order, element)?;
            run_job(job, Some(&source), &result, element)?;
            out.fill(&result)?;
            return Ok(out.array.into_any());
        }
        if data(&out.array) == data(&source.array) && source.element == element {
            run_job(job, None, &out.array, element)?;
            return Ok(out.array.into_any());
        }
        let ((low, high), (start, end)) = (extent(&out.array), extent(&source.array));
        let source = if low < end && start < high { source.copy("K")? } else { source };
        run_job(job, Some(&source), &out.array, element)?;
        Ok(out.array.into_any())
    }

    fn no_axes(&self, family: Family) -> PyResult<Bound<'py, PyAny>> {
        match family {
            Family::C2c | Family::R2r(_) => Ok(self.x.clone()),
            _ => Err(PyValueError::new_err("at least 1 axis must be transformed")),
        }
    }

    /// longdouble is left to scipy.
    fn long_double(&self, family: Family) -> PyResult<Bound<'py, PyAny>> {
        let name = match (family, self.forward) {
            (Family::C2c, true) => "fftn".into(),
            (Family::C2c, false) => "ifftn".into(),
            (Family::R2c, true) => "rfftn".into(),
            (Family::R2c, false) => "ihfftn".into(),
            (Family::C2r, true) => "hfftn".into(),
            (Family::C2r, false) => "irfftn".into(),
            (Family::R2r(kind), true) => format!("{}n", &kind.name()[..3]),
            (Family::R2r(kind), false) => format!("i{}n", &kind.name()[..3]),
        };
        let kind = match family {
            Family::R2r(kind) => kind.name()[3..].parse().unwrap_or(0),
            _ => 0,
        };
        let arguments =
            (name, self.x, kind, self.s, self.axes, self.norm, self.workers, self.orthogonalize, self.out);
        self.x.py().import("ferrier._arrays")?.getattr("long_double")?.call1(arguments)
    }
}

/// The complex conjugate, in place.
fn conjugated(array: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let numpy = array.py().import("numpy")?;
    numpy.call_method1("conjugate", (&array, &array))?;
    Ok(array)
}

/// Runs the calls from `source`, or in place, without the interpreter's lock where they are long.
fn run_job(
    job: &Job,
    source: Option<&Source<'_>>,
    target: &Bound<'_, PyUntypedArray>,
    element: Element,
) -> PyResult<()> {
    let output = (data(target), target.len() * element.width());
    let input = source.map(|source| (data(&source.array), source.array.len() * source.element.width()));
    if output.1 == 0 {
        return Ok(());
    }
    let run = move || match element.double {
        true => run_at::<f64>(job, input, output),
        false => run_at::<f32>(job, input, output),
    };
    let result = if output.1 < SHORT { run() } else { target.py().detach(run) };
    result.map_err(errors::raise)
}

/// Runs on arrays given by address and number of scalars.
fn run_at<T: Cached>(
    job: &Job,
    input: Option<(usize, usize)>,
    output: (usize, usize),
) -> ferrier::Result<()> {
    // SAFETY: the caller holds both arrays, which are dense, aligned and do not overlap. Other threads of Python must
    // not use them meanwhile, as with every function of numpy that releases the interpreter's lock.
    unsafe {
        let input = input.map(|(start, len)| std::slice::from_raw_parts(start as *const T, len));
        job.run(input, std::slice::from_raw_parts_mut(output.0 as *mut T, output.1))
    }
}

/// Complex transforms.
#[pyfunction]
#[pyo3(signature = (x, forward, s, axes, norm, overwrite, workers, out, /))]
#[allow(clippy::too_many_arguments)]
fn c2c<'py>(
    x: &Bound<'py, PyAny>,
    forward: bool,
    s: &Bound<'py, PyAny>,
    axes: &Bound<'py, PyAny>,
    norm: &Bound<'py, PyAny>,
    overwrite: bool,
    workers: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    Request { x, forward, s, axes, norm, overwrite, workers, out, orthogonalize: None }.run(Family::C2c)
}

/// Real to complex transforms; the last of the axes is halved.
#[pyfunction]
#[pyo3(signature = (x, forward, s, axes, norm, workers, out, /))]
fn r2c<'py>(
    x: &Bound<'py, PyAny>,
    forward: bool,
    s: &Bound<'py, PyAny>,
    axes: &Bound<'py, PyAny>,
    norm: &Bound<'py, PyAny>,
    workers: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request { x, forward, s, axes, norm, overwrite: false, workers, out, orthogonalize: None };
    request.run(Family::R2c)
}

/// Complex to real transforms; the last of the axes is halved.
#[pyfunction]
#[pyo3(signature = (x, forward, s, axes, norm, workers, out, /))]
fn c2r<'py>(
    x: &Bound<'py, PyAny>,
    forward: bool,
    s: &Bound<'py, PyAny>,
    axes: &Bound<'py, PyAny>,
    norm: &Bound<'py, PyAny>,
    workers: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = Request { x, forward, s, axes, norm, overwrite: false, workers, out, orthogonalize: None };
    request.run(Family::C2r)
}

/// Cosine (`dct`) and sine (`dst`) transforms of types 1 to 4.
#[pyfunction]
#[pyo3(signature = (name, kind, x, forward, s, axes, norm, overwrite, workers, orthogonalize, out, /))]
#[allow(clippy::too_many_arguments)]
fn r2r<'py>(
    name: &str,
    kind: u32,
    x: &Bound<'py, PyAny>,
    forward: bool,
    s: &Bound<'py, PyAny>,
    axes: &Bound<'py, PyAny>,
    norm: &Bound<'py, PyAny>,
    overwrite: bool,
    workers: &Bound<'py, PyAny>,
    orthogonalize: Option<bool>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = format!("{name}{kind}")
        .parse()
        .map_err(|_| PyValueError::new_err(format!("type must be 1, 2, 3 or 4, got {kind}")))?;
    Request { x, forward, s, axes, norm, overwrite, workers, out, orthogonalize }.run(Family::R2r(kind))
}

/// Forgets the plans that were kept for the next call: how many, and their bytes.
#[pyfunction]
fn clear_plans(py: Python<'_>) -> (usize, usize) {
    py.detach(cache::clear)
}

/// Called in a process that was just forked.
pub fn after_fork() {
    cache::leave_to_parent();
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(c2c, module)?,
        wrap_pyfunction!(r2c, module)?,
        wrap_pyfunction!(c2r, module)?,
        wrap_pyfunction!(r2r, module)?,
        wrap_pyfunction!(arguments::swap_workers, module)?,
        wrap_pyfunction!(arguments::get_workers, module)?,
        wrap_pyfunction!(clear_plans, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
