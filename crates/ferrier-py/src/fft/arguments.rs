//! Arguments as numpy and scipy take them.

use std::cell::Cell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The argument `norm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    Backward,
    Ortho,
    Forward,
}

impl Norm {
    pub fn parse(norm: &Bound<'_, PyAny>) -> PyResult<Norm> {
        if norm.is_none() {
            return Ok(Norm::Backward);
        }
        match norm.cast::<PyString>().ok().map(|text| text.to_cow()).transpose()?.as_deref() {
            Some("backward") => Ok(Norm::Backward),
            Some("ortho") => Ok(Norm::Ortho),
            Some("forward") => Ok(Norm::Forward),
            _ => Err(PyValueError::new_err(format!(
                "Invalid norm value {}, should be \"backward\", \"ortho\" or \"forward\"",
                norm.repr()?
            ))),
        }
    }

    /// The factor of a transform of `n` points.
    pub fn factor(self, forward: bool, n: f64) -> f64 {
        match (self, forward) {
            (Norm::Ortho, _) => 1.0 / n.sqrt(),
            (Norm::Backward, false) | (Norm::Forward, true) => 1.0 / n,
            _ => 1.0,
        }
    }
}

/// The axes to be transformed, and the lengths that their transforms shall have.
pub struct Axes {
    pub lengths: Vec<usize>,
    pub axes: Vec<usize>,
}

impl Axes {
    /// Both, for an array of this shape. One axis that is a plain number is an argument `axis`, and `s` is `n` then.
    pub fn resolve(shape: &[usize], s: &Bound<'_, PyAny>, axes: &Bound<'_, PyAny>) -> PyResult<Axes> {
        let ndim = shape.len();
        let single: Option<isize> = if axes.is_none() { None } else { axes.extract().ok() };
        let mut lengths = if s.is_none() { None } else { Some(integers(s, "shape")?) };
        let axes: Vec<usize> = match single {
            Some(axis) => vec![one_axis(axes.py(), axis, ndim)?],
            None if axes.is_none() => {
                let count = lengths.as_ref().map_or(ndim, Vec::len);
                if count > ndim {
                    return Err(PyValueError::new_err("shape requires more axes than are present"));
                }
                (ndim - count..ndim).collect()
            }
            None => several_axes(axes, ndim)?,
        };
        if lengths.as_ref().is_some_and(|lengths| lengths.len() != axes.len()) {
            return Err(PyValueError::new_err(
                "when given, axes and shape arguments have to be of the same length",
            ));
        }
        if let (Some(lengths), None) = (&mut lengths, single) {
            for (n, &axis) in lengths.iter_mut().zip(&axes).filter(|(n, _)| **n == -1) {
                *n = shape[axis] as isize;
            }
        }
        let lengths = lengths.unwrap_or_else(|| axes.iter().map(|&axis| shape[axis] as isize).collect());
        if lengths.iter().any(|&n| n < 1) {
            let text = if single.is_some() { lengths[0].to_string() } else { format!("{lengths:?}") };
            return Err(no_points(&text));
        }
        Ok(Axes { lengths: lengths.into_iter().map(|n| n as usize).collect(), axes })
    }
}

/// scipy's error of a transform of no points.
pub fn no_points(text: &str) -> PyErr {
    PyValueError::new_err(format!("invalid number of data points ({text}) specified"))
}

fn one_axis(py: Python<'_>, axis: isize, ndim: usize) -> PyResult<usize> {
    let index = if axis < 0 { axis + ndim as isize } else { axis };
    if (0..ndim as isize).contains(&index) {
        return Ok(index as usize);
    }
    // Both an IndexError, as in scipy, and a ValueError.
    let error = py.import("numpy.exceptions")?.getattr("AxisError")?.call1((axis, ndim))?;
    Err(PyErr::from_value(error))
}

fn several_axes(axes: &Bound<'_, PyAny>, ndim: usize) -> PyResult<Vec<usize>> {
    let mut list = Vec::with_capacity(ndim);
    for axis in integers(axes, "axes")? {
        let index = if axis < 0 { axis + ndim as isize } else { axis };
        if !(0..ndim as isize).contains(&index) {
            return Err(PyValueError::new_err("axes exceeds dimensionality of input"));
        }
        if list.contains(&(index as usize)) {
            return Err(PyValueError::new_err("all axes must be unique"));
        }
        list.push(index as usize);
    }
    Ok(list)
}

fn integers(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<isize>> {
    if let Ok(one) = value.extract::<isize>() {
        return Ok(vec![one]);
    }
    let list = value.try_iter().and_then(|items| items.map(|item| item?.extract()).collect());
    list.map_err(|_: PyErr| PyValueError::new_err(format!("{name} must be a scalar or iterable of integers")))
}

thread_local! {
    static WORKERS: Cell<usize> = const { Cell::new(1) };
}

/// The number of threads for an argument `workers`.
pub fn workers(workers: &Bound<'_, PyAny>) -> PyResult<usize> {
    if workers.is_none() {
        return Ok(WORKERS.get());
    }
    let wanted: isize = workers.extract()?;
    if wanted > 0 {
        return Ok(wanted as usize);
    }
    if wanted == 0 {
        return Err(PyValueError::new_err("workers must not be zero"));
    }
    let cores: Option<isize> = workers.py().import("os")?.call_method0("cpu_count")?.extract()?;
    let cores = cores.unwrap_or(1);
    if wanted < -cores {
        return Err(PyValueError::new_err(format!(
            "workers value out of range; got {wanted}, must not be less than {}",
            -cores
        )));
    }
    Ok((wanted + 1 + cores) as usize)
}

/// Sets the default number of threads of this thread's calls; the number before.
#[pyfunction]
pub fn swap_workers(count: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(WORKERS.replace(workers(count)?))
}

/// The default number of threads of this thread's calls.
#[pyfunction]
pub fn get_workers() -> usize {
    WORKERS.get()
}
