//! Kernel `fftw`: an installed FFTW 3, line by line. It is GPL: nothing of it is linked, and this file has only the names
//! and signatures of its functions.
//!
//! Plans are those of `FFTW_ESTIMATE`, which are the same in every process; measured ones would give ranks, and runs,
//! different bits.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::gathered::{GatheredLines, LineEngine, result};
use crate::installed::{function, open};
use crate::lines::Lines;
use crate::real::{Precision, Real};
use crate::spec::{LineKind, LinesSpec};

const ESTIMATE: c_uint = 1 << 6;
const FORWARD: c_int = -1;
const BACKWARD: c_int = 1;

type Plan = *mut c_void;
type Data = *mut c_void;
type PlanComplex = unsafe extern "C" fn(c_int, Data, Data, c_int, c_uint) -> Plan;
type PlanReal = unsafe extern "C" fn(c_int, Data, Data, c_uint) -> Plan;
type Execute = unsafe extern "C" fn(Plan, Data, Data);

/// The functions of one precision.
struct Fftw {
    plan_complex: PlanComplex,
    plan_forward: PlanReal,
    plan_backward: PlanReal,
    execute_complex: Execute,
    execute_forward: Execute,
    execute_backward: Execute,
    destroy: unsafe extern "C" fn(Plan),
}

/// Only executing a plan may be done by several threads at once.
static PLANNING: Mutex<()> = Mutex::new(());

impl Fftw {
    fn load(files: &[&str], prefix: &str) -> Result<Fftw, String> {
        let library = &open(files)?;
        let name = |name: &str| format!("{prefix}_{name}");
        // SAFETY: the types are those of fftw3.h.
        unsafe {
            Ok(Fftw {
                plan_complex: function(library, &name("plan_dft_1d"))?,
                plan_forward: function(library, &name("plan_dft_r2c_1d"))?,
                plan_backward: function(library, &name("plan_dft_c2r_1d"))?,
                execute_complex: function(library, &name("execute_dft"))?,
                execute_forward: function(library, &name("execute_dft_r2c"))?,
                execute_backward: function(library, &name("execute_dft_c2r"))?,
                destroy: function(library, &name("destroy_plan"))?,
            })
        }
    }
}

/// The library of a precision, or why there is none.
fn fftw(precision: Precision) -> Result<&'static Fftw, String> {
    static SINGLE: OnceLock<Result<Fftw, String>> = OnceLock::new();
    static DOUBLE: OnceLock<Result<Fftw, String>> = OnceLock::new();
    let loaded = match precision {
        Precision::F32 => {
            SINGLE.get_or_init(|| Fftw::load(&["libfftw3f.so.3", "libfftw3f.so", "libfftw3f.dylib"], "fftwf"))
        }
        Precision::F64 => {
            DOUBLE.get_or_init(|| Fftw::load(&["libfftw3.so.3", "libfftw3.so", "libfftw3.dylib"], "fftw"))
        }
    };
    loaded.as_ref().map_err(|why| format!("FFTW 3 in {} was not found: {why}", precision.name()))
}

/// Whether both precisions are installed.
pub(super) fn check() -> Result<(), String> {
    fftw(Precision::F64).and(fftw(Precision::F32)).map(drop)
}

/// A plan of one line.
struct FftwLine {
    fftw: &'static Fftw,
    execute: Execute,
    plan: Plan,
}

// SAFETY: FFTW's documentation: `execute` functions with arrays of the caller's may be called by several threads at once;
// the plan is destroyed once, when no other thread has it.
unsafe impl Send for FftwLine {}
// SAFETY: as above.
unsafe impl Sync for FftwLine {}

impl Drop for FftwLine {
    fn drop(&mut self) {
        let _guard = PLANNING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.fftw.destroy)(self.plan) };
    }
}

pub(super) fn lines<T: Real>(spec: &LinesSpec) -> Box<dyn Lines<T>> {
    let fftw = fftw(T::PRECISION).unwrap_or_else(|why| panic!("kernel fftw: {why}"));
    // Plans that estimate do not touch the arrays; they take their alignment from them.
    let aligned = |at: usize| (64 * (1 + at)) as Data;
    let (from, to) = (aligned(0), aligned(usize::from(result(spec) > 0)));
    let n = c_int::try_from(spec.n).expect("lines of FFTW have less than 2^31 points");
    let guard = PLANNING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the types are those of fftw3.h; with `FFTW_ESTIMATE` the arrays are not accessed.
    let (plan, execute) = unsafe {
        match spec.kind {
            LineKind::Forward => ((fftw.plan_complex)(n, from, to, FORWARD, ESTIMATE), fftw.execute_complex),
            LineKind::Backward => {
                ((fftw.plan_complex)(n, from, to, BACKWARD, ESTIMATE), fftw.execute_complex)
            }
            LineKind::RealForward => ((fftw.plan_forward)(n, from, to, ESTIMATE), fftw.execute_forward),
            LineKind::RealBackward => ((fftw.plan_backward)(n, from, to, ESTIMATE), fftw.execute_backward),
            LineKind::R2r { .. } => unreachable!("`R2rLines` uses the other kinds"),
        }
    };
    drop(guard);
    assert!(!plan.is_null(), "FFTW makes a plan of every length");
    Box::new(GatheredLines { engine: FftwLine { fftw, execute, plan }, spec: *spec })
}

impl<T: Real> LineEngine<T> for FftwLine {
    fn scratch(&self) -> usize {
        0
    }

    fn transform(&self, line: &mut [T], result: usize, _scratch: &mut [T]) {
        let start = line.as_mut_ptr();
        // SAFETY: a line has room for input and result, apart if the plan has them apart, and aligned as in the plan.
        unsafe { (self.execute)(self.plan, start.cast(), start.wrapping_add(result).cast()) };
    }
}
