//! Plans and drafts of both precisions and all devices behind one interface.

use std::any::Any;

use ferrier::{
    ArrayOf, Box3, Call, Certificate, Cpu, DataMut, Draft, Fields, FieldsMut, Input, Layout, Memory, Output,
    Plan, Precision, Real, Recipe, Scalars, Target,
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

/// The arrays of a call.
pub(crate) enum Arrays<'a> {
    Apart(pointer::Source<'a>, pointer::Target<'a>),
    InPlace(pointer::Target<'a>),
    /// Those of a batch, each with memory of its own.
    FieldsApart(Vec<pointer::Source<'a>>, Vec<pointer::Target<'a>>),
    FieldsInPlace(Vec<pointer::Target<'a>>),
}

/// A call of a plan.
pub(crate) struct Request<'a> {
    pub action: Action,
    pub arrays: Arrays<'a>,
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
        (Some(_), _) => Err(crate::options::without_cuda()),
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
    /// Scalars of each array of a batch, where each has memory of its own.
    fn field_scalars(&self, kind: ArrayKind) -> usize;
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
        match kind {
            ArrayKind::Input => self.input_len() * width(self.recipe().is_real()),
            ArrayKind::Output => self.output_len() * width(self.recipe().has_real_output()),
            ArrayKind::InPlace => self.in_place_scalars(),
        }
    }
    fn field_scalars(&self, kind: ArrayKind) -> usize {
        let [input, output] = self.field_lens();
        match kind {
            ArrayKind::Input => input * width(self.recipe().is_real()),
            ArrayKind::Output => output * width(self.recipe().has_real_output()),
            ArrayKind::InPlace => self.field_scalars_in_place(),
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
    fn seconds(&self, in_place: bool) -> Option<f64>;
    /// A part that only some ask for, by name.
    fn part(&self, what: &str) -> Outcome<Option<Value>>;
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
    fn seconds(&self, in_place: bool) -> Option<f64> {
        self.prediction(in_place).map(|prediction| prediction.seconds())
    }
    fn part(&self, what: &str) -> Outcome<Option<Value>> {
        Ok(Some(match what {
            "wisdom" => json::value(&self.wisdom())?,
            "rejected" => json::value(self.rejected())?,
            "machine" => json::value(&self.machine())?,
            "speeds" => json::value(&self.speeds())?,
            "messages_between_nodes" => json::value(&self.messages_between_nodes())?,
            _ => return Ok(None),
        }))
    }
    fn build(self: Box<Self>, workspace: bool) -> Outcome<Box<dyn Engine>> {
        Ok(Box::new(if workspace { Draft::build(*self)? } else { B::without_workspace(*self)? }))
    }
}

/// A call of a batch has as many arrays as the batch. Found by the plan too, but then the other ranks' calls fail.
pub(crate) fn check_fields(name: &str, fields: usize, batch: usize) -> Outcome {
    match fields == batch {
        true => Ok(()),
        false => Err(Failure::new(
            Status::Array,
            format!("the {name} must be {batch} arrays, the batch of the plan, got {fields}"),
        )),
    }
}

/// The arrays of a batch that a call writes to.
fn given_fields<'a, T: Real>(
    name: &str,
    targets: &'a mut [pointer::Target<'_>],
    (batch, scalars): (usize, usize),
) -> Outcome<Vec<Scalars<&'a mut [T]>>> {
    check_fields(name, targets.len(), batch)?;
    targets.iter_mut().map(|target| target.scalars::<T>(name, scalars).map(Scalars)).collect()
}

/// Scalars of an element.
fn width(real: bool) -> usize {
    if real { 1 } else { 2 }
}

/// The arrays that a call out of place reads and writes.
pub(crate) fn ends(action: Action) -> [ArrayKind; 2] {
    match action {
        Action::Forward => [ArrayKind::Input, ArrayKind::Output],
        Action::Backward => [ArrayKind::Output, ArrayKind::Input],
        Action::Apply => [ArrayKind::Input; 2],
    }
}

/// Runs a call from one array to another.
pub(crate) fn apart<T: Real, B: Place, I, O>(
    call: Call<'_, T, B>,
    action: Action,
    input: &I,
    output: &mut O,
) -> Outcome
where
    I: Input<T, B>,
    O: Output<T, B>,
{
    match action {
        Action::Forward => call.forward(input, output),
        Action::Backward => call.backward(input, output),
        Action::Apply => call.apply(input, output),
    }
    .map_err(Failure::from)
}

/// Runs a call in place.
pub(crate) fn in_place<T: Real, B: Place, A>(call: Call<'_, T, B>, action: Action, array: &mut A) -> Outcome
where
    A: Output<T, B>,
{
    match action {
        Action::Forward => call.forward_in_place(array),
        Action::Backward => call.backward_in_place(array),
        Action::Apply => call.apply_in_place(array),
    }
    .map_err(Failure::from)
}

fn on_cpus<T>() -> Outcome<T> {
    Err(without_streams("plan"))
}

/// An object in main memory that was asked for its stream.
pub(crate) fn without_streams(name: &str) -> Failure {
    Failure::argument(name, "is not on a GPU, and has no stream")
}

impl Place for Cpu {
    fn run<T: Real>(plan: &mut Plan<T>, request: Request<'_>) -> Outcome {
        let Request { action, arrays, scale, operator, workspace } = request;
        let [from, to] = ends(action).map(|kind| (plan.scalars(kind), plan.field_scalars(kind)));
        let (whole, each) = (plan.scalars(ArrayKind::InPlace), plan.field_scalars(ArrayKind::InPlace));
        let batch = plan.recipe().batch;
        let operator = operator.map(Operator::typed::<T>).transpose()?;
        let mut call = plan.call().scale(scale);
        if let Some(operator) = &operator {
            call = call.operator(operator);
        }
        if let Some(workspace) = workspace {
            let other = || Failure::argument("workspace", "was made for a plan of the other precision");
            call = call.workspace(workspace.downcast_mut::<ferrier::Workspace<T>>().ok_or_else(other)?);
        }
        match arrays {
            Arrays::Apart(source, mut target) => {
                let input = Scalars(source.scalars::<T>("input", from.0)?);
                apart(call, action, &input, &mut Scalars(target.scalars::<T>("output", to.0)?))
            }
            Arrays::InPlace(mut target) => {
                in_place(call, action, &mut Scalars(target.scalars::<T>("array", whole)?))
            }
            Arrays::FieldsApart(sources, mut targets) => {
                let inputs = sources.iter().map(|source| source.scalars::<T>("input", from.1).map(Scalars));
                let inputs: Vec<Scalars<&[T]>> = inputs.collect::<Outcome<_>>()?;
                let inputs: Vec<&Scalars<&[T]>> = inputs.iter().collect();
                let mut outputs = given_fields("output", &mut targets, (batch, to.1))?;
                let mut outputs: Vec<&mut Scalars<&mut [T]>> = outputs.iter_mut().collect();
                apart(call, action, &Fields(&inputs), &mut FieldsMut(&mut outputs))
            }
            Arrays::FieldsInPlace(mut targets) => {
                let mut fields = given_fields("array", &mut targets, (batch, each))?;
                let mut fields: Vec<&mut Scalars<&mut [T]>> = fields.iter_mut().collect();
                in_place(call, action, &mut FieldsMut(&mut fields))
            }
        }
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
