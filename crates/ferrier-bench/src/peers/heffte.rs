//! heFFTe, from `libheffte.so.2`, by its C interface, found at run time and run on the communicator of Ferrier's own
//! transform. A library that is Ferrier's drop-in replacement of it is refused.

use std::ffi::{c_int, c_void};

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::{Arena, Pages};
use super::launch::MpiLaunch;
use super::library::{open, symbol};
use super::linked_to_mpi::{OWN, RawComm, find};
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::{LocalPart, PeerProblem};
use crate::failure::{Failure, Outcome, fail};

/// Backends by their numbers, in order of preference.
const BACKENDS: [(c_int, &str); 3] = [(2, "mkl"), (1, "fftw"), (0, "stock")];
const SCALE_NONE: c_int = 0;

/// `heffte_plan_options`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PlanOptions {
    use_reorder: c_int,
    algorithm: c_int,
    use_pencils: c_int,
    use_gpu_aware: c_int,
}

type Handle = *mut c_void;
type Corner = *const c_int;
type SetOptions = unsafe extern "C" fn(c_int, *mut PlanOptions) -> c_int;
type Create = unsafe extern "C" fn(
    c_int,
    Corner,
    Corner,
    Corner,
    Corner,
    Corner,
    Corner,
    RawComm,
    *const PlanOptions,
    *mut Handle,
) -> c_int;
type CreateR2c = unsafe extern "C" fn(
    c_int,
    Corner,
    Corner,
    Corner,
    Corner,
    Corner,
    Corner,
    c_int,
    RawComm,
    *const PlanOptions,
    *mut Handle,
) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type Forward = unsafe extern "C" fn(Handle, *const c_void, *mut c_void, c_int);

/// A plan that heFFTe owns.
struct Owned {
    plan: Handle,
    forward: Forward,
    destroy: Destroy,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.destroy)(self.plan) };
    }
}

/// The lower and the upper corner of a box as heFFTe has them: the fastest axis first, the upper one inside.
fn corners(part: &LocalPart) -> [[c_int; 3]; 2] {
    [[2, 1, 0].map(|axis| part.lo[axis] as c_int), [2, 1, 0].map(|axis| part.hi[axis] as c_int - 1)]
}

/// A rank's slab of one axis, with elements of `width` scalars in C order.
fn slab(shape: [usize; 3], axis: usize, width: usize, (rank, size): (usize, usize)) -> LocalPart {
    let (mut lo, mut hi) = ([0; 3], shape);
    (lo[axis], hi[axis]) = (shape[axis] * rank / size, shape[axis] * (rank + 1) / size);
    let [_, rows, row] = [0, 1, 2].map(|axis| hi[axis] - lo[axis]);
    LocalPart { lo, hi, strides: [rows * row * width, row * width, width, 0] }
}

/// The first backend that the library was built with, and its default options.
fn backend(library: &Library) -> Outcome<(c_int, &'static str, PlanOptions)> {
    // SAFETY: the type is that of heffte_c.h; the options are valid for writes.
    unsafe {
        let set: SetOptions = symbol(library, "heffte_set_default_options")?;
        for (number, name) in BACKENDS {
            let mut options = PlanOptions::default();
            if set(number, &mut options) == 0 {
                return Ok((number, name, options));
            }
        }
    }
    fail("peer heffte: the library has no backend for the CPU")
}

/// Plans in and out of place. Collective.
pub fn make(problem: &PeerProblem, launch: &MpiLaunch<'_>) -> Outcome<Peer> {
    if problem.axes != [0, 1, 2] || problem.ndim != 3 || problem.batch != 1 {
        return fail("peer heffte: only transforms of three axes, one array at a time, can be compared");
    }
    let path = find("heffte", "libheffte.so.2", "heFFTe with its C interface", launch)?;
    let library = open(&path, false).map_err(|why| Failure::new(format!("peer heffte: {why}")))?;
    // SAFETY: only whether the symbol exists is asked for.
    if unsafe { symbol::<*const c_void>(library, OWN) }.is_ok() {
        return fail(format!(
            "peer heffte: {} is Ferrier's own drop-in library: nothing to compare with",
            path.display()
        ));
    }
    let (number, name, options) = backend(library)?;
    let place = (launch.world.rank(), launch.world.size());
    let input = slab(problem.shape, 0, problem.width(), place);
    let output = slab(problem.spectrum(), usize::from(problem.transposed), 2, place);
    if [&input, &output].iter().any(|part| (0..3).any(|axis| part.lo[axis] >= part.hi[axis])) {
        return fail("peer heffte: there are more ranks than planes");
    }
    let scalars = |part: &LocalPart, width: usize| {
        (0..3).map(|axis| part.hi[axis] - part.lo[axis]).product::<usize>() * width
    };
    let most = scalars(&input, problem.width()).max(scalars(&output, 2));
    let pages = || Pages::new(most.max(1) * problem.precision.bytes());
    let in_place = if problem.real { None } else { Some(pages()?) };
    let arena = Arena { input: pages()?, output: pages()?, in_place };
    let forward = match (problem.real, problem.precision) {
        (false, Precision::F64) => "heffte_forward_z2z",
        (false, Precision::F32) => "heffte_forward_c2c",
        (true, Precision::F64) => "heffte_forward_d2z",
        (true, Precision::F32) => "heffte_forward_s2c",
    };
    let (inward, outward) = (corners(&input), corners(&output));
    let null = std::ptr::null();
    let mut plan: Handle = std::ptr::null_mut();
    // SAFETY: the types are those of heffte_c.h; the communicator is alive, corners and options are valid for reads, the
    // plan for writes. Null orders are the default ones.
    let (created, forward, destroy) = unsafe {
        let comm = launch.world.raw();
        let [in_low, in_high] = inward.each_ref().map(|corner| corner.as_ptr());
        let [out_low, out_high] = outward.each_ref().map(|corner| corner.as_ptr());
        let created = match problem.real {
            true => {
                let create: CreateR2c = symbol(library, "heffte_plan_create_r2c")?;
                create(number, in_low, in_high, null, out_low, out_high, null, 0, comm, &options, &mut plan)
            }
            false => {
                let create: Create = symbol(library, "heffte_plan_create")?;
                create(number, in_low, in_high, null, out_low, out_high, null, comm, &options, &mut plan)
            }
        };
        (created, symbol::<Forward>(library, forward)?, symbol::<Destroy>(library, "heffte_plan_destroy")?)
    };
    if created != 0 || plan.is_null() {
        return fail(format!("peer heffte: it makes no plan for this transform (error {created})"));
    }
    let owned = std::rc::Rc::new(Owned { plan, forward, destroy });
    let plans =
        PLACEMENTS.into_iter().take(1 + usize::from(arena.in_place.is_some())).map(|(name, in_place)| {
            let (from, to) = arena.addresses(in_place);
            let owned = owned.clone();
            // SAFETY: the plan and its arrays are alive (see the order of fields of `Peer`), and `Peer::run` borrows the
            // peer exclusively. Every process runs it.
            let run = move || unsafe { (owned.forward)(owned.plan, from.cast(), to.cast(), SCALE_NONE) };
            PeerPlan { name, in_place, run: Box::new(run) }
        });
    let plans = plans.collect();
    let file = path.canonicalize().unwrap_or(path);
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    let version = format!("{}, {name}", file.trim_start_matches("libheffte.so."));
    Ok(Peer { version, plans, arena, input, output })
}
