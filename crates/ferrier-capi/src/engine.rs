//! Plans and drafts of both precisions and all devices behind one interface.

use std::any::Any;

use ferrier::{
    ArrayOf, Box3, Certificate, Cpu, Data, DataMut, Draft, Layout, Memory, Plan, Precision, Real, Recipe,
    Target,
};
use serde_json::Value;

use crate::array::{Array, Workspace};
use crate::json;
use crate::operator::{self, Operator};
use crate::options::Settings;
use crate::pointer;
use crate::status::{Failure, Outcome, Status};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Forward,
    Backward,
    Apply,
}

/// A call of a plan.
pub(crate) struct Request<'a> {
    pub action: Action,
    /// `None`: in place.
    pub source: Option<pointer::Source<'a>>,
    pub target: pointer::Target<'a>,
    pub scale: f64,
    pub operator: Option<&'a Operator>,
    pub workspace: Option<&'a mut (dyn Any + Send)>,
}

/// The arrays that a plan makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrayKind {
    Input,
    Output,
    InPlace,
}

/// Decides everything about a plan.
pub(crate) fn decide(
    comm: &ferrier::Comm,
    problem: &ferrier::Problem,
    precision: Precision,
    settings: &Settings,
) -> Outcome<Box<dyn DraftEngine>> {
    let planner = settings.planner(problem);
    match (settings.gpu, precision) {
        (None, Precision::F32) => Ok(Box::new(planner.draft::<f32>(comm)?)),
        (None, Precision::F64) => Ok(Box::new(planner.draft::<f64>(comm)?)),
        #[cfg(feature = "cuda")]
        (Some(gpu), precision) => {
            let planner = planner.device(&ferrier::Device::cuda(gpu)?);
            Ok(match precision {
                Precision::F32 => Box::new(planner.draft::<f32>(comm)?),
                Precision::F64 => Box::new(planner.draft::<f64>(comm)?),
            })
        }
        #[cfg(not(feature = "cuda"))]
        (Some(_), _) => Err(Failure::new(Status::Unsupported, "this library was built without CUDA")),
    }
}

/// A plan of any precision and device.
pub(crate) trait Engine: Send {
    fn recipe(&self) -> &Recipe;
    fn notes(&self) -> &[String];
    fn memory(&self) -> Memory;
    fn layouts(&self) -> [&Layout; 2];
    fn boxes(&self) -> [Box3; 2];
    /// Scalars of the arrays on this rank.
    fn scalars(&self, kind: ArrayKind) -> usize;
    fn scalar_bytes(&self) -> usize;
    fn certificate(&self) -> Option<Certificate>;
    fn wire_bytes(&self) -> u64;
    fn is_tuning(&self) -> bool;
    fn events(&self) -> Outcome<Value>;
    fn profile(&self) -> Outcome<Value>;
    fn run(&mut self, request: Request<'_>) -> Outcome;
    fn make_array(&self, kind: ArrayKind) -> Outcome<Array>;
    fn make_workspace(&self) -> Outcome<Workspace>;
    fn operator(
        &self,
        name: &str,
        lengths: [f64; 3],
        parameters: &[f64],
    ) -> Outcome<Box<dyn Any + Send + Sync>>;
    /// # Safety
    /// As [`Place::set_stream`].
    unsafe fn set_stream(&mut self, stream: *mut std::ffi::c_void) -> Outcome;
    fn synchronize(&self) -> Outcome;
}

/// What differs between devices.
pub(crate) trait Place: Target {
    fn run<T: Real>(plan: &mut Plan<T, Self>, request: Request<'_>) -> Outcome;
    fn array<T: Real>(array: ArrayOf<T, Self>) -> Array;
    fn workspace<T: Real>(plan: &Plan<T, Self>) -> Outcome<Workspace>;
    fn profile<T: Real>(plan: &Plan<T, Self>) -> Outcome<Value>;
    fn without_workspace<T: Real>(draft: Draft<T, Self>) -> Outcome<Plan<T, Self>>;
    /// # Safety
    /// `stream` is a stream of the plan's GPU, or null, and lives as long as the plan uses it.
    unsafe fn set_stream<T: Real>(plan: &mut Plan<T, Self>, stream: *mut std::ffi::c_void) -> Outcome;
    fn synchronize<T: Real>(plan: &Plan<T, Self>) -> Outcome;
}

impl<T: Real, B: Place> Engine for Plan<T, B>
where
    Plan<T, B>: Send,
{
    fn recipe(&self) -> &Recipe {
        self.recipe()
    }
    fn notes(&self) -> &[String] {
        self.notes()
    }
    fn memory(&self) -> Memory {
        self.memory()
    }
    fn layouts(&self) -> [&Layout; 2] {
        [self.input_layout(), self.output_layout()]
    }
    fn boxes(&self) -> [Box3; 2] {
        [self.input_box(), self.output_box()]
    }
    fn scalars(&self, kind: ArrayKind) -> usize {
        let width = |real: bool| if real { 1 } else { 2 };
        match kind {
            ArrayKind::Input => self.input_len() * width(self.recipe().is_real()),
            ArrayKind::Output => self.output_len() * width(self.recipe().has_real_output()),
            ArrayKind::InPlace => self.in_place_scalars(),
        }
    }
    fn scalar_bytes(&self) -> usize {
        size_of::<T>()
    }
    fn certificate(&self) -> Option<Certificate> {
        self.certificate()
    }
    fn wire_bytes(&self) -> u64 {
        self.wire_bytes()
    }
    fn is_tuning(&self) -> bool {
        self.is_tuning()
    }
    fn events(&self) -> Outcome<Value> {
        json::value(&self.events())
    }
    fn profile(&self) -> Outcome<Value> {
        B::profile(self)
    }
    fn run(&mut self, request: Request<'_>) -> Outcome {
        B::run(self, request)
    }
    fn make_array(&self, kind: ArrayKind) -> Outcome<Array> {
        Ok(B::array::<T>(match kind {
            ArrayKind::Input => self.make_input()?,
            ArrayKind::Output => self.make_output()?,
            ArrayKind::InPlace => self.make_in_place()?,
        }))
    }
    fn make_workspace(&self) -> Outcome<Workspace> {
        B::workspace(self)
    }
    fn operator(
        &self,
        name: &str,
        lengths: [f64; 3],
        parameters: &[f64],
    ) -> Outcome<Box<dyn Any + Send + Sync>> {
        operator::named::<T>(self.recipe(), name, lengths, parameters)
    }
    unsafe fn set_stream(&mut self, stream: *mut std::ffi::c_void) -> Outcome {
        // SAFETY: the same contract.
        unsafe { B::set_stream(self, stream) }
    }
    fn synchronize(&self) -> Outcome {
        B::synchronize(self)
    }
}

/// A draft of any precision and device.
pub(crate) trait DraftEngine: Send {
    fn recipe(&self) -> &Recipe;
    fn notes(&self) -> &[String];
    fn memory(&self) -> Memory;
    fn largest_memory(&self) -> Outcome<u64>;
    /// Of forward, out of place and in place.
    fn prediction(&self) -> Outcome<Value>;
    fn wisdom(&self) -> Outcome<Value>;
    fn build(self: Box<Self>, workspace: bool) -> Outcome<Box<dyn Engine>>;
}

impl<T: Real, B: Place> DraftEngine for Draft<T, B>
where
    Draft<T, B>: Send,
    Plan<T, B>: Send,
{
    fn recipe(&self) -> &Recipe {
        self.recipe()
    }
    fn notes(&self) -> &[String] {
        self.notes()
    }
    fn memory(&self) -> Memory {
        self.memory()
    }
    fn largest_memory(&self) -> Outcome<u64> {
        Ok(self.largest_memory()?)
    }
    fn prediction(&self) -> Outcome<Value> {
        let of = |in_place: bool| -> Outcome<Value> {
            let Some(prediction) = self.prediction(in_place) else { return Ok(Value::Null) };
            let mut value = json::value(&prediction)?;
            value["seconds"] = prediction.seconds().into();
            Ok(value)
        };
        Ok(serde_json::json!({ "forward": of(false)?, "forward_in_place": of(true)? }))
    }
    fn wisdom(&self) -> Outcome<Value> {
        json::value(&self.wisdom())
    }
    fn build(self: Box<Self>, workspace: bool) -> Outcome<Box<dyn Engine>> {
        Ok(Box::new(if workspace { Draft::build(*self)? } else { B::without_workspace(*self)? }))
    }
}

/// An array of the caller's in main memory: real or complex, as the plan needs it.
struct Given<'a, T>(&'a [T]);
/// The same, to write to.
struct GivenMut<'a, T>(&'a mut [T]);

impl<T: Real> Data<T> for Given<'_, T> {
    fn scalars(&self) -> &[T] {
        self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Real> Data<T> for GivenMut<'_, T> {
    fn scalars(&self) -> &[T] {
        self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Real> DataMut<T> for GivenMut<'_, T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        self.0
    }
}

/// Scalars that source and target of a call must have.
fn needed<T: Real, B: Place>(plan: &Plan<T, B>, action: Action, in_place: bool) -> [usize; 2]
where
    Plan<T, B>: Send,
{
    let of = |kind| Engine::scalars(plan, kind);
    match (in_place, action) {
        (true, _) => [0, of(ArrayKind::InPlace)],
        (_, Action::Forward) => [of(ArrayKind::Input), of(ArrayKind::Output)],
        (_, Action::Backward) => [of(ArrayKind::Output), of(ArrayKind::Input)],
        (_, Action::Apply) => [of(ArrayKind::Input); 2],
    }
}

fn on_cpus<T>() -> Outcome<T> {
    Err(Failure::argument("plan", "is not on a GPU, and only plans on GPUs have streams"))
}

impl Place for Cpu {
    fn run<T: Real>(plan: &mut Plan<T>, request: Request<'_>) -> Outcome {
        let Request { action, source, mut target, scale, operator, workspace } = request;
        let [from, to] = needed(plan, action, source.is_none());
        let operator = operator.map(Operator::typed::<T>).transpose()?;
        let mut call = plan.call().scale(scale);
        if let Some(operator) = &operator {
            call = call.operator(operator);
        }
        if let Some(workspace) = workspace {
            let other = || Failure::argument("workspace", "was made for a plan of the other precision");
            call = call.workspace(workspace.downcast_mut::<ferrier::Workspace<T>>().ok_or_else(other)?);
        }
        let Some(source) = source else {
            let mut array = GivenMut(target.scalars::<T>("array", to)?);
            return match action {
                Action::Forward => call.forward_in_place(&mut array),
                Action::Backward => call.backward_in_place(&mut array),
                Action::Apply => call.apply_in_place(&mut array),
            }
            .map_err(Failure::from);
        };
        let input = Given(source.scalars::<T>("input", from)?);
        let mut output = GivenMut(target.scalars::<T>("output", to)?);
        match action {
            Action::Forward => call.forward(&input, &mut output),
            Action::Backward => call.backward(&input, &mut output),
            Action::Apply => call.apply(&input, &mut output),
        }
        .map_err(Failure::from)
    }

    fn array<T: Real>(mut array: ferrier::Array<T>) -> Array {
        let scalars = array.scalars_mut();
        let (start, bytes) = (scalars.as_mut_ptr().cast(), size_of_val(scalars));
        Array::new(start, bytes as u64, array)
    }

    fn workspace<T: Real>(plan: &Plan<T>) -> Outcome<Workspace> {
        Ok(Workspace::new(plan.make_workspace()?))
    }

    fn profile<T: Real>(plan: &Plan<T>) -> Outcome<Value> {
        json::value(&plan.profile())
    }

    fn without_workspace<T: Real>(draft: Draft<T>) -> Outcome<Plan<T>> {
        Ok(draft.build_without_workspace()?)
    }

    unsafe fn set_stream<T: Real>(_: &mut Plan<T>, _: *mut std::ffi::c_void) -> Outcome {
        on_cpus()
    }

    fn synchronize<T: Real>(_: &Plan<T>) -> Outcome {
        on_cpus()
    }
}

#[cfg(feature = "cuda")]
mod on_gpu {
    use ferrier::cuda::{Cuda, DeviceArray, Plan, RawArray};

    use super::*;

    /// An array of the caller's in the memory of a GPU.
    fn device<T: Real>(
        name: &str,
        start: *const std::ffi::c_void,
        bytes: u64,
        needed: usize,
    ) -> Outcome<RawArray<T>> {
        let start: *const T = pointer::scalars(name, start, bytes, needed)?;
        // SAFETY: so many scalars in the memory of the plan's GPU, by the caller's promise (see `crate::pointer`).
        Ok(unsafe { RawArray::new(start.addr() as u64, needed) })
    }

    impl Place for Cuda {
        fn run<T: Real>(plan: &mut Plan<T>, request: Request<'_>) -> Outcome {
            let Request { action, source, target, scale, operator, workspace } = request;
            let [from, to] = needed(plan, action, source.is_none());
            if workspace.is_some() {
                return Err(Failure::argument("workspace", "is in main memory, the plan is on a GPU"));
            }
            let operator = operator.map(Operator::typed::<T>).transpose()?;
            let mut call = plan.call().scale(scale);
            if let Some(operator) = &operator {
                call = call.operator(operator);
            }
            let Some(source) = source else {
                let mut array = device::<T>("array", target.0.address(), target.1, to)?;
                return match action {
                    Action::Forward => call.forward_in_place(&mut array),
                    Action::Backward => call.backward_in_place(&mut array),
                    Action::Apply => call.apply_in_place(&mut array),
                }
                .map_err(Failure::from);
            };
            let input = device::<T>("input", source.0.address(), source.1, from)?;
            let mut output = device::<T>("output", target.0.address(), target.1, to)?;
            match action {
                Action::Forward => call.forward(&input, &mut output),
                Action::Backward => call.backward(&input, &mut output),
                Action::Apply => call.apply(&input, &mut output),
            }
            .map_err(Failure::from)
        }

        fn array<T: Real>(array: DeviceArray<T>) -> Array {
            let bytes = array.scalars() * size_of::<T>();
            Array::new(std::ptr::without_provenance_mut(array.as_raw() as usize), bytes as u64, array)
        }

        fn workspace<T: Real>(_: &Plan<T>) -> Outcome<Workspace> {
            Err(Failure::new(Status::Unsupported, "plans on GPUs have their own workspace"))
        }

        fn profile<T: Real>(plan: &Plan<T>) -> Outcome<Value> {
            json::value(&plan.profile()?)
        }

        fn without_workspace<T: Real>(_: Draft<T, Cuda>) -> Outcome<Plan<T>> {
            Err(Failure::new(Status::Unsupported, "plans on GPUs have their own workspace"))
        }

        unsafe fn set_stream<T: Real>(plan: &mut Plan<T>, stream: *mut std::ffi::c_void) -> Outcome {
            // SAFETY: the same contract.
            Ok(unsafe { plan.set_raw_stream(stream) }?)
        }

        fn synchronize<T: Real>(plan: &Plan<T>) -> Outcome {
            Ok(plan.synchronize()?)
        }
    }
}
