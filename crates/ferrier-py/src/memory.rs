//! Arrays that plans made.

use pyo3::prelude::*;

use crate::engine::Made;
use crate::errors::raise;
use crate::fft::Span;

/// An array that a plan made, in memory that the ranks of a node can share, or in that of a GPU.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Memory {
    pub array: Box<dyn Made>,
    pub batch: usize,
}

#[pymethods]
impl Memory {
    /// Address and strides in bytes (arrays of the batch first) of its real or complex elements.
    fn view(&self, real: bool) -> (usize, [usize; 4]) {
        self.array.view(real, self.batch)
    }

    /// Its address and scalars.
    #[getter]
    fn span(&self) -> (usize, usize) {
        let Span { start, scalars } = self.array.span();
        (start, scalars)
    }

    /// Copies its bytes to an array of as many, after all work enqueued on its GPU.
    fn download(&self, py: Python<'_>, mut to: numpy::PyReadwriteArray1<'_, u8>) -> PyResult<()> {
        let to = to.as_slice_mut()?;
        py.detach(|| self.array.download(to)).map_err(raise)
    }
}
