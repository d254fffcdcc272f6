//! Errors of the library as Python's exceptions.

use ferrier::Error;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(ferrier, FerrierError, PyValueError, "What Ferrier cannot do, and why.");
pyo3::create_exception!(
    ferrier,
    ToleranceError,
    FerrierError,
    "A result whose error bound exceeds the tolerance."
);
pyo3::create_exception!(
    ferrier,
    TransportError,
    FerrierError,
    "MPI, or a rank that failed, left or disagrees."
);

/// The exception of an error; its text is the error's.
pub fn raise(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Io(error) => match error.raw_os_error() {
            Some(code) => PyOSError::new_err((code, text)),
            None => PyOSError::new_err(text),
        },
        Error::Tolerance { .. } => ToleranceError::new_err(text),
        Error::Transport { .. }
        | Error::Disagreement { .. }
        | Error::RankLeft { .. }
        | Error::RankPanicked { .. } => TransportError::new_err(text),
        _ => FerrierError::new_err(text),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FerrierError", py.get_type::<FerrierError>())?;
    module.add("ToleranceError", py.get_type::<ToleranceError>())?;
    module.add("TransportError", py.get_type::<TransportError>())
}
