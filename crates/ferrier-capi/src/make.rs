//! Arrays and workspaces that plans make.

use crate::array::{Array, Workspace};
use crate::engine::ArrayKind;
use crate::handle::Handle;
use crate::plan::Plan;
use crate::pointer::Out;
use crate::status::{Status, guard};

fn make(plan: Handle<Plan>, kind: ArrayKind, mut array: Out<Handle<Array>>) -> Status {
    guard(|| {
        let slot = array.slot("array")?;
        let plan = plan.get("plan")?;
        let made = plan.lock()?.make_array(kind)?;
        slot.set(Handle::new(made));
        Ok(())
    })
}

/// An array for the input of forward. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_make_input(plan: Handle<Plan>, array: Out<Handle<Array>>) -> Status {
    make(plan, ArrayKind::Input, array)
}

/// An array for the output of forward. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_make_output(plan: Handle<Plan>, array: Out<Handle<Array>>) -> Status {
    make(plan, ArrayKind::Output, array)
}

/// An array for transforms in place: as long as the longer of input and output. In a real transform whose halved axis is
/// the fastest in memory and whole on each rank, real rows of n are padded to 2 (n/2 + 1) numbers; otherwise real
/// elements lie densely at its start. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_make_in_place(plan: Handle<Plan>, array: Out<Handle<Array>>) -> Status {
    make(plan, ArrayKind::InPlace, array)
}

/// A workspace for ferrier_plan_execute: for this plan and those that need no more. Collective; main memory only.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_make_workspace(
    plan: Handle<Plan>,
    mut workspace: Out<Handle<Workspace>>,
) -> Status {
    guard(|| {
        let slot = workspace.slot("workspace")?;
        let plan = plan.get("plan")?;
        let made = plan.lock()?.make_workspace()?;
        slot.set(Handle::new(made));
        Ok(())
    })
}
