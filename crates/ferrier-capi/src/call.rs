//! Calls of plans.

use std::ffi::c_void;

use crate::array::{Workspace, workspace_of};
use crate::engine::{Action, Arrays, Request};
use crate::handle::{Handle, locked};
use crate::operator::Operator;
use crate::plan::Plan;
use crate::pointer::{In, Out, Plain, Source, Target, apart, one_of};
use crate::status::{Outcome, Status, guard};

/// What a call of ferrier_plan_execute does.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum CallKind {
    /// From input to output.
    Forward = 0,
    /// From output to input.
    Backward = 1,
    /// Forward, the operator, backward: from an input to an input. The spectrum is never stored.
    Apply = 2,
    /// Forward in place.
    ForwardInPlace = 3,
    /// Backward in place.
    BackwardInPlace = 4,
    /// Apply in place.
    ApplyInPlace = 5,
}

const KINDS: [(i32, (Action, bool)); 6] = [
    (CallKind::Forward as i32, (Action::Forward, false)),
    (CallKind::Backward as i32, (Action::Backward, false)),
    (CallKind::Apply as i32, (Action::Apply, false)),
    (CallKind::ForwardInPlace as i32, (Action::Forward, true)),
    (CallKind::BackwardInPlace as i32, (Action::Backward, true)),
    (CallKind::ApplyInPlace as i32, (Action::Apply, true)),
];

/// What a call has besides its arrays. Set it to FERRIER_CALL_DEFAULT first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Call {
    /// sizeof(ferrier_call) of the program.
    pub size: u64,
    /// A factor besides that of the problem; the same on every rank.
    pub scale: f64,
    /// Each mode goes through this operator: after forward, before backward, between the two for apply. NULL: none.
    pub op: Handle<Operator>,
    /// Used instead of the plan's own workspace. NULL: the plan's own.
    pub workspace: Handle<Workspace>,
}

// SAFETY: numbers and handles (any bits are one) without padding.
unsafe impl Plain for Call {}

const DEFAULT: Call =
    Call { size: size_of::<Call>() as u64, scale: 1.0, op: Handle::NULL, workspace: Handle::NULL };

fn run(plan: Handle<Plan>, action: Action, call: Call, arrays: Arrays<'_>) -> Outcome {
    let operator = if call.op.is_null() { None } else { Some(call.op.get("op")?) };
    let workspace = workspace_of(call.workspace)?;
    let mut workspace = workspace.as_ref().map(|held| locked(&held.0, "workspace")).transpose()?;
    let plan = plan.get("plan")?;
    let mut plan = plan.lock()?;
    plan.run(Request {
        action,
        arrays,
        scale: call.scale,
        operator: operator.as_deref(),
        workspace: workspace.as_mut().map(|held| &mut ***held),
    })
}

/// The arrays of a call out of place.
fn two<'a>(
    (input, input_bytes): (&'a In<c_void>, u64),
    (output, output_bytes): (&'a mut Out<c_void>, u64),
) -> Outcome<Arrays<'a>> {
    apart((input, input_bytes), (output, output_bytes))?;
    Ok(Arrays::Apart(Source(input, input_bytes), Target(output, output_bytes)))
}

/// Transforms the input to the output; the input is unchanged. Lengths are in bytes, at least those of
/// ferrier_plan_input_bytes and ferrier_plan_output_bytes. Any memory will do; that of ferrier_plan_make_input and its
/// relatives is the fastest. On a GPU the work is enqueued on the plan's stream. Collective; allocates nothing.
///
/// A rank whose call fails because of its own arguments returns at once, and the other ranks wait for it: end the
/// program then.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_forward(
    plan: Handle<Plan>,
    input: In<c_void>,
    input_bytes: u64,
    mut output: Out<c_void>,
    output_bytes: u64,
) -> Status {
    guard(|| run(plan, Action::Forward, DEFAULT, two((&input, input_bytes), (&mut output, output_bytes))?))
}

/// Transforms an input that is laid out as the output of forward back, to an output that is laid out as the input of
/// forward; else as ferrier_plan_forward.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_backward(
    plan: Handle<Plan>,
    input: In<c_void>,
    input_bytes: u64,
    mut output: Out<c_void>,
    output_bytes: u64,
) -> Status {
    guard(|| run(plan, Action::Backward, DEFAULT, two((&input, input_bytes), (&mut output, output_bytes))?))
}

/// Transforms in place: at least ferrier_plan_in_place_bytes; ferrier_plan_make_in_place tells how elements lie.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_forward_in_place(
    plan: Handle<Plan>,
    mut array: Out<c_void>,
    bytes: u64,
) -> Status {
    guard(|| run(plan, Action::Forward, DEFAULT, Arrays::InPlace(Target(&mut array, bytes))))
}

/// Transforms back in place.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_backward_in_place(
    plan: Handle<Plan>,
    mut array: Out<c_void>,
    bytes: u64,
) -> Status {
    guard(|| run(plan, Action::Backward, DEFAULT, Arrays::InPlace(Target(&mut array, bytes))))
}

/// A call of any kind (`action`, a ferrier_action), with a scale, an operator or a workspace (`call`; NULL for none). In place
/// the input is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_execute(
    plan: Handle<Plan>,
    action: i32,
    call: In<Call>,
    input: In<c_void>,
    input_bytes: u64,
    mut output: Out<c_void>,
    output_bytes: u64,
) -> Status {
    guard(|| {
        let (action, in_place) = one_of("action", action, &KINDS)?;
        let arrays = match in_place {
            true => Arrays::InPlace(Target(&mut output, output_bytes)),
            false => two((&input, input_bytes), (&mut output, output_bytes))?,
        };
        run(plan, action, call.sized("call", DEFAULT)?, arrays)
    })
}

/// ferrier_plan_execute for the arrays of a batch that were allocated one by one: `count` of them, the batch of the plan, with
/// the messages of a batch. inputs[count] and outputs[count] are their addresses; each has at least the bytes of
/// ferrier_plan_field_bytes. In place the inputs are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_execute_fields(
    plan: Handle<Plan>,
    action: i32,
    call: In<Call>,
    count: u64,
    inputs: In<*const c_void>,
    input_bytes: u64,
    outputs: In<*mut c_void>,
    output_bytes: u64,
) -> Status {
    guard(|| {
        let (action, in_place) = one_of("action", action, &KINDS)?;
        let call = call.sized("call", DEFAULT)?;
        let mut outputs = outputs.places("outputs", count, output_bytes)?;
        if in_place {
            let targets = outputs.iter_mut().map(|output| Target(output, output_bytes)).collect();
            return run(plan, action, call, Arrays::FieldsInPlace(targets));
        }
        let inputs = inputs.sources("inputs", count)?;
        for input in &inputs {
            outputs.iter().try_for_each(|output| apart((input, input_bytes), (output, output_bytes)))?;
        }
        let sources = inputs.iter().map(|input| Source(input, input_bytes)).collect();
        let targets = outputs.iter_mut().map(|output| Target(output, output_bytes)).collect();
        run(plan, action, call, Arrays::FieldsApart(sources, targets))
    })
}
