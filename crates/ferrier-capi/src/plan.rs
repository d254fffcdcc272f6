//! Plans.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use ferrier::Precision;

use crate::comm::Comm;
use crate::engine::{ArrayKind, Engine, decide};
use crate::handle::{Handle, Object, locked};
use crate::layout::{ArrayEnd, IndexBox, side};
use crate::options::{Options, Settings};
use crate::pointer::{Out, one_of};
use crate::problem::{Problem, problem_of};
use crate::status::{Failure, Outcome, Status, guard};

/// An executable transform that owns its buffers: made once, run often. One thread at a time may use it.
pub struct Plan(Mutex<Box<dyn Engine>>);

impl Object for Plan {
    const NAME: &'static str = "plan";
    const TAG: usize = 8;
}

impl Plan {
    pub(crate) fn new(engine: Box<dyn Engine>) -> Plan {
        Plan(Mutex::new(engine))
    }

    pub(crate) fn lock(&self) -> Outcome<MutexGuard<'_, Box<dyn Engine>>> {
        locked(&self.0, "plan")
    }
}

/// The precision of a plan.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum PrecisionKind {
    /// float.
    F32 = 0,
    /// double.
    F64 = 1,
}

/// A precision that C names.
pub(crate) fn precision(precision: i32) -> Outcome<Precision> {
    let known = [(PrecisionKind::F32 as i32, Precision::F32), (PrecisionKind::F64 as i32, Precision::F64)];
    one_of("precision", precision, &known)
}

/// Makes a plan for a problem and a precision (a ferrier_precision), with options or NULL. Collective: every rank
/// of `comm` calls it with the same problem and options (own boxes aside).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_create(
    comm: Handle<Comm>,
    problem: Handle<Problem>,
    precision: i32,
    options: Handle<Options>,
    mut plan: Out<Handle<Plan>>,
) -> Status {
    guard(|| {
        let slot = plan.slot("plan")?;
        let (comm, problem) = (comm.get("comm")?.get(), problem_of(problem)?);
        let draft = decide(&comm, &problem, self::precision(precision)?, &Settings::of(options)?)?;
        slot.set(Handle::new(Plan::new(draft.build(true)?)));
        Ok(())
    })
}

/// Destroys a plan, also after MPI_Finalize. Arrays that it made stay valid. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_free(plan: Handle<Plan>) -> Status {
    guard(|| plan.destroy("plan"))
}

/// The box of global indices that this rank has of the input or output (a ferrier_side).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_box(plan: Handle<Plan>, side: i32, local: Out<IndexBox>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let part = plan.lock()?.boxes()[self::side(side)? as usize];
        local.set("local", part.into())
    })
}

/// The box of any rank.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_box_of(
    plan: Handle<Plan>,
    side: i32,
    rank: u64,
    part: Out<IndexBox>,
) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let plan = plan.lock()?;
        let boxes = plan.layouts()[self::side(side)? as usize].boxes();
        let found = usize::try_from(rank).ok().and_then(|rank| boxes.get(rank));
        let wrong =
            || Failure::argument("rank", format_args!("must be less than {}, got {rank}", boxes.len()));
        part.set("part", (*found.ok_or_else(wrong)?).into())
    })
}

/// The memory order of the input or output: axes[3] from the slowest to the fastest.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_order(plan: Handle<Plan>, side: i32, axes: Out<u64>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let order = plan.lock()?.layouts()[self::side(side)? as usize].order();
        axes.set_three("axes", order.axes())
    })
}

/// Whether the elements of the input or output are real numbers (1) or complex ones (0).
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_is_real(plan: Handle<Plan>, side: i32, real: Out<i32>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let plan = plan.lock()?;
        let is_real = match self::side(side)? {
            ArrayEnd::Input => plan.recipe().is_real(),
            ArrayEnd::Output => plan.recipe().has_real_output(),
        };
        real.set("real", i32::from(is_real))
    })
}

fn length(plan: Handle<Plan>, kind: ArrayKind, bytes: Out<u64>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let plan = plan.lock()?;
        bytes.set("bytes", (plan.scalars(kind) * plan.scalar_bytes()) as u64)
    })
}

/// The precision of the plan: a ferrier_precision.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_precision(plan: Handle<Plan>, precision: Out<i32>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let kind = match plan.lock()?.scalar_bytes() {
            4 => PrecisionKind::F32,
            _ => PrecisionKind::F64,
        };
        precision.set("precision", kind as i32)
    })
}

/// Bytes of the input of forward on this rank, all arrays of a batch together.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_input_bytes(plan: Handle<Plan>, bytes: Out<u64>) -> Status {
    length(plan, ArrayKind::Input, bytes)
}

/// Bytes of the output of forward on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_output_bytes(plan: Handle<Plan>, bytes: Out<u64>) -> Status {
    length(plan, ArrayKind::Output, bytes)
}

/// Bytes that an array for transforms in place has at least on this rank.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_in_place_bytes(plan: Handle<Plan>, bytes: Out<u64>) -> Status {
    length(plan, ArrayKind::InPlace, bytes)
}

/// Bytes of each array of a batch on this rank where each has memory of its own: of the inputs or outputs (a ferrier_side) of
/// forward, or (-1) of arrays for transforms in place.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_field_bytes(plan: Handle<Plan>, side: i32, bytes: Out<u64>) -> Status {
    guard(|| {
        let kind = match side {
            -1 => ArrayKind::InPlace,
            _ => match self::side(side)? {
                ArrayEnd::Input => ArrayKind::Input,
                ArrayEnd::Output => ArrayKind::Output,
            },
        };
        let plan = plan.get("plan")?;
        let plan = plan.lock()?;
        bytes.set("bytes", (plan.field_scalars(kind) * plan.scalar_bytes()) as u64)
    })
}

/// The memory that the plan takes on this rank, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_memory_bytes(plan: Handle<Plan>, bytes: Out<u64>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let total = plan.lock()?.memory().total();
        bytes.set("bytes", total as u64)
    })
}

/// What this rank sent to others in the last call, in bytes, after encoding.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_wire_bytes(plan: Handle<Plan>, bytes: Out<u64>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let sent = plan.lock()?.wire_bytes();
        bytes.set("bytes", sent)
    })
}

/// 1 while the plan looks for a faster choice (FERRIER_EFFORT_ONLINE), else 0.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_is_tuning(plan: Handle<Plan>, tuning: Out<i32>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        let is_tuning = plan.lock()?.is_tuning();
        tuning.set("tuning", i32::from(is_tuning))
    })
}

/// Makes a plan on a GPU enqueue its work on this CUDA stream (a cudaStream_t or CUstream of the plan's device), which
/// must live as long as the plan uses it.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_set_stream(plan: Handle<Plan>, stream: Out<c_void>) -> Status {
    guard(|| {
        let plan = plan.get("plan")?;
        // SAFETY: a stream of the plan's GPU that lives as long, as the header asks for.
        unsafe { plan.lock()?.set_stream(stream.address()) }
    })
}

/// Returns when all work that the plan enqueued on its GPU is complete; errors of it are returned here.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_plan_synchronize(plan: Handle<Plan>) -> Status {
    guard(|| plan.get("plan")?.lock()?.synchronize())
}
