//! Arrays in the memory of GPUs: plans on GPUs, transforms of `ferrier.fft`.

use ferrier::cuda::{Cuda, DeviceArray, Plan, RawArray};
use ferrier::{Comm, Device, Operator, Planner, Real, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::engine::{AnyDraft, Array, Made, Place, Request, made_call};
use crate::errors::raise;
use crate::fft::{Axis, Cache, Caches, Element, Job, Key, PerProcess, Places, Span, calls};
use crate::memory::Memory;

/// Plans on this GPU.
pub fn draft(planner: Planner, comm: &Comm, double: bool, gpu: usize) -> Result<Box<dyn AnyDraft>> {
    let planner = planner.device(&Device::cuda(gpu)?);
    Ok(match double {
        true => Box::new(planner.draft::<f64>(comm)?),
        false => Box::new(planner.draft::<f32>(comm)?),
    })
}

impl<T: Real> Made for DeviceArray<T> {
    fn view(&self, _real: bool, _batch: usize) -> (usize, [usize; 4]) {
        // The Python part knows the order of the plan's layout; there are no gaps.
        (self.as_raw() as usize, [0; 4])
    }

    fn span(&self) -> Span {
        Span { start: self.as_raw() as usize, scalars: self.scalars() }
    }

    fn scalar_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn download(&self, to: &mut [u8]) -> Result<()> {
        let mut scalars = vec![T::zero(); to.len() / size_of::<T>()];
        self.download_part(0, &mut scalars)?;
        // SAFETY: scalars are plain numbers; so many bytes of them.
        let bytes =
            unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast::<u8>(), size_of_val(&*scalars)) };
        to[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn raw<T: Real>(array: Array) -> RawArray<T> {
    let Span { start, scalars } = array.span;
    // SAFETY: the Python part takes the address from an array of the plan's GPU, which it holds until the work is enqueued;
    // memory that is freed later is used again after that work, in the order of the stream.
    unsafe { RawArray::new(start as u64, scalars) }
}

impl Place for Cuda {
    fn make<T: Real>(plan: &Plan<T>, what: &str) -> Result<Box<dyn Made>> {
        Ok(Box::new(match what {
            "input" => plan.make_input()?,
            "output" => plan.make_output()?,
            _ => plan.make_in_place()?,
        }))
    }

    fn run<T: Real>(plan: &mut Plan<T>, request: &Request, operator: Option<&dyn Operator<T>>) -> Result<()> {
        made_call!(plan, request, operator, raw::<T>)
    }

    unsafe fn set_stream<T: Real>(plan: &mut Plan<T>, stream: usize) -> Result<()> {
        // SAFETY: the same contract.
        unsafe { plan.set_raw_stream(stream as *mut std::ffi::c_void) }
    }

    fn synchronize<T: Real>(plan: &Plan<T>) -> Result<()> {
        plan.synchronize()
    }
}

/// What decides a plan of `ferrier.fft`: each stream has its own, so that none waits for another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GpuKey {
    key: Key,
    gpu: usize,
    stream: usize,
}

/// Plans of `ferrier.fft` on GPUs.
static CACHES: PerProcess<Caches<GpuKey, Plan<f32>, Plan<f64>>> = PerProcess::new();

fn caches() -> &'static Caches<GpuKey, Plan<f32>, Plan<f64>> {
    CACHES.get(Caches::new)
}

/// Forgets all idle plans and returns their memory: how many, and their bytes.
pub fn clear() -> (usize, usize) {
    caches().clear()
}

/// Called in a process that was just forked.
pub fn after_fork() {
    CACHES.leave_to_parent();
}

trait Cached: Real {
    fn cache() -> &'static Cache<GpuKey, Plan<Self>>;
}

impl Cached for f32 {
    fn cache() -> &'static Cache<GpuKey, Plan<f32>> {
        &caches().single
    }
}

impl Cached for f64 {
    fn cache() -> &'static Cache<GpuKey, Plan<f64>> {
        &caches().double
    }
}

fn make<T: Real>(GpuKey { key, gpu, stream }: &GpuKey) -> Result<(Plan<T>, usize)> {
    let planner = Planner::new(&key.problem()).device(&Device::cuda(*gpu)?);
    let mut plan = planner.draft::<T>(&Comm::one_rank())?.build()?;
    // SAFETY: a stream of the caller's library, which lives while arrays of it are transformed.
    unsafe { plan.set_raw_stream(*stream as *mut std::ffi::c_void) }?;
    let bytes = plan.memory().total();
    Ok((plan, bytes))
}

/// Enqueues the calls of a transform; where there is no array for the result, one is made.
fn run<T: Cached>(
    job: &Job,
    (gpu, stream): (usize, usize),
    input: Option<Span>,
    output: Option<Span>,
) -> Result<Option<Box<dyn Made>>> {
    let (mut input, mut output, mut made) = (input, output, None);
    for (i, call) in job.calls.iter().enumerate() {
        let factor = job.factor_of(i + 1 == job.calls.len());
        let (key, forward) = job.key(call);
        let key = GpuKey { key, gpu, stream };
        T::cache().with(
            &key,
            || make::<T>(&key),
            |plan| {
                let target = match output {
                    Some(target) => target,
                    None => {
                        let array = if forward { plan.make_output()? } else { plan.make_input()? };
                        let target = array.span();
                        made = Some(Box::new(array) as Box<dyn Made>);
                        *output.insert(target)
                    }
                };
                let array = |span| raw::<T>(Array { span, real: None });
                let (call, target) = (plan.call().scale(factor), &mut array(target));
                match (input.take().map(array), forward) {
                    (Some(input), true) => call.forward(&input, target),
                    (Some(input), false) => call.backward(&input, target),
                    (None, true) => call.forward_in_place(target),
                    (None, false) => call.backward_in_place(target),
                }
            },
        )?;
    }
    Ok(made)
}

/// A transform of arrays of one shape, with these strides: what a call needs is found once.
#[pyclass(frozen, module = "ferrier._ferrier")]
struct GpuTransform {
    job: Job,
    double: bool,
    in_place: bool,
    /// Scalars of input and output, gaps included.
    scalars: [usize; 2],
    /// Strides of the output in bytes.
    #[pyo3(get)]
    strides: Vec<usize>,
}

#[pymethods]
impl GpuTransform {
    /// Enqueues it on a stream of a GPU, for arrays at these addresses. The memory of the result where no output was given.
    fn run(
        &self,
        py: Python<'_>,
        gpu: usize,
        stream: usize,
        input: usize,
        output: Option<usize>,
    ) -> PyResult<Option<Memory>> {
        let span = |start, end: usize| Span { start, scalars: self.scalars[end] };
        let source = (!self.in_place).then(|| span(input, 0));
        let target = output.map(|start| span(start, 1));
        let (job, place) = (&self.job, (gpu, stream));
        let made = py.detach(|| match self.double {
            true => run::<f64>(job, place, source, target),
            false => run::<f32>(job, place, source, target),
        });
        Ok(made.map_err(raise)?.map(|array| Memory { array, batch: 1 }))
    }
}

/// A transform of arrays in the memory of a GPU. `strides` are those of input and output in bytes, without the latter where the
/// output is to be made; `shapes` those of input and output, `kinds` those of the axes. `None` where plans cannot take arrays
/// that lie so.
#[pyfunction]
#[pyo3(signature = (double, strides, shapes, kinds, forward, factor, in_place, /))]
fn gpu_transform(
    double: bool,
    strides: (Vec<isize>, Option<Vec<isize>>),
    shapes: (Vec<usize>, Vec<usize>),
    kinds: Vec<String>,
    forward: bool,
    factor: f64,
    in_place: bool,
) -> PyResult<Option<GpuTransform>> {
    let shapes = [shapes.0, shapes.1];
    let kind = |name: &String| name.parse::<ferrier::Kind>().map_err(|error| raise(error.into()));
    let kinds = kinds.iter().map(kind).collect::<PyResult<Vec<_>>>()?;
    let halved = kinds.iter().position(|&kind| kind == ferrier::Kind::Real);
    // Real transforms have one sign on a GPU: backward is to real values.
    let to_real = halved.is_some() && !forward;
    let element = |end: usize| Element { double, complex: halved.is_none() || (end == 0) == to_real };
    let Some(from) = Places::of(&shapes[0], &strides.0, element(0)) else { return Ok(None) };
    let to = match &strides.1 {
        Some(strides) => match Places::of(&shapes[1], strides, element(1)) {
            Some(to) => to,
            None => return Ok(None),
        },
        None => Places::dense(&shapes[1], from.order.clone()),
    };
    let points = if to_real { &shapes[1] } else { &shapes[0] };
    let axis = |&axis: &usize| Axis {
        len: points[axis],
        kind: kinds[axis],
        strides: [from.strides[axis], to.strides[axis]],
    };
    let axes: Vec<Axis> = from.order.iter().map(axis).collect();
    // Calls in reverse would need memory of their own.
    let Some(calls) = calls(&axes, to_real).filter(|calls| !to_real || calls.len() == 1) else {
        return Ok(None);
    };
    if calls.is_empty() {
        return Err(PyValueError::new_err("nothing is transformed"));
    }
    if in_place && from != to {
        return Err(PyValueError::new_err("out is x, with other strides"));
    }
    let scalars = [from.extent * element(0).width(), to.extent * element(1).width()];
    let strides = to.strides.iter().map(|stride| stride * element(1).bytes()).collect();
    let job = Job { calls, forward, to_real, factor, complex: false, ortho: false, workers: 1 };
    Ok(Some(GpuTransform { job, double, in_place, scalars, strides }))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<GpuTransform>()?;
    module.add_function(wrap_pyfunction!(gpu_transform, module)?)
}
