//! The functions of `heffte_c.h`.

use std::ffi::{c_int, c_void};

use crate::abi::{Description, guarded, keep};
use crate::choice::Options;
use crate::engine::Request;
use crate::geometry::{HeffteBox, Outcome};
use crate::transform::{Transform, Variant, symbol};

/// `heffte_plan_options`. Callers may have a shorter one: the last field is read for GPUs only.
#[repr(C)]
pub struct PlanOptions {
    /// 1: lines are made contiguous.
    pub use_reorder: c_int,
    /// A `Heffte_RESHAPE_ALGORITHM_*`.
    pub algorithm: c_int,
    /// 1: pencils, 0: slabs.
    pub use_pencils: c_int,
    /// 1: MPI takes addresses of a GPU.
    pub use_gpu_aware: c_int,
}

/// `heffte_fft_plan`.
#[repr(C)]
pub struct FftPlan {
    /// A `Heffte_BACKEND_*`.
    pub backend_type: c_int,
    /// 1: made by `heffte_plan_create_r2c`.
    pub using_r2c: c_int,
    /// The transform.
    pub fft: *mut c_void,
}

const INVALID_BACKEND: c_int = 1;
const FAILED: c_int = 2;
const INVALID_PLAN: c_int = 3;
const CUFFT: c_int = 10;

/// stock, fftw, mkl and cufft.
fn is_backend(backend: c_int) -> bool {
    matches!(backend, 0..=2 | CUFFT)
}

fn device(backend: c_int) -> i32 {
    if backend != CUFFT {
        return -1;
    }
    let Some(address) = symbol(c"cudaGetDevice") else { return 0 };
    let mut device: c_int = 0;
    // SAFETY: the function of this name of CUDA's runtime writes an int.
    unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(address)(&mut device);
    }
    device
}

/// # Safety
/// Three numbers each, or no order.
unsafe fn box_of(low: *const c_int, high: *const c_int, order: *const c_int) -> HeffteBox {
    // SAFETY: the contract of this function.
    let three = |numbers: *const c_int| unsafe { *numbers.cast::<[c_int; 3]>() };
    let order = if order.is_null() { [0, 1, 2] } else { three(order) };
    HeffteBox { low: three(low).map(i64::from), high: three(high).map(i64::from), order }
}

/// # Safety
/// Options of `heffte_c.h`, or none.
unsafe fn options(backend: c_int, options: *const PlanOptions) -> Options {
    let defaults = Options { algorithm: 0, reorder: 1, pencils: 1, gpu_aware: 1, subranks: -1 };
    if options.is_null() {
        return defaults;
    }
    // SAFETY: the contract of this function; only the fields that are there.
    unsafe {
        Options {
            algorithm: (&raw const (*options).algorithm).read(),
            reorder: (&raw const (*options).use_reorder).read(),
            pencils: (&raw const (*options).use_pencils).read(),
            gpu_aware: if backend == CUFFT { (&raw const (*options).use_gpu_aware).read() } else { 1 },
            ..defaults
        }
    }
}

/// # Safety
/// The arguments are those of `heffte_plan_create`.
unsafe fn create(
    backend: c_int,
    boxes: [HeffteBox; 2],
    halved: Option<c_int>,
    comm: usize,
    options: Options,
    plan: *mut *mut FftPlan,
) -> c_int {
    if !is_backend(backend) {
        return INVALID_BACKEND;
    }
    let description = Description {
        size: size_of::<Description>() as u64,
        inbox: boxes[0],
        outbox: boxes[1],
        kind: i32::from(halved.is_some()),
        halved: halved.unwrap_or(-1),
        dimensions: 7,
        options,
        device: device(backend),
        alone: 0,
    };
    // SAFETY: a communicator of the MPI of the process, by the contract of this function.
    let comm =
        || unsafe { ferrier::mpi::from_handle(comm, std::ptr::null()) }.map_err(|error| error.to_string());
    match guarded(|| description.make(comm)) {
        Ok(transform) => {
            let fft = Box::into_raw(Box::new(transform)).cast();
            let made = FftPlan { backend_type: backend, using_r2c: c_int::from(halved.is_some()), fft };
            // SAFETY: the contract of this function.
            unsafe { plan.write(Box::into_raw(Box::new(made))) };
            0
        }
        Err(text) => {
            eprintln!("heffte_plan_create of Ferrier: {text}");
            keep(&text);
            FAILED
        }
    }
}

/// The options of a backend.
///
/// # Safety
/// The options can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_set_default_options(backend: c_int, options: *mut PlanOptions) -> c_int {
    if !is_backend(backend) {
        return INVALID_BACKEND;
    }
    let defaults = PlanOptions {
        use_reorder: 1,
        algorithm: 0,
        use_pencils: 1,
        use_gpu_aware: c_int::from(backend == CUFFT),
    };
    // SAFETY: the contract of this function.
    unsafe { options.write(defaults) };
    0
}

/// Makes a plan for complex transforms. Collective.
///
/// # Safety
/// Boxes of three numbers, an order or NULL, a communicator of the MPI of the process, options or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_create(
    backend: c_int,
    inbox_low: *const c_int,
    inbox_high: *const c_int,
    inbox_order: *const c_int,
    outbox_low: *const c_int,
    outbox_high: *const c_int,
    outbox_order: *const c_int,
    comm: usize,
    options: *const PlanOptions,
    plan: *mut *mut FftPlan,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe {
        let boxes =
            [box_of(inbox_low, inbox_high, inbox_order), box_of(outbox_low, outbox_high, outbox_order)];
        create(backend, boxes, None, comm, self::options(backend, options), plan)
    }
}

/// Makes a plan for real transforms. Collective.
///
/// # Safety
/// As [`heffte_plan_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_create_r2c(
    backend: c_int,
    inbox_low: *const c_int,
    inbox_high: *const c_int,
    inbox_order: *const c_int,
    outbox_low: *const c_int,
    outbox_high: *const c_int,
    outbox_order: *const c_int,
    r2c_direction: c_int,
    comm: usize,
    options: *const PlanOptions,
    plan: *mut *mut FftPlan,
) -> c_int {
    // SAFETY: the contract of this function.
    unsafe {
        let boxes =
            [box_of(inbox_low, inbox_high, inbox_order), box_of(outbox_low, outbox_high, outbox_order)];
        create(backend, boxes, Some(r2c_direction), comm, self::options(backend, options), plan)
    }
}

/// Destroys a plan.
///
/// # Safety
/// The plan is alive, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_plan_destroy(plan: *mut FftPlan) -> c_int {
    if plan.is_null() {
        return INVALID_PLAN;
    }
    // SAFETY: the contract of this function.
    let plan = unsafe { Box::from_raw(plan) };
    // SAFETY: made by `create`.
    unsafe { crate::abi::ferrier_heffte_free(plan.fft.cast()) };
    0
}

/// # Safety
/// The plan is alive.
unsafe fn transform<'a>(plan: *const FftPlan) -> &'a Transform {
    // SAFETY: the contract of this function.
    unsafe { &*(*plan).fft.cast::<Transform>() }
}

fn whole(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

/// Elements of the inbox.
///
/// # Safety
/// The plan is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_inbox(plan: *const FftPlan) -> c_int {
    // SAFETY: the contract of this function.
    whole(unsafe { transform(plan) }.sizes()[0])
}

/// Elements of the outbox.
///
/// # Safety
/// The plan is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_outbox(plan: *const FftPlan) -> c_int {
    // SAFETY: the contract of this function.
    whole(unsafe { transform(plan) }.sizes()[1])
}

/// Elements of the workspace that buffered calls take. Plans have their own, so it is not looked at; the number is that of
/// heFFTe for slabs, which programs compare with.
///
/// # Safety
/// The plan is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_size_workspace(plan: *const FftPlan) -> c_int {
    // SAFETY: the contract of this function.
    let [inbox, outbox] = unsafe { transform(plan) }.sizes();
    whole(2 * inbox.max(outbox) + (inbox + outbox) / 2)
}

/// The backend of a plan.
///
/// # Safety
/// The plan is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_get_backend(plan: *const FftPlan) -> c_int {
    // SAFETY: the contract of this function.
    unsafe { (*plan).backend_type }
}

/// 1 for plans of real transforms, else 0.
///
/// # Safety
/// The plan is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heffte_is_r2c(plan: *const FftPlan) -> c_int {
    // SAFETY: the contract of this function.
    c_int::from(unsafe { (*plan).using_r2c } != 0)
}

/// What the name of a call says.
struct Named {
    backward: bool,
    double: bool,
    real: bool,
}

fn named(name: &str) -> Named {
    let kind = name.rsplit('_').find(|part| part.len() == 3).unwrap_or_default();
    Named { backward: name.contains("backward"), double: kind.contains('z'), real: kind.contains(['s', 'd']) }
}

/// # Safety
/// The plan is alive, and the arrays are as long as its boxes.
unsafe fn run(name: &str, plan: *const FftPlan, input: *const c_void, output: *mut c_void, scale: c_int) {
    // SAFETY: the contract of this function.
    let (transform, halved) = unsafe { (transform(plan), (*plan).using_r2c != 0) };
    let Named { backward, double, real } = named(name);
    let points: f64 = transform.world().iter().map(|length| *length as f64).product();
    let scale = match scale {
        1 => points.recip(),
        2 => points.recip().sqrt(),
        _ => 1.0,
    };
    let variant = Variant { double, real: real && !halved, batch: 1 };
    let request = Request { backward, input, output, scale, stream: std::ptr::null_mut() };
    let done: Outcome<()> = guarded(|| match halved && !real {
        true => Err("the plan is one for real transforms".into()),
        // SAFETY: the contract of this function.
        false => unsafe { transform.run(variant, &request) },
    });
    if let Err(text) = done {
        // heFFTe's library ends the program too: the function returns nothing.
        eprintln!("{name} of Ferrier: {text}");
        std::process::abort();
    }
}

/// Calls of plans; `$buffered` takes a workspace, which is not needed.
macro_rules! calls {
    ($($plain:ident, $buffered:ident: $input:ty => $output:ty;)*) => {$(
        /// A call of a plan; the name has the direction and the types of elements. Collective.
        ///
        /// # Safety
        /// The plan is alive, and the arrays are as long as its boxes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $plain(plan: *const FftPlan, input: *const $input, output: *mut $output, scale: c_int) {
            // SAFETY: the contract of this function.
            unsafe { run(stringify!($plain), plan, input.cast(), output.cast(), scale) }
        }

        /// The same with a workspace, which is not looked at.
        ///
        /// # Safety
        /// The plan is alive, and the arrays are as long as its boxes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $buffered(
            plan: *const FftPlan, input: *const $input, output: *mut $output, _workspace: *mut c_void, scale: c_int,
        ) {
            // SAFETY: the contract of this function.
            unsafe { run(stringify!($plain), plan, input.cast(), output.cast(), scale) }
        }
    )*};
}

calls! {
    heffte_forward_s2c, heffte_forward_s2c_buffered: f32 => c_void;
    heffte_forward_c2c, heffte_forward_c2c_buffered: c_void => c_void;
    heffte_forward_d2z, heffte_forward_d2z_buffered: f64 => c_void;
    heffte_forward_z2z, heffte_forward_z2z_buffered: c_void => c_void;
    heffte_backward_c2s, heffte_backward_c2s_buffered: c_void => f32;
    heffte_backward_c2c, heffte_backward_c2c_buffered: c_void => c_void;
    heffte_backward_z2d, heffte_backward_z2d_buffered: c_void => f64;
    heffte_backward_z2z, heffte_backward_z2z_buffered: c_void => c_void;
}
