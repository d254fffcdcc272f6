//! Drafts: plans that are decided, but have no memory yet.

use std::ffi::c_char;
use std::sync::Mutex;

use crate::comm::Comm;
use crate::engine::{DraftEngine, Engine, decide};
use crate::handle::{Handle, Object, locked};
use crate::json;
use crate::layout::MOST_RANKS;
use crate::options::{Options, Settings};
use crate::plan::{Plan, precision};
use crate::pointer::{In, Out};
use crate::problem::{Problem, problem_of};
use crate::status::{Failure, Outcome, Status, guard};
use crate::text::give;

/// A plan of which everything is decided, and nothing allocated: for its memory, notes and predictions.
pub struct Draft(Mutex<Option<Box<dyn DraftEngine>>>);

impl Object for Draft {
    const NAME: &'static str = "draft";
    const TAG: usize = 7;
}

fn using<R>(draft: Handle<Draft>, work: impl FnOnce(&dyn DraftEngine) -> Outcome<R>) -> Outcome<R> {
    let draft = draft.get("draft")?;
    let held = locked(&draft.0, "draft")?;
    let gone = || Failure::argument("draft", "is used up: a plan was built from it");
    work(&**held.as_ref().ok_or_else(gone)?)
}

/// Decides everything about a plan; the arguments are those of ferrier_plan_create. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_create(
    comm: Handle<Comm>,
    problem: Handle<Problem>,
    precision: i32,
    options: Handle<Options>,
    mut draft: Out<Handle<Draft>>,
) -> Status {
    guard(|| {
        let slot = draft.slot("draft")?;
        let (comm, problem) = (comm.get("comm")?.get(), problem_of(problem)?);
        let made = decide(&comm, &problem, self::precision(precision)?, &Settings::of(options)?)?;
        slot.set(Handle::new(Draft(Mutex::new(Some(made)))));
        Ok(())
    })
}

/// Destroys a draft. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_free(draft: Handle<Draft>) -> Status {
    guard(|| draft.destroy("draft"))
}

/// The memory that the plan will take on this rank, in bytes, exactly.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_memory_bytes(draft: Handle<Draft>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", using(draft, |draft| Ok(draft.memory().total() as u64))?))
}

/// The most memory that the plan will take on any rank, in bytes. Collective.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_largest_memory_bytes(draft: Handle<Draft>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", using(draft, |draft| draft.largest_memory())?))
}

const PARTS: &str =
    "recipe, memory, notes, prediction, wisdom, rejected, machine, speeds, messages_between_nodes";

/// The seconds that the model of the machine predicts for forward, out of place or (1) in place. FERRIER_STATUS_OTHER where
/// there is no prediction (GPUs).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_seconds(draft: Handle<Draft>, in_place: i32, seconds: Out<f64>) -> Status {
    guard(|| {
        let none = || Failure::new(Status::Other, "there is no prediction for plans on GPUs");
        let predicted = using(draft, |draft| draft.seconds(in_place != 0).ok_or_else(none))?;
        seconds.set("seconds", predicted)
    })
}

/// A part of the draft as JSON, by name: "recipe" (the steps), "memory", "notes", "prediction" (seconds of each step
/// of forward, out of place and in place), "wisdom" (the entry that was used, or null), "rejected" (recipes that were
/// predicted to be slower, with their seconds), "machine" (the model behind predictions, or null), "speeds" (measured ones
/// that were used, or null), "messages_between_nodes" (of each reshape). Free it with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_json(
    draft: Handle<Draft>,
    what: In<c_char>,
    text: Out<*mut c_char>,
) -> Status {
    guard(|| {
        let what = what.text("what")?;
        let value = using(draft, |draft| {
            Ok(match what {
                "recipe" => json::value(draft.recipe())?,
                "memory" => json::memory(draft.memory())?,
                "notes" => json::value(draft.notes())?,
                "prediction" => draft.prediction()?,
                _ => match draft.part(what)? {
                    Some(part) => part,
                    None => return Err(json::unknown(what, PARTS)),
                },
            })
        })?;
        give(text, "text", value.to_string())
    })
}

/// Makes the plan and uses the draft up; it must still be destroyed. Collective. With `workspace` 0 the plan has no
/// memory of its own for its work: every call needs a workspace then.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_draft_build(
    draft: Handle<Draft>,
    workspace: i32,
    mut plan: Out<Handle<Plan>>,
) -> Status {
    guard(|| {
        let slot = plan.slot("plan")?;
        let draft = draft.get("draft")?;
        let taken = locked(&draft.0, "draft")?.take();
        let gone = || Failure::argument("draft", "is used up: a plan was built from it");
        let built: Box<dyn Engine> = taken.ok_or_else(gone)?.build(workspace != 0)?;
        slot.set(Handle::new(Plan::new(built)));
        Ok(())
    })
}

/// The plan that `ranks` ranks on `nodes` nodes, each with `threads` threads, would make, and the times that the model
/// of the machine predicts for it, as JSON: "recipe", "memory", "notes", "prediction". Needs neither the ranks nor
/// their memory. Free it with ferrier_string_free.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_predict(
    problem: Handle<Problem>,
    precision: i32,
    options: Handle<Options>,
    ranks: u64,
    nodes: u64,
    threads: u64,
    text: Out<*mut c_char>,
) -> Status {
    guard(|| {
        let problem = problem_of(problem)?;
        let (precision, settings) = (self::precision(precision)?, Settings::of(options)?);
        if settings.gpu.is_some() {
            return Err(Failure::argument("options", "name a GPU; predictions are for plans in main memory"));
        }
        let small = |name: &str, value: u64| match usize::try_from(value) {
            Ok(number) if (1..=MOST_RANKS).contains(&value) => Ok(number),
            _ => Err(Failure::argument(name, format_args!("must be from 1 to {MOST_RANKS}, got {value}"))),
        };
        let ranks = ferrier::ranks(small("ranks", ranks)?).nodes(small("nodes", nodes)?);
        let comm = ranks.threads(small("threads", threads)?).for_planning()?;
        let draft = decide(&comm, &problem, precision, &settings)?;
        let value = serde_json::json!({
            "recipe": json::value(draft.recipe())?,
            "memory": json::memory(draft.memory())?,
            "notes": draft.notes(),
            "prediction": draft.prediction()?,
        });
        give(text, "text", value.to_string())
    })
}
