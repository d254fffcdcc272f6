//! Plans on GPUs.

use ferrier::cuda::{Cuda, DeviceArray, Plan, RawArray};
use ferrier::{Draft, Fields, FieldsMut, Real};
use serde_json::Value;

use crate::array::{Array, Memory, Workspace};
use crate::engine::{ArrayKind, Arrays, Engine, Place, Request, apart, check_fields, ends, in_place};
use crate::operator::Operator;
use crate::status::{Failure, Outcome, Status};
use crate::{json, pointer};

/// An array of the caller's in the memory of a GPU.
pub(crate) fn device<T>(
    name: &str,
    start: *const std::ffi::c_void,
    bytes: u64,
    needed: usize,
) -> Outcome<RawArray<T>> {
    let start: *const T = pointer::scalars(name, start, bytes, needed)?;
    // SAFETY: so many scalars in the memory of the plan's GPU, by the caller's promise (see `crate::pointer`).
    Ok(unsafe { RawArray::new(start.addr() as u64, needed) })
}

/// The arrays of a batch that a call writes to.
fn device_fields<T>(
    name: &str,
    targets: &[pointer::Target<'_>],
    (batch, scalars): (usize, usize),
) -> Outcome<Vec<RawArray<T>>> {
    check_fields(name, targets.len(), batch)?;
    targets.iter().map(|target| device(name, target.0.address(), target.1, scalars)).collect()
}

impl<T: Real> Memory for DeviceArray<T> {
    fn upload(&mut self, from: pointer::Source<'_>) -> Outcome {
        let scalars = self.scalars();
        Ok(DeviceArray::upload(self, from.scalars::<T>("data", scalars)?)?)
    }
    fn download(&self, mut to: pointer::Target<'_>) -> Outcome {
        let scalars = self.scalars();
        Ok(DeviceArray::download(self, to.scalars::<T>("data", scalars)?)?)
    }
}

impl Place for Cuda {
    fn run<T: Real>(plan: &mut Plan<T>, request: Request<'_>) -> Outcome {
        let Request { action, arrays, scale, operator, workspace } = request;
        let [from, to] = ends(action).map(|kind| (plan.scalars(kind), plan.field_scalars(kind)));
        let (whole, each) = (plan.scalars(ArrayKind::InPlace), plan.field_scalars(ArrayKind::InPlace));
        let batch = plan.recipe().batch;
        if workspace.is_some() {
            return Err(Failure::argument("workspace", "is in main memory, the plan is on a GPU"));
        }
        let operator = operator.map(Operator::typed::<T>).transpose()?;
        let mut call = plan.call().scale(scale);
        if let Some(operator) = &operator {
            call = call.operator(operator);
        }
        match arrays {
            Arrays::Apart(source, target) => {
                let input = device::<T>("input", source.0.address(), source.1, from.0)?;
                apart(call, action, &input, &mut device::<T>("output", target.0.address(), target.1, to.0)?)
            }
            Arrays::InPlace(target) => {
                in_place(call, action, &mut device::<T>("array", target.0.address(), target.1, whole)?)
            }
            Arrays::FieldsApart(sources, targets) => {
                let inputs = sources.iter().map(|one| device("input", one.0.address(), one.1, from.1));
                let inputs: Vec<RawArray<T>> = inputs.collect::<Outcome<_>>()?;
                let inputs: Vec<&RawArray<T>> = inputs.iter().collect();
                let mut outputs = device_fields::<T>("output", &targets, (batch, to.1))?;
                let mut outputs: Vec<&mut RawArray<T>> = outputs.iter_mut().collect();
                apart(call, action, &Fields(&inputs), &mut FieldsMut(&mut outputs))
            }
            Arrays::FieldsInPlace(targets) => {
                let mut fields = device_fields::<T>("array", &targets, (batch, each))?;
                let mut fields: Vec<&mut RawArray<T>> = fields.iter_mut().collect();
                in_place(call, action, &mut FieldsMut(&mut fields))
            }
        }
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
