//! Kernel `mkl`: an installed Intel MKL through its own interface, DFTI, line by line. Nothing of it is linked.

use std::ffi::{c_int, c_long, c_void};
use std::sync::OnceLock;

use crate::gathered::{GatheredLines, LineEngine, result};
use crate::installed::{function, open};
use crate::lines::Lines;
use crate::real::{Precision, Real};
use crate::spec::{LineKind, LinesSpec};

// From mkl_dfti.h.
const COMPLEX: c_int = 32;
const REAL: c_int = 33;
const CONJUGATE_EVEN_STORAGE: c_int = 10;
const PLACEMENT: c_int = 11;
const THREAD_LIMIT: c_int = 27;
const COMPLEX_COMPLEX: c_int = 39;
const NOT_INPLACE: c_int = 44;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle, c_int, ...) -> c_long;
type SetValue = unsafe extern "C" fn(Handle, c_int, ...) -> c_long;
type Compute = unsafe extern "C" fn(Handle, *mut c_void, ...) -> c_long;

struct Mkl {
    create_single: Create,
    create_double: Create,
    set: SetValue,
    commit: unsafe extern "C" fn(Handle) -> c_long,
    forward: Compute,
    backward: Compute,
    free: unsafe extern "C" fn(*mut Handle) -> c_long,
}

impl Mkl {
    fn load() -> Result<Mkl, String> {
        let library = &open(&["libmkl_rt.so", "libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"])
            .map_err(|why| format!("libmkl_rt was not found (LD_LIBRARY_PATH may name its folder): {why}"))?;
        // SAFETY: the types are those of mkl_dfti.h (LP64 interface, the default).
        unsafe {
            Ok(Mkl {
                create_single: function(library, "DftiCreateDescriptor_s_1d")?,
                create_double: function(library, "DftiCreateDescriptor_d_1d")?,
                set: function(library, "DftiSetValue")?,
                commit: function(library, "DftiCommitDescriptor")?,
                forward: function(library, "DftiComputeForward")?,
                backward: function(library, "DftiComputeBackward")?,
                free: function(library, "DftiFreeDescriptor")?,
            })
        }
    }
}

/// The library, or why there is none.
fn mkl() -> Result<&'static Mkl, String> {
    static LOADED: OnceLock<Result<Mkl, String>> = OnceLock::new();
    LOADED.get_or_init(Mkl::load).as_ref().map_err(Clone::clone)
}

/// Whether it is installed.
pub(super) fn check() -> Result<(), String> {
    mkl().map(drop)
}

/// A descriptor of one line.
struct MklLine {
    mkl: &'static Mkl,
    compute: Compute,
    handle: Handle,
}

// SAFETY: MKL's documentation: several threads may compute with one committed descriptor at once; it is freed once, when
// no other thread has it.
unsafe impl Send for MklLine {}
// SAFETY: as above.
unsafe impl Sync for MklLine {}

impl Drop for MklLine {
    fn drop(&mut self) {
        // SAFETY: this library made it, and it is freed once.
        unsafe { (self.mkl.free)(&mut self.handle) };
    }
}

pub(super) fn lines<T: Real>(spec: &LinesSpec) -> Box<dyn Lines<T>> {
    let mkl = mkl().unwrap_or_else(|why| panic!("kernel mkl: {why}"));
    let (create, n) = match T::PRECISION {
        Precision::F32 => (mkl.create_single, spec.n as c_long),
        Precision::F64 => (mkl.create_double, spec.n as c_long),
    };
    let (domain, compute) = match spec.kind {
        LineKind::Forward => (COMPLEX, mkl.forward),
        LineKind::Backward => (COMPLEX, mkl.backward),
        LineKind::RealForward => (REAL, mkl.forward),
        LineKind::RealBackward => (REAL, mkl.backward),
        LineKind::R2r { .. } => unreachable!("`R2rLines` uses the other kinds"),
    };
    let mut handle: Handle = std::ptr::null_mut();
    // SAFETY: as mkl_dfti.h declares them; the handle is valid for writes.
    let status = unsafe {
        let mut status = create(&mut handle, domain, n);
        // Ranks and threads call it themselves.
        status |= (mkl.set)(handle, THREAD_LIMIT, 1 as c_long);
        if result(spec) > 0 {
            status |= (mkl.set)(handle, CONJUGATE_EVEN_STORAGE, COMPLEX_COMPLEX);
            status |= (mkl.set)(handle, PLACEMENT, NOT_INPLACE);
        }
        status | (mkl.commit)(handle)
    };
    assert_eq!(status, 0, "MKL makes a descriptor of every length");
    Box::new(GatheredLines { engine: MklLine { mkl, compute, handle }, spec: *spec })
}

impl<T: Real> LineEngine<T> for MklLine {
    fn scratch(&self) -> usize {
        0
    }

    fn transform(&self, line: &mut [T], result: usize, _scratch: &mut [T]) {
        let start = line.as_mut_ptr();
        let to: *mut c_void = start.wrapping_add(result).cast();
        // SAFETY: a line has room for input and result; in place the second address is not read.
        let status = unsafe { (self.compute)(self.handle, start.cast(), to) };
        debug_assert_eq!(status, 0, "a descriptor that was committed");
    }
}
