//! Intel MKL through its own interface, DFTI, from `libmkl_rt.so*`.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrier::Precision;
use libloading::os::unix::Library;

use super::arena::Arena;
use super::library::{files, folders, open, symbol};
use super::peer::{PLACEMENTS, Peer, PeerPlan};
use super::problem::PeerProblem;
use crate::failure::{Outcome, fail};

// From mkl_dfti.h and mkl_service.h.
const COMPLEX: c_int = 32;
const REAL: c_int = 33;
const NUMBER_OF_TRANSFORMS: c_int = 7;
const CONJUGATE_EVEN_STORAGE: c_int = 10;
const PLACEMENT: c_int = 11;
const INPUT_STRIDES: c_int = 12;
const OUTPUT_STRIDES: c_int = 13;
const INPUT_DISTANCE: c_int = 14;
const OUTPUT_DISTANCE: c_int = 15;
const COMPLEX_COMPLEX: c_int = 39;
const INPLACE: c_int = 43;
const NOT_INPLACE: c_int = 44;
const THREADING_INTEL: c_int = 0;
const THREADING_GNU: c_int = 3;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle, c_int, c_long, *const c_long) -> c_long;
type SetValue = unsafe extern "C" fn(Handle, c_int, ...) -> c_long;
type Compute = unsafe extern "C" fn(Handle, *mut c_void, ...) -> c_long;

struct Mkl {
    create: Create,
    set: SetValue,
    commit: unsafe extern "C" fn(Handle) -> c_long,
    forward: Compute,
    free: unsafe extern "C" fn(*mut Handle) -> c_long,
    message: unsafe extern "C" fn(c_long) -> *const c_char,
    version: String,
}

/// Finds the library: by the loader, then beside every Python.
fn find() -> Outcome<(&'static Library, Option<PathBuf>)> {
    let mut searched = Vec::new();
    for name in ["libmkl_rt.so", "libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"] {
        if let Ok(library) = open(Path::new(name), true) {
            return Ok((library, None));
        }
    }
    for folder in folders() {
        for path in files(&folder, "libmkl_rt.so") {
            // The wheel's OpenMP is in the same folder, which the loader does not search.
            if let Some(omp) = files(&folder, "libiomp5.so").first() {
                let _ = open(omp, true);
            }
            match open(&path, true) {
                Ok(library) => return Ok((library, Some(folder))),
                Err(error) => searched.push(error),
            }
        }
        searched.push(folder.display().to_string());
    }
    fail(format!(
        "peer mkl was not found (pip install mkl): no libmkl_rt.so* for the system's loader, and not in {}",
        searched.join(", ")
    ))
}

impl Mkl {
    fn load(problem: &PeerProblem) -> Outcome<Arc<Mkl>> {
        let (library, folder) = find()?;
        let beside = folder.is_some_and(|folder| !files(&folder, "libiomp5.so").is_empty());
        let intel = beside || open(Path::new("libiomp5.so"), true).is_ok();
        let letter = if problem.precision == Precision::F32 { 's' } else { 'd' };
        // SAFETY: the types are those of mkl_dfti.h and mkl_service.h (LP64 interface, the default).
        let mkl = unsafe {
            let set_layer: unsafe extern "C" fn(c_int) -> c_int = symbol(library, "MKL_Set_Threading_Layer")?;
            set_layer(if intel { THREADING_INTEL } else { THREADING_GNU });
            let set_threads: unsafe extern "C" fn(c_int) = symbol(library, "MKL_Set_Num_Threads")?;
            set_threads(problem.threads as c_int);
            if let Ok(dynamic) = symbol::<unsafe extern "C" fn(c_int)>(library, "MKL_Set_Dynamic") {
                dynamic(0);
            }
            let version: unsafe extern "C" fn(*mut c_char, c_int) =
                symbol(library, "MKL_Get_Version_String")?;
            let mut text = [0 as c_char; 256];
            version(text.as_mut_ptr(), 255);
            let text = CStr::from_ptr(text.as_ptr()).to_string_lossy();
            // "Intel(R) oneAPI Math Kernel Library Version 2026.2-Product Build 20260915 for ..."
            let version = text.split("Version ").last().and_then(|rest| rest.split(" for ").next());
            let version = version.unwrap_or_default().trim().to_string();
            Mkl {
                create: symbol(library, &format!("DftiCreateDescriptor_{letter}_md"))?,
                set: symbol(library, "DftiSetValue")?,
                commit: symbol(library, "DftiCommitDescriptor")?,
                forward: symbol(library, "DftiComputeForward")?,
                free: symbol(library, "DftiFreeDescriptor")?,
                message: symbol(library, "DftiErrorMessage")?,
                version,
            }
        };
        set_block_time();
        Ok(Arc::new(mkl))
    }

    fn check(&self, status: c_long) -> Outcome {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: `DftiErrorMessage` returns a static string.
        let text = unsafe { CStr::from_ptr((self.message)(status)) };
        fail(format!("peer mkl: {}", text.to_string_lossy()))
    }

    fn plan(self: &Arc<Self>, problem: &PeerProblem, in_place: bool) -> Outcome<Owned> {
        let lengths = problem.shape.map(|n| n as c_long);
        let width = problem.width();
        let (inward, outward) = (problem.strides_in(in_place), problem.strides_out());
        let strides = |strides: [usize; 4], width: usize| {
            [0, strides[0] / width, strides[1] / width, strides[2] / width].map(|stride| stride as c_long)
        };
        let mut handle: Handle = std::ptr::null_mut();
        let domain = if problem.real { REAL } else { COMPLEX };
        // SAFETY: as mkl_dfti.h declares them; the arrays are alive during the calls.
        unsafe {
            self.check((self.create)(&mut handle, domain, 3, lengths.as_ptr()))?;
            let owned = Owned { handle, mkl: self.clone() };
            let placement = if in_place { INPLACE } else { NOT_INPLACE };
            self.check((self.set)(handle, PLACEMENT, placement))?;
            self.check((self.set)(handle, NUMBER_OF_TRANSFORMS, problem.batch as c_long))?;
            if problem.real {
                self.check((self.set)(handle, CONJUGATE_EVEN_STORAGE, COMPLEX_COMPLEX))?;
            }
            self.check((self.set)(handle, INPUT_STRIDES, strides(inward, width).as_ptr()))?;
            self.check((self.set)(handle, OUTPUT_STRIDES, strides(outward, 2).as_ptr()))?;
            self.check((self.set)(handle, INPUT_DISTANCE, (inward[3] / width) as c_long))?;
            self.check((self.set)(handle, OUTPUT_DISTANCE, (outward[3] / 2) as c_long))?;
            self.check((self.commit)(handle))?;
            Ok(owned)
        }
    }
}

/// OpenMP's idle threads spin for 200 ms, on cores that the next timing needs. One
/// millisecond is longer than MKL's pauses between two parallel regions of a transform,
/// so MKL is not slower for it.
fn set_block_time() {
    let this = Library::this();
    // SAFETY: `kmp_set_blocktime(int)`, where an Intel OpenMP is loaded (globally, see `find`).
    if let Ok(set) = unsafe { symbol::<unsafe extern "C" fn(c_int)>(&this, "kmp_set_blocktime") } {
        // SAFETY: the signature is that of `kmp_set_blocktime`.
        unsafe { set(1) };
    }
}

/// A descriptor that MKL owns.
struct Owned {
    handle: Handle,
    mkl: Arc<Mkl>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe {
            (self.mkl.free)(&mut self.handle);
        }
    }
}

/// Plans in and out of place.
pub fn make(problem: &PeerProblem, arena: Arena) -> Outcome<Peer> {
    // A transform along an axis of length 1 changes nothing.
    let all = (0..3).all(|axis| problem.shape[axis] == 1 || problem.axes.contains(&axis));
    if !all || (problem.real && problem.axes.last() != Some(&2)) {
        return fail("peer mkl: only transforms of all axes, the last one halved, can be compared");
    }
    let mkl = Mkl::load(problem)?;
    let mut plans = Vec::new();
    for (name, in_place) in PLACEMENTS {
        let plan = mkl.plan(problem, in_place)?;
        let (from, to) = arena.addresses(in_place);
        let run = move || {
            // SAFETY: the arrays belong to the peer's arena, which outlives its
            // plans; in place, the second argument is not read.
            let status = unsafe { (plan.mkl.forward)(plan.handle, from.cast(), to.cast::<c_void>()) };
            debug_assert_eq!(status, 0, "DftiComputeForward");
        };
        plans.push(PeerPlan { name, in_place, run: Box::new(run) });
    }
    let (input, output) = problem.whole();
    Ok(Peer { version: mkl.version.clone(), plans, arena, input, output })
}
