//! FFTW 3, found by the system's loader at run time. It is GPL: nothing of it
//! is linked, and nothing of it is in this file but the names of its functions.

use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};
use std::sync::Arc;

use ferrier::Precision;

use super::library::{open_first, symbol};
use super::{Arena, Peer, Task, Variant};
use crate::failure::{Failure, Outcome};

const MEASURE: c_uint = 0;
const PATIENT: c_uint = 1 << 5;
const FORWARD: c_int = -1;
/// Seconds that FFTW may take to plan one variant.
const TIME_LIMIT: c_double = 60.0;

/// `fftw_iodim64`: a length and its strides, in elements.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dim {
    n: isize,
    stride_in: isize,
    stride_out: isize,
}

type Plan = *mut c_void;
type PlanC2c = unsafe extern "C" fn(
    c_int,
    *const Dim,
    c_int,
    *const Dim,
    *mut c_void,
    *mut c_void,
    c_int,
    c_uint,
) -> Plan;
type PlanR2c =
    unsafe extern "C" fn(c_int, *const Dim, c_int, *const Dim, *mut c_void, *mut c_void, c_uint) -> Plan;

/// The functions that are used.
struct Fftw {
    plan_c2c: PlanC2c,
    plan_r2c: PlanR2c,
    execute: unsafe extern "C" fn(Plan),
    destroy: unsafe extern "C" fn(Plan),
    set_time_limit: unsafe extern "C" fn(c_double),
    plan_with_threads: unsafe extern "C" fn(c_int),
    version: String,
}

impl Fftw {
    fn load(precision: Precision) -> Outcome<Arc<Fftw>> {
        let letter = if precision == Precision::F32 { "f" } else { "" };
        let names = |part: &str| {
            let stem = format!("libfftw3{letter}{part}");
            if cfg!(target_os = "macos") {
                vec![format!("{stem}.3.dylib"), format!("/opt/homebrew/lib/{stem}.3.dylib")]
            } else {
                vec![format!("{stem}.so.3"), format!("{stem}.so")]
            }
        };
        let missing =
            |why: String| Failure::new(format!("peer fftw was not found (Debian: libfftw3-dev): {why}"));
        let core = open_first(&names("")).map_err(missing)?;
        // Its own threads sleep between calls; OpenMP's spin and would disturb the next one timed.
        let threads = open_first(&[names("_threads"), names("_omp")].concat()).map_err(missing)?;
        let name = |function: &str| format!("fftw{letter}_{function}");
        // SAFETY: the types are those of fftw3.h.
        unsafe {
            let init: unsafe extern "C" fn() -> c_int = symbol(threads, &name("init_threads"))?;
            if init() == 0 {
                return Err(Failure::new("peer fftw: its threads could not be started"));
            }
            let version: *const c_char = symbol(core, &name("version"))?;
            Ok(Arc::new(Fftw {
                plan_c2c: symbol(core, &name("plan_guru64_dft"))?,
                plan_r2c: symbol(core, &name("plan_guru64_dft_r2c"))?,
                execute: symbol(core, &name("execute"))?,
                destroy: symbol(core, &name("destroy_plan"))?,
                set_time_limit: symbol(core, &name("set_timelimit"))?,
                plan_with_threads: symbol(threads, &name("plan_with_nthreads"))?,
                version: CStr::from_ptr(version).to_string_lossy().trim_start_matches("fftw-").into(),
            }))
        }
    }

    fn plan(self: &Arc<Self>, task: &Task, arena: &Arena, in_place: bool, flags: c_uint) -> Option<Owned> {
        let (from, to) = match &arena.place {
            Some(place) if in_place => (place.address(), place.address()),
            _ => (arena.input.address(), arena.output.address()),
        };
        let (inward, outward) = (task.strides_in(in_place), task.strides_out());
        // In elements: real ones of one number, complex ones of two.
        let width = if task.real { 1 } else { 2 };
        let dim = |n: usize, axis: usize| Dim {
            n: n as isize,
            stride_in: (inward[axis] / width) as isize,
            stride_out: (outward[axis] / 2) as isize,
        };
        let dims: Vec<_> = task.axes.iter().map(|&axis| dim(task.shape[axis], axis)).collect();
        let mut many: Vec<_> =
            (0..3).filter(|axis| !task.axes.contains(axis)).map(|axis| dim(task.shape[axis], axis)).collect();
        many.push(dim(task.batch, 3));
        let (rank, howmany) = (dims.len() as c_int, many.len() as c_int);
        // SAFETY: the dimensions describe arrays of the arena, which outlives
        // the plan (see the order of fields of `Peer`).
        let plan = unsafe {
            (self.plan_with_threads)(task.threads as c_int);
            (self.set_time_limit)(TIME_LIMIT);
            if task.real {
                (self.plan_r2c)(rank, dims.as_ptr(), howmany, many.as_ptr(), from.cast(), to.cast(), flags)
            } else {
                (self.plan_c2c)(
                    rank,
                    dims.as_ptr(),
                    howmany,
                    many.as_ptr(),
                    from.cast(),
                    to.cast(),
                    FORWARD,
                    flags,
                )
            }
        };
        (!plan.is_null()).then(|| Owned { plan, fftw: self.clone() })
    }
}

/// A plan of FFTW's.
struct Owned {
    plan: Plan,
    fftw: Arc<Fftw>,
}

impl Owned {
    fn run(&self) {
        // SAFETY: the plan and its arrays are alive, and nobody else uses the arrays meanwhile.
        unsafe { (self.fftw.execute)(self.plan) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by the same library, dropped once.
        unsafe { (self.fftw.destroy)(self.plan) }
    }
}

fn make(task: &Task, arena: Arena, flags: c_uint) -> Outcome<Peer> {
    let fftw = Fftw::load(task.precision)?;
    let mut variants = Vec::new();
    for (name, in_place) in [("out of place", false), ("in place", true)] {
        if in_place && arena.place.is_none() {
            continue;
        }
        if let Some(plan) = fftw.plan(task, &arena, in_place, flags) {
            variants.push(Variant { name, in_place, run: Box::new(move || plan.run()) });
        }
    }
    if variants.is_empty() {
        return Err(Failure::new("peer fftw: it has no plan for this transform"));
    }
    let (input, output) = task.whole();
    Ok(Peer { name: "", version: fftw.version.clone(), variants, arena, input, output })
}

/// FFTW_MEASURE.
pub fn measure(task: &Task, arena: Arena) -> Outcome<Peer> {
    make(task, arena, MEASURE)
}

/// FFTW_PATIENT.
pub fn patient(task: &Task, arena: Arena) -> Outcome<Peer> {
    make(task, arena, PATIENT)
}
