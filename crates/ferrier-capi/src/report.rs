//! What plans tell of themselves.

use std::ffi::c_char;

use crate::handle::Handle;
use crate::json;
use crate::plan::Plan;
use crate::pointer::{In, Out};
use crate::status::{Status, guard};
use crate::text::give;

/// The substitutions that Ferrier made for this plan, one per line; empty where there are none. Free the text with
/// ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_notes(plan: Handle<Plan>, text: Out<*mut c_char>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let notes = plan.lock()?.notes().join("\n");
        give(text, "text", notes)
    })
}

/// A part of the plan as JSON, by name: "recipe" (the steps), "memory", "notes", "events" (what this rank did in the last
/// call, step by step), "profile" (times of the steps of the last call), "certificate". Free it with
/// ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_json(plan: Handle<Plan>, what: In<c_char>, text: Out<*mut c_char>) -> Status {
    guard(|| {
        let what = what.text("what")?;
        let plan = plan.get("plan")?;
        let plan = plan.lock()?;
        let value = match what {
            "recipe" => json::value(plan.recipe())?,
            "memory" => json::memory(plan.memory())?,
            "notes" => json::value(plan.notes())?,
            "events" => plan.events()?,
            "profile" => plan.profile()?,
            "certificate" => json::value(&plan.certificate())?,
            _ => return Err(json::unknown(what, "recipe, memory, notes, events, profile, certificate")),
        };
        give(text, "text", value.to_string())
    })
}
