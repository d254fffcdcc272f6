//! Calls of plans.

use std::ffi::c_void;

use crate::array::{Workspace, workspace_of};
use crate::engine::{Action, Request};
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

fn run(
    plan: Handle<Plan>,
    (action, in_place): (Action, bool),
    call: Call,
    (input, input_bytes): (&In<c_void>, u64),
    (output, output_bytes): (&mut Out<c_void>, u64),
) -> Outcome {
    if !in_place {
        apart((input, input_bytes), (output, output_bytes))?;
    }
    let operator = if call.op.is_null() { None } else { Some(call.op.get("op")?) };
    let workspace = workspace_of(call.workspace)?;
    let mut workspace = workspace.as_ref().map(|held| locked(&held.0, "workspace")).transpose()?;
    let plan = plan.get("plan")?;
    let mut plan = plan.lock()?;
    plan.run(Request {
        action,
        source: (!in_place).then_some(Source(input, input_bytes)),
        target: Target(output, output_bytes),
        scale: call.scale,
        operator: operator.as_deref(),
        workspace: workspace.as_mut().map(|held| &mut ***held),
    })
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
    guard(|| run(plan, (Action::Forward, false), DEFAULT, (&input, input_bytes), (&mut output, output_bytes)))
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
    guard(|| {
        run(plan, (Action::Backward, false), DEFAULT, (&input, input_bytes), (&mut output, output_bytes))
    })
}

/// Transforms in place: at least ferrier_plan_in_place_bytes; ferrier_plan_make_in_place tells how elements lie.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_forward_in_place(
    plan: Handle<Plan>,
    mut array: Out<c_void>,
    bytes: u64,
) -> Status {
    let none = In::null();
    guard(|| run(plan, (Action::Forward, true), DEFAULT, (&none, 0), (&mut array, bytes)))
}

/// Transforms back in place.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_backward_in_place(
    plan: Handle<Plan>,
    mut array: Out<c_void>,
    bytes: u64,
) -> Status {
    let none = In::null();
    guard(|| run(plan, (Action::Backward, true), DEFAULT, (&none, 0), (&mut array, bytes)))
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
        let kind = one_of("action", action, &KINDS)?;
        let call = call.sized("call", DEFAULT)?;
        run(plan, kind, call, (&input, input_bytes), (&mut output, output_bytes))
    })
}
