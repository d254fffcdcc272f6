//! FFTW 3, found by the system's loader at run time. It is GPL: nothing of it is linked,
//! and this file contains only the names and signatures of its functions.

use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};
use std::sync::Arc;

use ferrier::Precision;

use super::arena::Arena;
use super::library::{open_first, symbol};
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::PeerProblem;
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
        // Its own threads sleep between calls; OpenMP's spin, on cores that the next timing needs.
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

    fn plan(
        self: &Arc<Self>,
        problem: &PeerProblem,
        arena: &Arena,
        in_place: bool,
        flags: c_uint,
    ) -> Option<Owned> {
        let (from, to) = arena.addresses(in_place);
        let (inward, outward) = (problem.strides_in(in_place), problem.strides_out());
        // In elements: real ones of one scalar, complex ones of two.
        let width = if problem.real { 1 } else { 2 };
        let dim = |n: usize, axis: usize| Dim {
            n: n as isize,
            stride_in: (inward[axis] / width) as isize,
            stride_out: (outward[axis] / 2) as isize,
        };
        let dims: Vec<_> = problem.axes.iter().map(|&axis| dim(problem.shape[axis], axis)).collect();
        let mut many: Vec<_> = (0..3)
            .filter(|axis| !problem.axes.contains(axis))
            .map(|axis| dim(problem.shape[axis], axis))
            .collect();
        many.push(dim(problem.batch, 3));
        let (rank, howmany) = (dims.len() as c_int, many.len() as c_int);
        // SAFETY: the dimensions describe arrays of the arena, which outlives
        // the plan (see the order of fields of `Peer`).
        let plan = unsafe {
            (self.plan_with_threads)(problem.threads as c_int);
            (self.set_time_limit)(TIME_LIMIT);
            if problem.real {
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

/// A plan that FFTW owns.
struct Owned {
    plan: Plan,
    fftw: Arc<Fftw>,
}

impl Owned {
    fn run(&self) {
        // SAFETY: the plan is alive, so are its arrays (see the order of fields of `Peer`), and
        // `Peer::run` borrows the peer exclusively.
        unsafe { (self.fftw.execute)(self.plan) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.fftw.destroy)(self.plan) }
    }
}

fn make(problem: &PeerProblem, arena: Arena, flags: c_uint) -> Outcome<Peer> {
    let fftw = Fftw::load(problem.precision)?;
    let mut plans = Vec::new();
    for (name, in_place) in PLACEMENTS {
        if in_place && arena.in_place.is_none() {
            continue;
        }
        if let Some(plan) = fftw.plan(problem, &arena, in_place, flags) {
            plans.push(PeerPlan { name, in_place, run: Box::new(move || plan.run()) });
        }
    }
    if plans.is_empty() {
        return Err(Failure::new("peer fftw: it has no plan for this transform"));
    }
    let (input, output) = problem.whole();
    Ok(Peer { version: fftw.version.clone(), plans, arena, input, output })
}

/// FFTW_MEASURE.
pub fn measure(problem: &PeerProblem, arena: Arena) -> Outcome<Peer> {
    make(problem, arena, MEASURE)
}

/// FFTW_PATIENT.
pub fn patient(problem: &PeerProblem, arena: Arena) -> Outcome<Peer> {
    make(problem, arena, PATIENT)
}
