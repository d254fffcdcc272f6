//! Transforms of numpy's arrays, with the arguments and results of `scipy.fft`.

mod arguments;
mod arrays;
mod cache;
mod calls;
mod job;

use ferrier::Kind;
use numpy::npyffi::PY_ARRAY_API;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use arguments::{Axes, Norm, no_points, workers};
pub use arrays::{Element, Places, data};
use arrays::{Out, Source, empty, extent, helper, kinds_in_order};
#[cfg(feature = "cuda")]
pub use cache::{Cache, Caches, Key, PerProcess};
pub use cache::{after_fork, clear};
use calls::Call;
pub use calls::{Axis, calls};
pub use job::{Job, Span};

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

/// A transform, and the array that it makes.
struct Transform {
    /// Points of each axis, as its transform counts them.
    lens: Vec<usize>,
    kinds: Vec<Kind>,
    shape: Vec<usize>,
    element: Element,
    /// Does a complex transform read real values?
    real_input: bool,
}

/// The array that a result is computed in.
#[derive(Clone, Copy)]
enum Goal {
    Source,
    Out,
    New,
}

/// How a transform is done.
struct Chosen {
    goal: Goal,
    from: Places,
    to: Places,
    calls: Vec<Call>,
}

impl Transform {
    /// The first way that plans can take: in place, into the caller's array at `wanted`, into a new one; then with a copy of
    /// the source.
    fn choose<'py>(
        &self,
        mut source: Source<'py>,
        wanted: Option<&Places>,
        in_place: impl Fn(&Source<'py>) -> bool,
        to_real: bool,
    ) -> PyResult<(Source<'py>, Chosen)> {
        for _ in 0..2 {
            if let Some(from) = source.places() {
                let own = in_place(&source).then(|| from.clone());
                let new = || Some(Places::dense(&self.shape, from.order.clone()));
                for goal in [Goal::Source, Goal::Out, Goal::New] {
                    let to = match goal {
                        Goal::Source => own.clone(),
                        Goal::Out => wanted.cloned(),
                        Goal::New => new(),
                    };
                    if let Some(to) = to
                        && let Some(calls) = self.calls(&from, &to, to_real)
                    {
                        return Ok((source, Chosen { goal, from, to, calls }));
                    }
                }
            }
            source = source.copy("C")?;
        }
        Err(PyValueError::new_err(format!(
            "no calls of plans for a dense array of the shape {:?}",
            self.shape
        )))
    }

    fn calls(&self, from: &Places, to: &Places, to_real: bool) -> Option<Vec<Call>> {
        let axis = |&axis: &usize| {
            let strides = [from.strides[axis], to.strides[axis]];
            Axis { len: self.lens[axis], kind: self.kinds[axis], strides }
        };
        let mut calls = calls(&from.order.iter().map(axis).collect::<Vec<_>>(), to_real)?;
        if let Some(first) = calls.first_mut() {
            first.real_input = self.real_input;
        }
        Some(calls)
    }
}

impl<'py> Request<'_, 'py> {
    fn run(&self, family: Family) -> PyResult<Bound<'py, PyAny>> {
        let (norm, workers) = (Norm::parse(self.norm)?, workers(self.workers)?);
        if self.x.cast::<PyUntypedArray>().is_err()
            && let Some(result) = self.on_gpu(family)?
        {
            return Ok(result);
        }
        let Some(source) = Source::take(self.x)? else { return self.long_double(family) };
        let source = match family {
            Family::R2c if source.element.complex => {
                return Err(PyTypeError::new_err("x must be a real sequence"));
            }
            Family::C2r => source.complex()?,
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
        let source = source.resized(&lengths, &axes)?;
        let ndim = source.array.ndim();
        let kinds = kinds_in_order(ndim, &axes, |i| match family {
            Family::R2r(kind) => kind,
            Family::R2c | Family::C2r if i + 1 == axes.len() => Kind::Real,
            _ => Kind::Complex,
        });
        let size = axes.iter().zip(&points).map(|(&axis, &n)| kinds[axis].size(n) as f64).product();
        let job = Job {
            calls: Vec::new(),
            forward: self.forward,
            to_real: matches!(family, Family::C2r),
            factor: norm.factor(self.forward, size),
            complex: matches!(family, Family::R2r(_)) && source.element.complex,
            ortho: matches!(family, Family::R2r(_)) && self.orthogonalize.unwrap_or(norm == Norm::Ortho),
            workers,
        };
        let mut lens = source.array.shape().to_vec();
        lens[last] = points[points.len() - 1];
        let mut shape = lens.clone();
        let real_input = matches!(family, Family::C2c) && !source.element.complex;
        if let Family::R2c = family {
            shape[last] = shape[last] / 2 + 1;
        }
        let element = match family {
            Family::R2c | Family::C2c => source.element.complex(),
            Family::C2r => source.element.real(),
            Family::R2r(_) => source.element,
        };
        self.execute(job, source, &Transform { lens, kinds, shape, element, real_input })
    }

    /// Chooses where the result is computed, and runs. Arrays are copied only where plans cannot take them as they are.
    fn execute(
        &self,
        mut job: Job,
        source: Source<'py>,
        transform: &Transform,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.x.py();
        let &Transform { ref shape, element, .. } = transform;
        let out = if self.out.is_none() { None } else { Some(Out::check(self.out, shape, element)?) };
        if shape.contains(&0) {
            let made = || empty(py, shape, &(0..shape.len()).collect::<Vec<_>>(), element);
            return Ok(out.map_or_else(made, |out| Ok(out.array))?.into_any());
        }
        let wanted = out.as_ref().and_then(Out::places);
        let in_place = |source: &Source<'py>| {
            source.element == element
                && match &out {
                    None => source.fresh || (self.overwrite && source.is_writeable()),
                    Some(out) => data(&out.array) == data(&source.array) && wanted == source.places(),
                }
        };
        let overlaps = |out: &Out<'py>| {
            let ((low, high), (start, end)) = (extent(&out.array), extent(&source.array));
            low < end && start < high
        };
        let source = match out.as_ref().is_some_and(overlaps) && !in_place(&source) {
            true => source.copy("K")?,
            false => source,
        };
        let (source, chosen) = transform.choose(source, wanted.as_ref(), in_place, job.to_real)?;
        let Chosen { goal, from, to, calls } = chosen;
        job.calls = calls;
        let result = match (goal, &out) {
            (Goal::Source, None) => source.array.clone(),
            (Goal::Source | Goal::Out, Some(out)) => out.array.clone(),
            _ => empty(py, shape, &to.order, element)?,
        };
        match goal {
            Goal::Source => run_job(&job, None, (&result, &to), element)?,
            _ if job.calls.is_empty() => copy_into(&result, &source.array)?,
            _ => run_job(&job, Some((&source, &from)), (&result, &to), element)?,
        }
        match (goal, out) {
            (Goal::New, Some(out)) => {
                copy_into(&out.array, &result)?;
                Ok(out.array.into_any())
            }
            _ => Ok(result.into_any()),
        }
    }

    fn no_axes(&self, family: Family) -> PyResult<Bound<'py, PyAny>> {
        match family {
            Family::C2c | Family::R2r(_) => Ok(self.x.clone()),
            _ => Err(PyValueError::new_err("at least 1 axis must be transformed")),
        }
    }

    /// The transform of an array in the memory of a GPU; `None` where it is not in one.
    fn on_gpu(&self, family: Family) -> PyResult<Option<Bound<'py, PyAny>>> {
        let kinds = match family {
            Family::C2c => "c2c",
            Family::R2c => "r2c",
            Family::C2r => "c2r",
            Family::R2r(kind) => kind.name(),
        };
        let arguments = (kinds, self.x, self.forward, self.s, self.axes, self.norm, self.overwrite, self.out);
        let result = helper(self.x.py(), "on_gpu")?.call1(arguments)?;
        Ok(if result.is_none() { None } else { Some(result) })
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

/// Copies the elements of an array, converted where they must be.
fn copy_into(target: &Bound<'_, PyUntypedArray>, source: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    // SAFETY: both are live array objects of one shape; -1 is an error that is set.
    let code =
        unsafe { PY_ARRAY_API.PyArray_CopyInto(target.py(), target.as_array_ptr(), source.as_array_ptr()) };
    if code < 0 { Err(PyErr::fetch(target.py())) } else { Ok(()) }
}

/// Runs the calls from `source`, or in place, without the interpreter's lock where they are long.
fn run_job(
    job: &Job,
    source: Option<(&Source<'_>, &Places)>,
    (target, to): (&Bound<'_, PyUntypedArray>, &Places),
    element: Element,
) -> PyResult<()> {
    let output = Span { start: data(target), scalars: to.extent * element.width() };
    let input = source.map(|(source, from)| Span {
        start: data(&source.array),
        scalars: from.extent * source.element.width(),
    });
    // SAFETY: the caller holds both arrays, which are aligned and do not overlap; `Places` has measured them. Other threads of
    // Python must not use them meanwhile, as with every function of numpy that releases the interpreter's lock.
    let run = move || unsafe {
        match element.double {
            true => job.run::<f64>(input, output),
            false => job.run::<f32>(input, output),
        }
    };
    let result = if output.scalars < SHORT { run() } else { target.py().detach(run) };
    result.map_err(errors::raise)
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(c2c, module)?,
        wrap_pyfunction!(r2c, module)?,
        wrap_pyfunction!(c2r, module)?,
        wrap_pyfunction!(r2r, module)?,
        wrap_pyfunction!(arguments::swap_workers, module)?,
        wrap_pyfunction!(arguments::get_workers, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
