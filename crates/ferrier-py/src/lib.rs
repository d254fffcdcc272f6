//! The native part of the Python package `ferrier`.

mod errors;
mod fft;

use pyo3::prelude::*;

/// The native part of the package `ferrier`.
#[pymodule(gil_used = false)]
fn _ferrier(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    fft::register(module)
}
