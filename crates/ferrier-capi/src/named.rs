//! Operators of Ferrier, by name.

use std::ffi::c_char;

use crate::handle::Handle;
use crate::operator::Operator;
use crate::plan::Plan;
use crate::pointer::{In, Out};
use crate::status::{Failure, Status, guard};

/// An operator of Ferrier for this plan (or for others of the same problem and precision), in main memory or on a GPU.
/// lengths[3] are those of the domain. Names, with their `count` parameters: "laplacian", "inverse_laplacian" (the mean
/// becomes 0), "helmholtz" (shift: divides by k^2 + shift), "derivative" (axis), "gaussian" (sigma), "low_pass" (largest
/// wave number), "shift" (three distances), "two_thirds" (the 2/3 rule).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_operator_named(
    plan: Handle<Plan>,
    name: In<c_char>,
    lengths: In<f64>,
    parameters: In<f64>,
    count: u64,
    mut op: Out<Handle<Operator>>,
) -> Status {
    guard(|| {
        let slot = op.slot("op")?;
        if count > 16 {
            return Err(Failure::argument("count", format_args!("must be at most 16, got {count}")));
        }
        let (lengths, parameters) = (lengths.array::<3>("lengths")?, parameters.list("parameters", count)?);
        let plan = plan.get("plan")?;
        let operator = plan.lock()?.operator(name.text("name")?, lengths, &parameters)?;
        slot.set(Handle::new(Operator::named(operator)));
        Ok(())
    })
}
