//! Plans on GPUs.

use ferrier::cuda::{Cuda, DeviceArray, Plan, RawArray};
use ferrier::{Draft, Real};
use serde_json::Value;

use crate::array::{Array, Memory, Workspace};
use crate::engine::{ArrayKind, Arrays, Engine, Place, Request, apart, ends, in_place};
use crate::operator::Operator;
use crate::status::{Failure, Outcome, Status};
use crate::{json, pointer};

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
        let [from, to] = ends(action).map(|kind| plan.scalars(kind));
        let whole = plan.scalars(ArrayKind::InPlace);
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
                let input = device::<T>("input", source.0.address(), source.1, from)?;
                apart(call, action, &input, &mut device::<T>("output", target.0.address(), target.1, to)?)
            }
            Arrays::InPlace(target) => {
                in_place(call, action, &mut device::<T>("array", target.0.address(), target.1, whole)?)
            }
            Arrays::FieldsApart(..) | Arrays::FieldsInPlace(_) => Err(Failure::new(
                Status::Unsupported,
                "plans on GPUs take the arrays of a batch in one piece of memory",
            )),
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
