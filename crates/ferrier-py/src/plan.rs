//! Plans, and the arrays that they make.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ferrier::{Effort, Planner};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::comm::Comm;
use crate::engine::{AnyDraft, AnyPlan, Array, Request};
use crate::errors::{FerrierError, raise};
use crate::fft::{Element, Span, data};
use crate::memory::Memory;

/// How many times this process was forked from another.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Called in a process that was just forked.
pub fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A plan before it takes memory.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Draft {
    inner: Mutex<Option<Box<dyn AnyDraft>>>,
}

/// Plans in main memory, or on this GPU.
fn draft(
    planner: Planner,
    comm: &ferrier::Comm,
    double: bool,
    gpu: Option<usize>,
) -> ferrier::Result<Box<dyn AnyDraft>> {
    match gpu {
        None if double => Ok(Box::new(planner.draft::<f64>(comm)?)),
        None => Ok(Box::new(planner.draft::<f32>(comm)?)),
        #[cfg(feature = "cuda")]
        Some(gpu) => crate::gpu::draft(planner, comm, double, gpu),
        #[cfg(not(feature = "cuda"))]
        Some(_) => Err(ferrier::Error::other("this module was built without CUDA")),
    }
}

#[pymethods]
impl Draft {
    /// Problem and choice are JSON with the library's names. Collective.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        comm: &Bound<'_, Comm>,
        problem: &str,
        choice: &str,
        double: bool,
        effort: (String, f64),
        wisdom: Option<String>,
        gpu: Option<usize>,
    ) -> PyResult<Draft> {
        let invalid = |error: serde_json::Error| PyValueError::new_err(error.to_string());
        let problem: ferrier::Problem = serde_json::from_str(problem).map_err(invalid)?;
        let choice: ferrier::Choice = serde_json::from_str(choice).map_err(invalid)?;
        let effort = match effort.0.as_str() {
            "estimate" => Effort::Estimate,
            "measure" => Effort::Measure,
            "online" => Effort::Online,
            _ => Effort::Patient(Duration::from_secs_f64(effort.1)),
        };
        let planner = Planner::new(&problem).choice(choice).effort(effort);
        let planner = match wisdom.as_deref() {
            None => planner,
            Some("off") => planner.without_wisdom(),
            Some(path) => planner.wisdom(path),
        };
        let comm = comm.get().inner.clone();
        let inner = py.detach(|| draft(planner, &comm, double, gpu)).map_err(raise)?;
        Ok(Draft { inner: Mutex::new(Some(inner)) })
    }

    /// What is known before the plan is built, as JSON.
    fn info(&self) -> PyResult<String> {
        let inner = lock(&self.inner);
        let Some(draft) = &*inner else { return Err(FerrierError::new_err("this draft was built already")) };
        Ok(draft.info().to_string())
    }

    /// The plan. Collective.
    fn build(&self, py: Python<'_>) -> PyResult<Plan> {
        let Some(draft) = lock(&self.inner).take() else {
            return Err(FerrierError::new_err("this draft was built already"));
        };
        let plan = py.detach(|| draft.build()).map_err(raise)?;
        let double = plan.is_double();
        let inner = ManuallyDrop::new(Mutex::new(Some(plan)));
        Ok(Plan { inner, double, stream: AtomicUsize::new(NONE), forks: FORKS.load(Ordering::Relaxed) })
    }
}

/// An executable transform. `ferrier.Plan` is made of it.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Plan {
    inner: ManuallyDrop<Mutex<Option<Box<dyn AnyPlan>>>>,
    double: bool,
    /// The stream of its last call on a GPU.
    stream: AtomicUsize,
    forks: usize,
}

/// No stream.
const NONE: usize = usize::MAX;

impl Drop for Plan {
    /// The threads of a plan of the parent process are not here: they cannot be ended, and its lock
    /// may be held for ever.
    fn drop(&mut self) {
        if self.forks == FORKS.load(Ordering::Relaxed) {
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

impl Plan {
    /// Runs `work` with the plan, without the interpreter's lock. One thread at a time.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn AnyPlan) -> ferrier::Result<R> + Send,
    ) -> PyResult<R> {
        if self.forks != FORKS.load(Ordering::Relaxed) {
            return Err(FerrierError::new_err(
                "this plan was made before os.fork: its threads are in the parent process; make it again here",
            ));
        }
        // `work` itself would ask for a plan that lives for ever.
        #[allow(clippy::redundant_closure)]
        let result = py.detach(|| lock(&self.inner).as_deref_mut().map(|plan| work(plan)));
        let closed = || FerrierError::new_err("this plan was closed");
        result.ok_or_else(closed)?.map_err(raise)
    }
}

#[pymethods]
impl Plan {
    /// What the plan is, as JSON.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |plan| Ok(plan.info().to_string()))
    }

    /// An array for the input, the output, or both in place. Collective.
    fn make(&self, py: Python<'_>, what: &str) -> PyResult<Memory> {
        let what = what.to_string();
        let (array, batch) =
            self.with(py, move |plan| Ok((plan.make(&what)?, plan.info()["batch"].as_u64())))?;
        Ok(Memory { array, batch: batch.unwrap_or(1) as usize })
    }

    /// Transforms: `kind` is forward, backward or apply; without an input in place. Arrays lie as the problem says.
    #[pyo3(signature = (kind, input, output, scale, operator = None))]
    fn call(
        &self,
        py: Python<'_>,
        kind: &str,
        input: Option<&Bound<'_, PyUntypedArray>>,
        output: &Bound<'_, PyUntypedArray>,
        scale: f64,
        operator: Option<(String, Vec<f64>, Vec<f64>)>,
    ) -> PyResult<()> {
        let input = input.map(|array| self.array(array, "input")).transpose()?;
        let output = self.array(output, "output")?;
        let request = Request { kind: kind.to_string(), input, output, scale, operator };
        self.with(py, move |plan| plan.run(&request))
    }

    /// Transforms arrays given by address and number of scalars: in the memory of the plan's GPU, on this stream of it.
    #[pyo3(signature = (kind, input, output, scale, operator, stream))]
    #[allow(clippy::too_many_arguments)]
    fn call_gpu(
        &self,
        py: Python<'_>,
        kind: &str,
        input: Option<(usize, usize)>,
        output: (usize, usize),
        scale: f64,
        operator: Option<(String, Vec<f64>, Vec<f64>)>,
        stream: usize,
    ) -> PyResult<()> {
        let array = |(start, scalars)| Array { span: Span { start, scalars }, real: None };
        let (input, output) = (input.map(array), array(output));
        let request = Request { kind: kind.to_string(), input, output, scale, operator };
        self.with(py, move |plan| {
            // Another stream waits for the work on the last one.
            if self.stream.load(Ordering::Relaxed) != stream {
                // SAFETY: the Python part takes the stream from the array, or from the caller.
                unsafe { plan.set_stream(stream) }?;
                self.stream.store(stream, Ordering::Relaxed);
            }
            plan.run(&request)
        })
    }

    /// Transforms an array of `make("in_place")`.
    fn call_in_place(
        &self,
        py: Python<'_>,
        kind: &str,
        memory: &Bound<'_, Memory>,
        scale: f64,
    ) -> PyResult<()> {
        let (span, double) = (memory.get().array.span(), memory.get().array.scalar_bytes() == 8);
        let output = Array { span, real: None };
        let request = Request { kind: kind.to_string(), input: None, output, scale, operator: None };
        self.with(py, move |plan| match double == plan.is_double() {
            true => plan.run(&request),
            false => Err(ferrier::Error::other("the array is of a plan of the other precision")),
        })
    }

    /// Waits until all work on the GPU is complete.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |plan| plan.synchronize())
    }

    /// Loss, rounding (typical, worst), tolerance and bound of the last call.
    fn certificate(&self, py: Python<'_>) -> PyResult<Option<[f64; 5]>> {
        self.with(py, |plan| Ok(plan.certificate()))
    }

    /// The bytes that this rank sent in the last call.
    fn wire_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |plan| Ok(plan.wire_bytes()))
    }

    /// The events of the last call on this rank, as JSON.
    fn events(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |plan| Ok(plan.events().to_string()))
    }

    /// Gives memory and threads back.
    fn close(&self, py: Python<'_>) {
        if self.forks == FORKS.load(Ordering::Relaxed) {
            py.detach(|| drop(lock(&self.inner).take()));
        }
    }
}

impl Plan {
    /// A dense array of numpy's, or one with the strides of the problem: all from its first element to its last.
    fn array(&self, array: &Bound<'_, PyUntypedArray>, name: &str) -> PyResult<Array> {
        let wrong = || {
            PyTypeError::new_err(format!(
                "{name}: expected an array of {} precision, got {}",
                if self.double { "double" } else { "single" },
                array.dtype()
            ))
        };
        let element = Element::of(array).filter(|element| element.double == self.double).ok_or_else(wrong)?;
        let elements = match array.len() {
            0 => 0,
            _ => 1 + extent(array).ok_or_else(wrong)? / element.bytes(),
        };
        let span = Span { start: data(array), scalars: elements * element.width() };
        Ok(Array { span, real: Some(!element.complex) })
    }
}

/// Bytes from the first element to the last; `None` for an array that runs backwards.
fn extent(array: &Bound<'_, PyUntypedArray>) -> Option<usize> {
    let reach = |(&n, &stride): (&usize, &isize)| match n {
        1 => Some(0),
        _ => usize::try_from(stride).ok().map(|stride| (n - 1) * stride),
    };
    array.shape().iter().zip(array.strides()).map(reach).sum()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
