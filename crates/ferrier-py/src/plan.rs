//! Plans, and the arrays that they make.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ferrier::spectral::{self, WaveNumbers};
use ferrier::{Data, DataMut, Effort, Operator, Planner, Real, Recipe};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::comm::Comm;
use crate::errors::{FerrierError, raise};
use crate::fft::{Element, data};

/// How many times this process was forked from another.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Called in a process that was just forked.
pub fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value of one of the two precisions.
pub enum Either<S, D> {
    Single(S),
    Double(D),
}

macro_rules! either {
    ($value:expr, $name:pat => $work:expr) => {
        match $value {
            Either::Single($name) => $work,
            Either::Double($name) => $work,
        }
    };
}

/// A plan before it takes memory.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Draft {
    inner: Mutex<Option<Either<ferrier::Draft<f32>, ferrier::Draft<f64>>>>,
}

#[pymethods]
impl Draft {
    /// Problem and choice are JSON with the library's names. Collective.
    #[new]
    fn new(
        py: Python<'_>,
        comm: &Bound<'_, Comm>,
        problem: &str,
        choice: &str,
        double: bool,
        effort: (String, f64),
        wisdom: Option<String>,
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
        let inner = py.detach(|| match double {
            true => planner.draft(&comm).map(Either::Double),
            false => planner.draft(&comm).map(Either::Single),
        });
        Ok(Draft { inner: Mutex::new(Some(inner.map_err(raise)?)) })
    }

    /// What is known before the plan is built, as JSON.
    fn info(&self) -> PyResult<String> {
        let inner = lock(&self.inner);
        let Some(draft) = &*inner else { return Err(FerrierError::new_err("this draft was built already")) };
        let value = either!(draft, draft => {
            let predicted = |in_place| draft.prediction(in_place).map(|prediction| {
                let steps: Vec<Value> = prediction.steps.iter().map(|step| json!(step)).collect();
                json!({ "seconds": prediction.seconds(), "steps": steps })
            });
            json!({
                "memory": draft.memory(),
                "memory_total": draft.memory().total(),
                "notes": draft.notes(),
                "predicted": [predicted(false), predicted(true)],
                "rejected": draft.rejected().iter().map(|(recipe, ratio)| json!([recipe.to_string(), ratio])).collect::<Vec<_>>(),
                "wisdom": draft.wisdom().map(|entry| entry.id.clone()),
            })
        });
        Ok(value.to_string())
    }

    /// The plan. Collective.
    fn build(&self, py: Python<'_>) -> PyResult<Plan> {
        let Some(draft) = lock(&self.inner).take() else {
            return Err(FerrierError::new_err("this draft was built already"));
        };
        let plan = py.detach(|| match draft {
            Either::Single(draft) => draft.build().map(Either::Single),
            Either::Double(draft) => draft.build().map(Either::Double),
        });
        let plan = plan.map_err(raise)?;
        let double = matches!(plan, Either::Double(_));
        let inner = ManuallyDrop::new(Mutex::new(Some(plan)));
        Ok(Plan { inner, double, forks: FORKS.load(Ordering::Relaxed) })
    }
}

type AnyPlan = Either<ferrier::Plan<f32>, ferrier::Plan<f64>>;

/// An executable transform. `ferrier.Plan` is made of it.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Plan {
    inner: ManuallyDrop<Mutex<Option<AnyPlan>>>,
    double: bool,
    forks: usize,
}

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
        work: impl FnOnce(&mut AnyPlan) -> ferrier::Result<R> + Send,
    ) -> PyResult<R> {
        if self.forks != FORKS.load(Ordering::Relaxed) {
            return Err(FerrierError::new_err(
                "this plan was made before os.fork: its threads are in the parent process; make it again here",
            ));
        }
        let result = py.detach(|| lock(&self.inner).as_mut().map(work));
        let closed = || FerrierError::new_err("this plan was closed");
        result.ok_or_else(closed)?.map_err(raise)
    }
}

#[pymethods]
impl Plan {
    /// What the plan is, as JSON.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |plan| {
            Ok(either!(plan, plan => {
                json!({
                    "recipe": plan.recipe().to_string(),
                    "real": [plan.recipe().is_real(), plan.recipe().has_real_output()],
                    "layouts": [layout(plan.input_layout()), layout(plan.output_layout())],
                    "batch": plan.recipe().batch,
                    "notes": plan.notes(),
                    "memory": plan.memory(),
                    "memory_total": plan.memory().total(),
                    "traffic": plan.recipe().traffic(),
                    "tuning": plan.is_tuning(),
                    "exchange": plan.recipe().exchange,
                    "kernel": plan.recipe().kernel,
                    "codec": plan.recipe().codec,
                })
                .to_string()
            }))
        })
    }

    /// An array for the input, the output, or both in place. Collective.
    fn make(&self, py: Python<'_>, what: &str) -> PyResult<Memory> {
        let what = what.to_string();
        let (mut array, batch) = self.with(py, move |plan| {
            fn make<T: Real>(plan: &ferrier::Plan<T>, what: &str) -> ferrier::Result<ferrier::Array<T>> {
                match what {
                    "input" => plan.make_input(),
                    "output" => plan.make_output(),
                    _ => plan.make_in_place(),
                }
            }
            let batch = either!(&*plan, plan => plan.recipe().batch);
            let array = match plan {
                Either::Single(plan) => Either::Single(make(plan, &what)?),
                Either::Double(plan) => Either::Double(make(plan, &what)?),
            };
            Ok((array, batch))
        })?;
        let start = either!(&mut array, array => array.scalars_mut().as_mut_ptr() as usize);
        Ok(Memory { array, batch, start })
    }

    /// Transforms: `kind` is forward, backward or apply; without an input in place. Arrays lie densely in the order of
    /// the plan's layouts.
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
        let input = input.map(|array| Span::of(array, "input", self.double)).transpose()?;
        let output = Span::of(output, "output", self.double)?;
        let kind = kind.to_string();
        self.with(py, move |plan| either!(plan, plan => call(plan, &kind, input, output, scale, operator)))
    }

    /// Transforms an array of `make("in_place")`.
    fn call_in_place(
        &self,
        py: Python<'_>,
        kind: &str,
        memory: &Bound<'_, Memory>,
        scale: f64,
    ) -> PyResult<()> {
        let memory = memory.get();
        if matches!(memory.array, Either::Double(_)) != self.double {
            return Err(PyTypeError::new_err("the array is of a plan of the other precision"));
        }
        let scalars = either!(&memory.array, array => array.scalars().len());
        let span = Span { start: memory.start, scalars, real: None };
        let kind = kind.to_string();
        self.with(py, move |plan| either!(plan, plan => call(plan, &kind, None, span, scale, None)))
    }

    /// Loss, rounding (typical, worst), tolerance and bound of the last call.
    fn certificate(&self, py: Python<'_>) -> PyResult<Option<[f64; 5]>> {
        self.with(py, |plan| {
            let certificate = either!(plan, plan => plan.certificate());
            Ok(certificate.map(|c| {
                [c.loss, c.rounding_typical, c.rounding_worst, c.tolerance.unwrap_or(f64::NAN), c.bound()]
            }))
        })
    }

    /// The bytes that all ranks sent in the last call.
    fn wire_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |plan| Ok(either!(plan, plan => plan.wire_bytes())))
    }

    /// The events of the last call on this rank, as JSON.
    fn events(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |plan| {
            let events = either!(plan, plan => plan.events());
            let list: Vec<Value> = events
                .iter()
                .map(|e| {
                    json!({
                        "kind": format!("{:?}", e.kind).to_lowercase(), "name": e.name, "start_ms": e.start_ms,
                        "end_ms": e.end_ms, "bytes": e.bytes, "reshape": e.reshape, "tile": e.tile,
                    })
                })
                .collect();
            Ok(Value::from(list).to_string())
        })
    }

    /// Gives memory and threads back.
    fn close(&self, py: Python<'_>) {
        if self.forks == FORKS.load(Ordering::Relaxed) {
            py.detach(|| drop(lock(&self.inner).take()));
        }
    }
}

/// A layout as JSON.
pub fn layout(layout: &ferrier::Layout) -> Value {
    json!({ "shape": layout.shape(), "boxes": layout.boxes(), "order": layout.order().axes() })
}

/// The scalars of an array of numpy's.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    scalars: usize,
    /// `None` where elements may be either.
    real: Option<bool>,
}

impl Span {
    fn of(array: &Bound<'_, PyUntypedArray>, name: &str, double: bool) -> PyResult<Span> {
        match Element::of(array) {
            Some(element) if element.double == double && array.is_c_contiguous() => Ok(Span {
                start: data(array),
                scalars: array.len() * element.width(),
                real: Some(!element.complex),
            }),
            _ => Err(PyTypeError::new_err(format!(
                "{name}: expected a dense array of {} precision, got {}",
                if double { "double" } else { "single" },
                array.dtype()
            ))),
        }
    }
}

/// A span as the library takes it.
struct Scalars<T> {
    span: Span,
    scalars: std::marker::PhantomData<T>,
}

impl<T: Real> Data<T> for Scalars<T> {
    fn scalars(&self) -> &[T] {
        // SAFETY: the caller holds the array; `Span::of` has checked its type.
        unsafe { std::slice::from_raw_parts(self.span.start as *const T, self.span.scalars) }
    }
    fn is_real(&self) -> Option<bool> {
        self.span.real
    }
}

impl<T: Real> DataMut<T> for Scalars<T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        // SAFETY: the caller holds the array; `Span::of` has checked its type. Other threads of Python must not use it
        // meanwhile, as with every function of numpy that releases the interpreter's lock.
        unsafe { std::slice::from_raw_parts_mut(self.span.start as *mut T, self.span.scalars) }
    }
}

fn call<T: Real>(
    plan: &mut ferrier::Plan<T>,
    kind: &str,
    input: Option<Span>,
    output: Span,
    scale: f64,
    operator: Option<(String, Vec<f64>, Vec<f64>)>,
) -> ferrier::Result<()> {
    let scalars = |span| Scalars { span, scalars: std::marker::PhantomData };
    let operator = match operator {
        Some((name, lengths, values)) => Some(named::<T>(plan.recipe(), &name, &lengths, &values)?),
        None => None,
    };
    let operator: Option<&dyn Operator<T>> = operator.as_deref();
    let call = plan.call().scale(scale);
    let call = match &operator {
        Some(operator) => call.operator(operator),
        None => call,
    };
    let mut output = scalars(output);
    match (kind, input) {
        ("forward", Some(input)) => call.forward(&scalars(input), &mut output),
        ("backward", Some(input)) => call.backward(&scalars(input), &mut output),
        ("apply", Some(input)) => call.apply(&scalars(input), &mut output),
        ("forward", None) => call.forward_in_place(&mut output),
        ("backward", None) => call.backward_in_place(&mut output),
        _ => call.apply_in_place(&mut output),
    }
}

/// The operator of this name, for a domain with these lengths.
fn named<T: Real>(
    recipe: &Recipe,
    name: &str,
    lengths: &[f64],
    values: &[f64],
) -> ferrier::Result<Box<dyn Operator<T>>> {
    let waves = WaveNumbers::new(recipe, [lengths[0], lengths[1], lengths[2]])?;
    let value = values.first().copied().unwrap_or(0.0);
    Ok(match name {
        "laplacian" => Box::new(spectral::laplacian(&waves)),
        "inverse_laplacian" => Box::new(spectral::inverse_laplacian(&waves)),
        "derivative" => Box::new(spectral::derivative(&waves, value as usize)?),
        "gaussian" => Box::new(spectral::gaussian(&waves, value)),
        "low_pass" => Box::new(spectral::low_pass(&waves, value)),
        "helmholtz" => Box::new(spectral::helmholtz(&waves, value)),
        "two_thirds" => Box::new(spectral::two_thirds(&waves)),
        "shift" => Box::new(spectral::shift(&waves, [values[0], values[1], values[2]])?),
        _ => Box::new(ferrier::pointwise(|_, mode| mode)),
    })
}

/// An array that a plan made, in memory that the ranks of a node can share.
#[pyclass(frozen, module = "ferrier._ferrier")]
pub struct Memory {
    array: Either<ferrier::Array<f32>, ferrier::Array<f64>>,
    batch: usize,
    /// The address of its first scalar.
    start: usize,
}

#[pymethods]
impl Memory {
    /// Address and strides in bytes (arrays of the batch first) of its real or complex elements.
    fn view(&self, real: bool) -> (usize, [usize; 4]) {
        fn view<T: Real>(array: &ferrier::Array<T>, batch: usize, real: bool) -> (usize, [usize; 4]) {
            let part = if real { array.real_box() } else { array.local_box() };
            let index = |b, at| if real { array.real_index(b, at) } else { array.complex_index(b, at) };
            let bytes = size_of::<T>() * if real { 1 } else { 2 };
            let first = index(0, part.lo).unwrap_or(0);
            let distance = |at: Option<usize>| at.map_or(bytes, |at| (at - first) * bytes);
            let step = |axis: usize| {
                let mut at = part.lo;
                at[axis] += 1;
                distance(index(0, at))
            };
            let over = if batch > 1 { distance(index(1, part.lo)) } else { 0 };
            (first * bytes, [over, step(0), step(1), step(2)])
        }
        let (offset, strides) = either!(&self.array, array => view(array, self.batch, real));
        (self.start + offset, strides)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
