//! Plans and drafts of both precisions and all devices behind one interface.

use std::marker::PhantomData;

use ferrier::spectral::{self, WaveNumbers};
use ferrier::{Cpu, Data, DataMut, Operator, Real, Recipe, Result, Target};
use serde_json::{Value, json};

use crate::fft::Span;

/// A call of a plan.
pub struct Request {
    /// forward, backward or apply.
    pub kind: String,
    /// `None`: in place.
    pub input: Option<Array>,
    pub output: Array,
    pub scale: f64,
    /// Name, lengths of the domain, values.
    pub operator: Option<(String, Vec<f64>, Vec<f64>)>,
}

/// An array of the caller's, of the plan's precision.
#[derive(Clone, Copy)]
pub struct Array {
    pub span: Span,
    /// `None` where elements may be either.
    pub real: Option<bool>,
}

/// An array that a plan made.
pub trait Made: Send + Sync {
    /// Address and strides in bytes (arrays of the batch first) of its real or complex elements.
    fn view(&self, real: bool, batch: usize) -> (usize, [usize; 4]);
    /// All scalars.
    fn span(&self) -> Span;
    fn scalar_bytes(&self) -> usize;
    /// Copies all bytes to main memory.
    fn download(&self, to: &mut [u8]) -> Result<()>;
}

/// A plan before it takes memory.
pub trait AnyDraft: Send {
    fn info(&self) -> Value;
    fn build(self: Box<Self>) -> Result<Box<dyn AnyPlan>>;
}

/// A plan.
pub trait AnyPlan: Send {
    fn info(&self) -> Value;
    /// An array for the input, the output, or both in place.
    fn make(&self, what: &str) -> Result<Box<dyn Made>>;
    fn run(&mut self, request: &Request) -> Result<()>;
    /// Loss, rounding (typical, worst), tolerance and bound of the last call.
    fn certificate(&self) -> Option<[f64; 5]>;
    fn wire_bytes(&self) -> u64;
    fn events(&self) -> Value;
    fn is_double(&self) -> bool;
    /// # Safety
    /// `stream` is a stream of the plan's GPU and lives as long as the plan uses it.
    unsafe fn set_stream(&mut self, stream: usize) -> Result<()>;
    fn synchronize(&self) -> Result<()>;
}

/// What differs between devices.
pub trait Place: Target {
    fn make<T: Real>(plan: &ferrier::Plan<T, Self>, what: &str) -> Result<Box<dyn Made>>;
    fn run<T: Real>(
        plan: &mut ferrier::Plan<T, Self>,
        request: &Request,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()>;
    /// # Safety
    /// As [`AnyPlan::set_stream`].
    unsafe fn set_stream<T: Real>(plan: &mut ferrier::Plan<T, Self>, stream: usize) -> Result<()>;
    fn synchronize<T: Real>(plan: &ferrier::Plan<T, Self>) -> Result<()>;
}

/// A layout as JSON.
pub fn layout(layout: &ferrier::Layout) -> Value {
    json!({ "shape": layout.shape(), "boxes": layout.boxes(), "order": layout.order().axes() })
}

impl<T: Real, B: Place> AnyDraft for ferrier::Draft<T, B>
where
    ferrier::Draft<T, B>: Send,
    ferrier::Plan<T, B>: Send + 'static,
{
    fn info(&self) -> Value {
        let predicted = |in_place| {
            self.prediction(in_place).map(|prediction| {
                let steps: Vec<Value> = prediction.steps.iter().map(|step| json!(step)).collect();
                json!({ "seconds": prediction.seconds(), "steps": steps })
            })
        };
        let rejected: Vec<Value> =
            self.rejected().iter().map(|(recipe, ratio)| json!([recipe.to_string(), ratio])).collect();
        json!({
            "memory": self.memory(),
            "memory_total": self.memory().total(),
            "notes": self.notes(),
            "predicted": [predicted(false), predicted(true)],
            "rejected": rejected,
            "wisdom": self.wisdom().map(|entry| entry.id.clone()),
        })
    }

    fn build(self: Box<Self>) -> Result<Box<dyn AnyPlan>> {
        Ok(Box::new((*self).build()?))
    }
}

impl<T: Real, B: Place> AnyPlan for ferrier::Plan<T, B>
where
    ferrier::Plan<T, B>: Send,
{
    fn info(&self) -> Value {
        let recipe = self.recipe();
        json!({
            "recipe": recipe.to_string(),
            "real": [recipe.is_real(), recipe.has_real_output()],
            "layouts": [layout(self.input_layout()), layout(self.output_layout())],
            "batch": recipe.batch,
            "notes": self.notes(),
            "memory": self.memory(),
            "memory_total": self.memory().total(),
            "traffic": recipe.traffic(),
            "tuning": self.is_tuning(),
            "exchange": recipe.exchange,
            "kernel": recipe.kernel,
            "codec": recipe.codec,
        })
    }

    fn make(&self, what: &str) -> Result<Box<dyn Made>> {
        B::make(self, what)
    }

    fn run(&mut self, request: &Request) -> Result<()> {
        let operator = match &request.operator {
            Some((name, lengths, values)) => Some(named::<T>(self.recipe(), name, lengths, values)?),
            None => None,
        };
        B::run(self, request, operator.as_deref())
    }

    fn certificate(&self) -> Option<[f64; 5]> {
        let c = self.certificate()?;
        Some([c.loss, c.rounding_typical, c.rounding_worst, c.tolerance.unwrap_or(f64::NAN), c.bound()])
    }

    fn wire_bytes(&self) -> u64 {
        self.wire_bytes()
    }

    fn events(&self) -> Value {
        let event = |e: &ferrier::Event| {
            json!({
                "kind": format!("{:?}", e.kind).to_lowercase(), "name": e.name, "start_ms": e.start_ms,
                "end_ms": e.end_ms, "bytes": e.bytes, "reshape": e.reshape, "tile": e.tile,
            })
        };
        self.events().iter().map(event).collect()
    }

    fn is_double(&self) -> bool {
        size_of::<T>() == 8
    }

    unsafe fn set_stream(&mut self, stream: usize) -> Result<()> {
        // SAFETY: the same contract.
        unsafe { B::set_stream(self, stream) }
    }

    fn synchronize(&self) -> Result<()> {
        B::synchronize(self)
    }
}

/// Makes a call with its arrays.
macro_rules! made_call {
    ($plan:expr, $request:expr, $operator:expr, $array:expr) => {{
        let request: &Request = $request;
        let operator = $operator;
        let call = $plan.call().scale(request.scale);
        let call = match &operator {
            Some(operator) => call.operator(operator),
            None => call,
        };
        let mut output = $array(request.output);
        match (request.kind.as_str(), request.input) {
            ("forward", Some(input)) => call.forward(&$array(input), &mut output),
            ("backward", Some(input)) => call.backward(&$array(input), &mut output),
            ("apply", Some(input)) => call.apply(&$array(input), &mut output),
            ("forward", None) => call.forward_in_place(&mut output),
            ("backward", None) => call.backward_in_place(&mut output),
            _ => call.apply_in_place(&mut output),
        }
    }};
}
#[cfg(feature = "cuda")]
pub(crate) use made_call;

/// An array in main memory as the library takes it.
struct Scalars<T> {
    array: Array,
    scalars: PhantomData<T>,
}

impl<T: Real> Data<T> for Scalars<T> {
    fn scalars(&self) -> &[T] {
        let Span { start, scalars } = self.array.span;
        // SAFETY: the caller of `Plan.call` holds the array, whose type and alignment were checked.
        unsafe { std::slice::from_raw_parts(start as *const T, scalars) }
    }
    fn is_real(&self) -> Option<bool> {
        self.array.real
    }
}

impl<T: Real> DataMut<T> for Scalars<T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        let Span { start, scalars } = self.array.span;
        // SAFETY: as above. Other threads of Python must not use it meanwhile, as with every function of numpy that releases
        // the interpreter's lock.
        unsafe { std::slice::from_raw_parts_mut(start as *mut T, scalars) }
    }
}

struct HostArray<T: Real> {
    array: ferrier::Array<T>,
    span: Span,
}

impl<T: Real> Made for HostArray<T> {
    fn view(&self, real: bool, batch: usize) -> (usize, [usize; 4]) {
        let array = &self.array;
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
        (self.span.start + first * bytes, [over, step(0), step(1), step(2)])
    }

    fn span(&self) -> Span {
        self.span
    }

    fn scalar_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn download(&self, to: &mut [u8]) -> Result<()> {
        // SAFETY: the array has so many bytes, all of them set.
        let bytes = unsafe { std::slice::from_raw_parts(self.span.start as *const u8, to.len()) };
        to.copy_from_slice(bytes);
        Ok(())
    }
}

fn on_cpus() -> Result<()> {
    Err(ferrier::Error::other("this plan is not on a GPU: it has no stream"))
}

impl Place for Cpu {
    fn make<T: Real>(plan: &ferrier::Plan<T>, what: &str) -> Result<Box<dyn Made>> {
        let mut array = match what {
            "input" => plan.make_input(),
            "output" => plan.make_output(),
            _ => plan.make_in_place(),
        }?;
        let scalars = array.scalars_mut();
        let span = Span { start: scalars.as_mut_ptr() as usize, scalars: scalars.len() };
        Ok(Box::new(HostArray { array, span }))
    }

    fn run<T: Real>(
        plan: &mut ferrier::Plan<T>,
        request: &Request,
        operator: Option<&dyn Operator<T>>,
    ) -> Result<()> {
        let array = |array| Scalars::<T> { array, scalars: PhantomData };
        made_call!(plan, request, operator, array)
    }

    unsafe fn set_stream<T: Real>(_: &mut ferrier::Plan<T>, _: usize) -> Result<()> {
        on_cpus()
    }

    fn synchronize<T: Real>(_: &ferrier::Plan<T>) -> Result<()> {
        Ok(())
    }
}

/// The operator of this name, for a domain with these lengths.
fn named<T: Real>(
    recipe: &Recipe,
    name: &str,
    lengths: &[f64],
    values: &[f64],
) -> Result<Box<dyn Operator<T>>> {
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
