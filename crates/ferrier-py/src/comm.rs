//! Groups of ranks.

use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// A group of ranks, and how many threads each may use.
#[pyclass(frozen, module = "ferrier")]
pub struct Comm {
    pub inner: ferrier::Comm,
}

#[pymethods]
impl Comm {
    /// This process alone.
    #[staticmethod]
    #[pyo3(signature = (threads = None))]
    fn one_rank(threads: Option<usize>) -> Comm {
        let inner = ferrier::Comm::one_rank();
        Comm { inner: threads.map_or(inner.clone(), |threads| inner.with_threads(threads)) }
    }

    /// All processes of this launch; `None` where no launcher started this process. Collective.
    #[staticmethod]
    fn world(py: Python<'_>) -> PyResult<Option<Comm>> {
        let world = py.detach(ferrier::mpi::world).map_err(raise)?;
        Ok(world.map(|inner| Comm { inner }))
    }

    /// A communicator of the MPI that this process uses, given as Fortran's integer. Collective over it.
    #[staticmethod]
    fn from_fortran(py: Python<'_>, handle: i32) -> PyResult<Comm> {
        let adopt = || {
            // SAFETY: the Python part takes the number from mpi4py.
            unsafe { ferrier::mpi::from_fortran(handle, std::ptr::null()) }
        };
        Ok(Comm { inner: py.detach(adopt).map_err(raise)? })
    }

    /// The same group with so many threads in this rank.
    fn with_threads(&self, threads: usize) -> Comm {
        Comm { inner: self.inner.clone().with_threads(threads) }
    }

    /// This rank.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }

    /// The threads of this rank.
    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// The node of each rank.
    #[getter]
    fn nodes(&self) -> Vec<usize> {
        self.inner.nodes().to_vec()
    }

    /// `threads` or `mpi`.
    #[getter]
    fn transport(&self) -> &'static str {
        self.inner.transport_name()
    }

    /// Returns when every rank has called it.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.barrier()).map_err(raise)
    }

    /// Every rank's bytes, in order of rank.
    fn all_gather<'py>(&self, py: Python<'py>, mine: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = py.detach(|| self.inner.all_gather(mine)).map_err(raise)?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Sums over ranks, entry by entry.
    fn sum(&self, py: Python<'_>, mine: Vec<f64>) -> PyResult<Vec<f64>> {
        py.detach(|| self.inner.sum(&mine)).map_err(raise)
    }

    /// Maxima over ranks, entry by entry.
    fn max(&self, py: Python<'_>, mine: Vec<f64>) -> PyResult<Vec<f64>> {
        py.detach(|| self.inner.max(&mine)).map_err(raise)
    }

    /// Tells the other ranks that this one cannot continue.
    fn fail(&self, message: &str) {
        self.inner.fail(message);
    }

    fn __repr__(&self) -> String {
        format!("<ferrier.Comm: {:?}, {} threads>", self.inner, self.inner.threads())
    }
}

/// Runs `function(comm)` on so many threads, which are ranks; their results, in order of rank.
#[pyfunction]
#[pyo3(signature = (ranks, function, threads, nodes, /))]
pub fn run_ranks(
    py: Python<'_>,
    ranks: usize,
    function: Py<PyAny>,
    threads: usize,
    nodes: usize,
) -> PyResult<Vec<Py<PyAny>>> {
    if ranks == 0 || threads == 0 || nodes == 0 {
        return Err(PyValueError::new_err("ranks, threads and nodes must be at least 1"));
    }
    // The first one is the cause; the other ranks fail because of it.
    let first: Mutex<Option<PyErr>> = Mutex::new(None);
    let on_rank = |inner: ferrier::Comm| {
        Python::attach(|py| {
            function.call1(py, (Comm { inner },)).map_err(|error| {
                let text = error.to_string();
                first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
                ferrier::Error::other(text)
            })
        })
    };
    let results = py.detach(|| ferrier::ranks(ranks).threads(threads).nodes(nodes).run(on_rank));
    match first.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(error) => Err(error),
        None => results.map_err(raise),
    }
}
