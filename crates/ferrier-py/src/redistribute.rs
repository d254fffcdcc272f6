//! Arrays of any type from one layout to another.

use ferrier::{Problem, Redistribution};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::comm::Comm;
use crate::engine::layout;
use crate::errors::raise;

/// The bytes of this rank's part in the output layout of a problem without transforms, and that layout as JSON. `bytes` are
/// those of an element. Collective.
#[pyfunction]
#[pyo3(signature = (comm, problem, bytes, part, /))]
pub fn redistribute<'py>(
    py: Python<'py>,
    comm: &Bound<'py, Comm>,
    problem: &str,
    bytes: usize,
    part: PyReadonlyArray1<'py, u8>,
) -> PyResult<(Bound<'py, PyArray1<u8>>, String)> {
    let invalid = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let problem: Problem = serde_json::from_str(problem).map_err(invalid)?;
    let part = part.as_slice()?;
    let comm = &comm.get().inner;
    let moved = py.detach(|| match bytes {
        1 => Some(moved::<1>(comm, &problem, part)),
        2 => Some(moved::<2>(comm, &problem, part)),
        4 => Some(moved::<4>(comm, &problem, part)),
        8 => Some(moved::<8>(comm, &problem, part)),
        16 => Some(moved::<16>(comm, &problem, part)),
        32 => Some(moved::<32>(comm, &problem, part)),
        _ => None,
    });
    let wrong = || PyTypeError::new_err(format!("elements have 1, 2, 4, 8, 16 or 32 bytes, got {bytes}"));
    let (part, layout) = moved.ok_or_else(wrong)?.map_err(raise)?;
    Ok((PyArray1::from_vec(py, part), layout))
}

fn moved<const N: usize>(
    comm: &ferrier::Comm,
    problem: &Problem,
    part: &[u8],
) -> ferrier::Result<(Vec<u8>, String)> {
    let mut redistribution = Redistribution::<[u8; N]>::new(comm, problem)?;
    let volume = redistribution.output_box().volume() * problem.batch;
    let mut output = vec![[0; N]; volume];
    redistribution.run(part.as_chunks::<N>().0, &mut output)?;
    Ok((output.into_flattened(), layout(redistribution.output_layout()).to_string()))
}
