//! FFTW 3, found by the system's loader at run time. It is GPL: nothing of it is linked,
//! and this file contains only the names and signatures of its functions.

use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::Arena;
use super::library::{open_first, symbol};
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::PeerProblem;
use crate::failure::{Failure, Outcome, fail};

pub(super) const MEASURE: c_uint = 0;
pub(super) const PATIENT: c_uint = 1 << 5;
pub(super) const FORWARD: c_int = -1;
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

pub(super) type Plan = *mut c_void;
/// The elements of an array.
pub(super) type Data = *mut c_void;
type Dims = *const Dim;
type PlanC2c = unsafe extern "C" fn(c_int, Dims, c_int, Dims, Data, Data, c_int, c_uint) -> Plan;
type PlanR2c = unsafe extern "C" fn(c_int, Dims, c_int, Dims, Data, Data, c_uint) -> Plan;

/// The core library in one precision.
pub(super) struct Fftw {
    /// `f` in the names of single precision.
    letter: &'static str,
    core: &'static Library,
    execute: unsafe extern "C" fn(Plan),
    destroy: unsafe extern "C" fn(Plan),
    pub version: String,
}

impl Fftw {
    /// Loads the core library; `missing` gives the failure if it is not found.
    pub fn load(precision: Precision, missing: impl Fn(String) -> Failure) -> Outcome<Fftw> {
        let letter = if precision == Precision::F32 { "f" } else { "" };
        let core = open_first(&files(letter, "")).map_err(missing)?;
        // SAFETY: the types are those of fftw3.h.
        unsafe {
            function::<unsafe extern "C" fn(c_double)>(core, letter, "set_timelimit")?(TIME_LIMIT);
            let version: *const c_char = function(core, letter, "version")?;
            Ok(Fftw {
                letter,
                core,
                execute: function(core, letter, "execute")?,
                destroy: function(core, letter, "destroy_plan")?,
                version: CStr::from_ptr(version).to_string_lossy().trim_start_matches("fftw-").into(),
            })
        }
    }

    /// The function called `name` of one of FFTW's libraries, without the prefix.
    ///
    /// # Safety
    /// `F` is the type of a pointer to it.
    pub unsafe fn function<F: Copy>(&self, library: &Library, name: &str) -> Outcome<F> {
        // SAFETY: this function's contract is that of `function`.
        unsafe { function(library, self.letter, name) }
    }

    /// Plans made later run on so many threads. `missing` gives the failure if there is no library
    /// of threads; `peer` names the peer for errors.
    pub fn use_threads(&self, peer: &str, threads: usize, missing: impl Fn(String) -> Failure) -> Outcome {
        // Its own threads sleep between calls; OpenMP's spin, on cores that the next timing needs.
        let names = [files(self.letter, "_threads"), files(self.letter, "_omp")].concat();
        let library = open_first(&names).map_err(missing)?;
        // SAFETY: the types are those of fftw3.h.
        unsafe {
            if self.function::<unsafe extern "C" fn() -> c_int>(library, "init_threads")?() == 0 {
                return fail(format!("peer {peer}: its threads could not be started"));
            }
            self.function::<unsafe extern "C" fn(c_int)>(library, "plan_with_nthreads")?(threads as c_int);
        }
        Ok(())
    }

    /// Calls `make(from, to)` for transforms out of place and in place; it returns plans, or null.
    /// `peer` names the peer for errors.
    ///
    /// # Safety
    /// The plans are new ones of this library, for these arrays.
    pub unsafe fn plans(
        &self,
        peer: &str,
        arena: &Arena,
        make: impl Fn(bool, Data, Data) -> Plan,
    ) -> Outcome<Vec<PeerPlan>> {
        let mut plans = Vec::new();
        for (name, in_place) in PLACEMENTS.into_iter().take(1 + usize::from(arena.in_place.is_some())) {
            let (from, to) = arena.addresses(in_place);
            let plan = make(in_place, from.cast(), to.cast());
            if !plan.is_null() {
                let plan = Owned { plan, execute: self.execute, destroy: self.destroy };
                plans.push(PeerPlan { name, in_place, run: Box::new(move || plan.run()) });
            }
        }
        if plans.is_empty() {
            fail(format!("peer {peer}: it has no plan for this transform"))
        } else {
            Ok(plans)
        }
    }
}

/// File names of one of FFTW's libraries.
fn files(letter: &str, part: &str) -> Vec<String> {
    let stem = format!("libfftw3{letter}{part}");
    if cfg!(target_os = "macos") {
        vec![format!("{stem}.3.dylib"), format!("/opt/homebrew/lib/{stem}.3.dylib")]
    } else {
        vec![format!("{stem}.so.3"), format!("{stem}.so")]
    }
}

/// # Safety
/// As [`symbol`].
unsafe fn function<F: Copy>(library: &Library, letter: &str, name: &str) -> Outcome<F> {
    // SAFETY: this function's contract is that of `symbol`.
    unsafe { symbol(library, &format!("fftw{letter}_{name}")) }
}

/// A plan that FFTW owns.
struct Owned {
    plan: Plan,
    execute: unsafe extern "C" fn(Plan),
    destroy: unsafe extern "C" fn(Plan),
}

impl Owned {
    fn run(&self) {
        // SAFETY: the plan is alive, so are its arrays (see the order of fields of `Peer`), and
        // `Peer::run` borrows the peer exclusively. Every process runs a distributed plan.
        unsafe { (self.execute)(self.plan) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.destroy)(self.plan) }
    }
}

fn make(problem: &PeerProblem, arena: Arena, flags: c_uint) -> Outcome<Peer> {
    let missing =
        |why: String| Failure::new(format!("peer fftw was not found (Debian: libfftw3-dev): {why}"));
    let fftw = Fftw::load(problem.precision, missing)?;
    fftw.use_threads("fftw", problem.threads, missing)?;
    // SAFETY: the types are those of fftw3.h.
    let (c2c, r2c): (PlanC2c, PlanR2c) = unsafe {
        (fftw.function(fftw.core, "plan_guru64_dft")?, fftw.function(fftw.core, "plan_guru64_dft_r2c")?)
    };
    let outward = problem.strides_out();
    let plan = |in_place: bool, from: Data, to: Data| {
        let inward = problem.strides_in(in_place);
        // In elements: real ones of one scalar, complex ones of two.
        let dim = |n: usize, axis: usize| Dim {
            n: n as isize,
            stride_in: (inward[axis] / problem.width()) as isize,
            stride_out: (outward[axis] / 2) as isize,
        };
        let dims: Vec<_> = problem.axes.iter().map(|&axis| dim(problem.shape[axis], axis)).collect();
        let others = (0..3).filter(|axis| !problem.axes.contains(axis));
        let mut many: Vec<_> = others.map(|axis| dim(problem.shape[axis], axis)).collect();
        many.push(dim(problem.batch, 3));
        let (rank, dims, count, many) =
            (dims.len() as c_int, dims.as_ptr(), many.len() as c_int, many.as_ptr());
        // SAFETY: the dimensions describe arrays of the arena, which outlives
        // the plan (see the order of fields of `Peer`).
        unsafe {
            match problem.real {
                true => r2c(rank, dims, count, many, from, to, flags),
                false => c2c(rank, dims, count, many, from, to, FORWARD, flags),
            }
        }
    };
    // SAFETY: `plan` makes new plans.
    let plans = unsafe { fftw.plans("fftw", &arena, plan)? };
    let (input, output) = problem.whole();
    Ok(Peer { version: fftw.version, plans, arena, input, output })
}

/// FFTW_MEASURE.
pub fn measure(problem: &PeerProblem, arena: Arena) -> Outcome<Peer> {
    make(problem, arena, MEASURE)
}

/// FFTW_PATIENT.
pub fn patient(problem: &PeerProblem, arena: Arena) -> Outcome<Peer> {
    make(problem, arena, PATIENT)
}
