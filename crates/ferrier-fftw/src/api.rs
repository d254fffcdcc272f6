//! What the exported functions do, in both precisions.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use ferrier::{Comm, Kind};

use crate::distribution::{Group, LocalSize, local_size, local_size_1d};
use crate::flags::{BACKWARD, FORWARD, TRANSPOSED_IN, TRANSPOSED_OUT, r2r_kind};
use crate::handle::Handle;
use crate::next;
use crate::plan::{Plan, RawPlan, Scalar, steps};
use crate::registry::Registry;
use crate::steps::{Part, Transform, transpose};

/// The functions of one precision.
pub struct Api<T: Scalar> {
    /// `fftw_` or `fftwf_`.
    pub prefix: &'static str,
    /// Its plans.
    pub plans: &'static Registry<Plan<T>>,
    /// This library's `fftw_execute`.
    pub execute: *const c_void,
}

/// Arguments that all planning functions have.
pub struct Request<T> {
    /// Interleaved components.
    pub howmany: isize,
    /// Of input and output; 0: the default.
    pub blocks: [isize; 2],
    /// Input and output.
    pub arrays: [*mut T; 2],
    /// The ranks.
    pub comm: Handle,
    /// Those of the planner.
    pub flags: c_uint,
}

/// One line on standard error.
pub fn complain(text: &str) {
    eprintln!("ferrier: {}", text.replace('\n', " "));
}

fn size(value: isize, what: &str) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| format!("{what} is {value}"))
}

/// # Safety
/// `rnk` lengths are at `n`.
unsafe fn lengths(rnk: c_int, n: *const isize) -> Result<Vec<usize>, String> {
    if rnk < 1 || n.is_null() {
        return Err(format!("a transform of {rnk} axes"));
    }
    // SAFETY: the contract of this function.
    let n = unsafe { std::slice::from_raw_parts(n, rnk as usize) };
    n.iter().map(|&n| if n > 0 { Ok(n as usize) } else { Err(format!("an axis of {n} points")) }).collect()
}

/// Writes the numbers of `local_size`; the elements to allocate.
///
/// # Safety
/// Each address is null or valid.
unsafe fn answer(size: LocalSize, out: [*mut isize; 4]) -> isize {
    let values = [size.first.0, size.first.1, size.second.0, size.second.1];
    for (address, value) in out.into_iter().zip(values) {
        if !address.is_null() {
            // SAFETY: the contract of this function.
            unsafe { address.write(value as isize) };
        }
    }
    size.alloc as isize
}

/// Runs the body of a function that returns a size; a line on standard error and 0 where it fails.
fn sized(name: &str, body: impl FnOnce() -> Result<isize, String>) -> isize {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err("a panic".into()));
    result.unwrap_or_else(|why| {
        complain(&format!("{name}: {why}"));
        0
    })
}

impl<T: Scalar> Api<T> {
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// `local_size_many_transposed` and its relatives; `transposed`: the block of axis 1.
    ///
    /// # Safety
    /// As in `fftw3-mpi.h`: `rnk` lengths, out-parameters that are null or valid, a communicator.
    pub unsafe fn local_size(
        &self,
        (rnk, n): (c_int, *const isize),
        howmany: isize,
        (block, transposed): (isize, Option<isize>),
        comm: Handle,
        out: [*mut isize; 4],
    ) -> isize {
        sized(&self.name("mpi_local_size"), || {
            // SAFETY: the contract of this function.
            let (n, group) = unsafe { (lengths(rnk, n)?, comm.group()?) };
            let howmany = size(howmany, "howmany")?.max(1);
            let block = size(block, "a block")?;
            let transposed = transposed.map(|block| size(block, "a block")).transpose()?;
            let numbers = match (n.len(), block) {
                (1, 0) => local_size_1d(n[0], howmany, group, FORWARD, 0),
                _ => local_size(&n, howmany, block, transposed, group),
            };
            // SAFETY: the contract of this function.
            Ok(unsafe { answer(numbers, out) })
        })
    }

    /// `local_size_many_1d`.
    ///
    /// # Safety
    /// As [`local_size`](Self::local_size).
    pub unsafe fn local_size_1d(
        &self,
        (n, howmany): (isize, isize),
        comm: Handle,
        (sign, flags): (c_int, c_uint),
        out: [*mut isize; 4],
    ) -> isize {
        sized(&self.name("mpi_local_size_1d"), || {
            // SAFETY: the contract of this function.
            let group = unsafe { comm.group()? };
            let (n, howmany) = (size(n, "the length")?.max(1), size(howmany, "howmany")?.max(1));
            // SAFETY: the contract of this function.
            Ok(unsafe { answer(local_size_1d(n, howmany, group, sign, flags), out) })
        })
    }

    /// A plan of `name`; where this library has none, `pass_on` asks FFTW's, given the address of its function and the
    /// communicator.
    fn plan(
        &self,
        name: &str,
        comm: Handle,
        make: impl FnOnce() -> Result<Plan<T>, String>,
        pass_on: impl FnOnce(*const c_void, usize) -> RawPlan,
    ) -> RawPlan {
        let made = catch_unwind(AssertUnwindSafe(|| {
            self.check_order()?;
            make()
        }));
        let full = "too many plans".to_owned();
        let kept = made
            .unwrap_or_else(|_| Err("a panic".into()))
            .and_then(|plan| self.plans.insert(plan).ok_or(full));
        let why = match kept {
            Ok(plan) => return plan,
            Err(why) => why,
        };
        match (next::mpi(self.prefix, name), comm.raw()) {
            (Some(function), Ok(raw)) => pass_on(function, raw),
            _ => {
                // SAFETY: the communicator of a planning function.
                let rank = unsafe { comm.group() }.map_or(0, |group| group.rank);
                if rank == 0 {
                    let name = self.name(name);
                    complain(&format!("{name}: {why}; no library of FFTW that could do it was found"));
                }
                std::ptr::null_mut()
            }
        }
    }

    /// FFTW's `fftw_execute` cannot run plans of this library.
    fn check_order(&self) -> Result<(), String> {
        match next::optional(self.prefix, "execute") {
            Some(function) if next::is_foreign(function, self.execute) => Err(format!(
                "this program finds {} in FFTW's library first: link -lfftw3_mpi before -lfftw3, or use LD_PRELOAD",
                self.name("execute")
            )),
            _ => Ok(()),
        }
    }

    /// Makes a plan of the parts that `parts` gives, for components, blocks and ranks.
    ///
    /// # Safety
    /// A communicator of the MPI of this process. Collective.
    unsafe fn make(
        &self,
        request: &Request<T>,
        parts: impl FnOnce(usize, [usize; 2], Group) -> Result<Vec<Part>, String>,
    ) -> Result<Plan<T>, String> {
        let [a, b] = request.blocks;
        let (howmany, blocks) =
            (size(request.howmany, "howmany")?, [size(a, "a block")?, size(b, "a block")?]);
        if howmany == 0 {
            return Err("howmany is 0".into());
        }
        // SAFETY: the contract of this function.
        let parts = parts(howmany, blocks, unsafe { request.comm.group()? })?;
        // SAFETY: the contract of this function.
        let comm: Comm = unsafe { request.comm.comm()? }.with_threads(self.threads());
        Plan::new(&comm, parts, request.arrays, request.flags).map_err(|error| error.to_string())
    }

    /// Makes a plan of a transform.
    ///
    /// # Safety
    /// As [`make`](Self::make).
    unsafe fn transform(
        &self,
        transform: Result<Transform, String>,
        request: &Request<T>,
        sign: c_int,
    ) -> Result<Plan<T>, String> {
        let parts = |howmany, blocks, group| {
            let transform = Transform { howmany, ..transform? };
            steps(&transform, blocks, (sign, request.flags), group)
        };
        // SAFETY: the contract of this function.
        unsafe { self.make(request, parts) }
    }

    /// As many as FFTW's planner was told to use.
    fn threads(&self) -> usize {
        next::optional(self.prefix, "planner_nthreads").map_or(1, |function| {
            // SAFETY: its type in fftw3.h.
            let count =
                unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> c_int>(function)() };
            count.max(1) as usize
        })
    }

    /// `plan_many_dft`.
    ///
    /// # Safety
    /// As in `fftw3-mpi.h`.
    pub unsafe fn dft(&self, rnk: c_int, n: *const isize, sign: c_int, request: Request<T>) -> RawPlan {
        let name = "mpi_plan_many_dft";
        let make = || {
            // SAFETY: the contract of this function.
            let n = unsafe { lengths(rnk, n) };
            let backward = match sign {
                FORWARD => Ok(false),
                BACKWARD => Ok(true),
                _ => Err(format!("the sign is {sign}")),
            };
            let transform = n.and_then(|n| {
                let kinds = vec![Kind::Complex; n.len()];
                Ok(Transform { n, kinds, howmany: 1, backward: backward? })
            });
            // SAFETY: the contract of this function.
            unsafe { self.transform(transform, &request, sign) }
        };
        let pass_on = |function: *const c_void, comm| {
            let Request { howmany, blocks: [a, b], arrays: [input, output], flags, .. } = request;
            // SAFETY: its type in fftw3-mpi.h, and the caller's arguments.
            unsafe {
                let function: ManyDft<T> = std::mem::transmute(function);
                function(rnk, n, howmany, a, b, input, output, comm, sign, flags)
            }
        };
        self.plan(name, request.comm, make, pass_on)
    }

    /// `plan_many_dft_r2c` and `plan_many_dft_c2r`.
    ///
    /// # Safety
    /// As in `fftw3-mpi.h`.
    pub unsafe fn real_dft(
        &self,
        rnk: c_int,
        n: *const isize,
        backward: bool,
        request: Request<T>,
    ) -> RawPlan {
        let name = if backward { "mpi_plan_many_dft_c2r" } else { "mpi_plan_many_dft_r2c" };
        let make = || {
            // SAFETY: the contract of this function.
            let transform = unsafe { lengths(rnk, n) }.map(|n| {
                let mut kinds = vec![Kind::Complex; n.len()];
                kinds[n.len() - 1] = Kind::Real;
                Transform { n, kinds, howmany: 1, backward }
            });
            // SAFETY: the contract of this function.
            unsafe { self.transform(transform, &request, if backward { BACKWARD } else { FORWARD }) }
        };
        let pass_on = |function: *const c_void, comm| {
            let Request { howmany, blocks: [a, b], arrays: [input, output], flags, .. } = request;
            // SAFETY: its type in fftw3-mpi.h, and the caller's arguments.
            unsafe {
                let function: ManyReal<T> = std::mem::transmute(function);
                function(rnk, n, howmany, a, b, input, output, comm, flags)
            }
        };
        self.plan(name, request.comm, make, pass_on)
    }

    /// `plan_many_r2r`.
    ///
    /// # Safety
    /// As in `fftw3-mpi.h`: `rnk` lengths and kinds.
    pub unsafe fn r2r(
        &self,
        rnk: c_int,
        n: *const isize,
        kinds: *const c_int,
        request: Request<T>,
    ) -> RawPlan {
        let make = || {
            // SAFETY: the contract of this function.
            let transform = unsafe { lengths(rnk, n) }.and_then(|n| {
                // SAFETY: the contract of this function.
                let kinds = unsafe { std::slice::from_raw_parts(kinds, n.len()) };
                let kinds = kinds.iter().map(|&kind| r2r_kind(kind)).collect::<Result<_, _>>()?;
                Ok(Transform { n, kinds, howmany: 1, backward: false })
            });
            // SAFETY: the contract of this function.
            unsafe { self.transform(transform, &request, FORWARD) }
        };
        let pass_on = |function: *const c_void, comm| {
            let Request { howmany, blocks: [a, b], arrays: [input, output], flags, .. } = request;
            // SAFETY: its type in fftw3-mpi.h, and the caller's arguments.
            unsafe {
                let function: ManyR2r<T> = std::mem::transmute(function);
                function(rnk, n, howmany, a, b, input, output, comm, kinds, flags)
            }
        };
        self.plan("mpi_plan_many_r2r", request.comm, make, pass_on)
    }

    /// `plan_many_transpose`.
    ///
    /// # Safety
    /// As in `fftw3-mpi.h`.
    pub unsafe fn transpose(&self, n0: isize, n1: isize, request: Request<T>) -> RawPlan {
        let make = || {
            let n = [size(n0, "an axis")?, size(n1, "an axis")?];
            let kept = [TRANSPOSED_IN, TRANSPOSED_OUT].map(|flag| request.flags & flag != 0);
            let parts = |howmany, blocks, group| Ok(vec![transpose(n, howmany, blocks, kept, group)?]);
            // SAFETY: the contract of this function.
            unsafe { self.make(&request, parts) }
        };
        let pass_on = |function: *const c_void, comm| {
            let Request { howmany, blocks: [a, b], arrays: [input, output], flags, .. } = request;
            // SAFETY: its type in fftw3-mpi.h, and the caller's arguments.
            unsafe {
                let function: ManyTranspose<T> = std::mem::transmute(function);
                function(n0, n1, howmany, a, b, input, output, comm, flags)
            }
        };
        self.plan("mpi_plan_many_transpose", request.comm, make, pass_on)
    }

    /// The plan at an address; `None` for plans of FFTW's.
    fn own(&self, plan: RawPlan) -> Option<&Plan<T>> {
        match self.plans.get(plan)? {
            // SAFETY: FFTW's contract: a plan is not destroyed while it is used.
            Some(plan) => Some(unsafe { &*plan }),
            None => {
                complain("this plan was destroyed before");
                std::process::abort()
            }
        }
    }

    /// `execute`, or `mpi_execute_dft` and its relatives with arrays. False for plans of FFTW's.
    ///
    /// FFTW's functions return nothing: where a rank fails, no result can be right, and the job ends.
    ///
    /// # Safety
    /// As [`Plan::execute_on`].
    pub unsafe fn execute(&self, plan: RawPlan, arrays: Option<[*mut T; 2]>) -> bool {
        let Some(plan) = self.own(plan) else { return false };
        // SAFETY: the contract of this function.
        let run = || unsafe {
            match arrays {
                None => plan.execute(),
                Some([input, output]) => plan.execute_on(input, output),
            }
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                complain(&format!("{}: {error}", self.name("execute")));
                std::process::abort()
            }
            Err(_) => std::process::abort(),
        }
    }

    /// `destroy_plan`. False for plans of FFTW's.
    ///
    /// # Safety
    /// No call uses the plan.
    pub unsafe fn destroy(&self, plan: RawPlan) -> bool {
        // SAFETY: the contract of this function.
        let Some(found) = (unsafe { self.plans.remove(plan) }) else { return false };
        if found.is_none() {
            complain(&format!("{}: this plan was destroyed before", self.name("destroy_plan")));
        }
        let _ = catch_unwind(AssertUnwindSafe(|| drop(found)));
        true
    }

    /// The text of a plan, to be freed by the caller; `None` for plans of FFTW's.
    pub fn text(&self, plan: RawPlan) -> Option<CString> {
        CString::new(self.own(plan)?.text()).ok()
    }

    /// Floating-point operations; `None` for plans of FFTW's.
    pub fn flops(&self, plan: RawPlan) -> Option<f64> {
        self.own(plan).map(Plan::flops)
    }

    /// The function of FFTW's library for one process behind one of this library, remembered in `known`. Without it a
    /// plan that is not ours cannot be anyone's: a line on standard error, and the end.
    pub fn next(&self, known: &AtomicPtr<c_void>, name: &str) -> *const c_void {
        let function = known.load(Ordering::Relaxed);
        if !function.is_null() {
            return function;
        }
        match next::serial(self.prefix, name) {
            Some(function) => {
                known.store(function.cast_mut(), Ordering::Relaxed);
                function
            }
            None => {
                complain(&format!("{} of FFTW's own library was not found", self.name(name)));
                std::process::abort()
            }
        }
    }

    /// The function of FFTW's own library for MPI behind one of this library.
    pub fn next_mpi(&self, name: &str) -> *const c_void {
        next::mpi(self.prefix, name).unwrap_or_else(|| {
            complain(&format!("{}: this plan is not known", self.name(name)));
            std::process::abort()
        })
    }
}

/// Prints the text of a plan to a `FILE`; to standard output where there is none.
///
/// # Safety
/// A stream of the C library that is open.
pub unsafe fn print(text: &CStr, file: Option<*mut c_void>) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the contract of this function.
    unsafe { libc::fputs(text.as_ptr(), file.map_or(stdout, |file| file.cast())) };
}

/// A copy that the caller frees by `free`.
pub fn copy(text: &CStr) -> *mut c_char {
    // SAFETY: a string that ends in a zero.
    unsafe { libc::strdup(text.as_ptr()) }
}

type ManyDft<T> = unsafe extern "C" fn(
    c_int,
    *const isize,
    isize,
    isize,
    isize,
    *mut T,
    *mut T,
    usize,
    c_int,
    c_uint,
) -> RawPlan;
type ManyReal<T> =
    unsafe extern "C" fn(c_int, *const isize, isize, isize, isize, *mut T, *mut T, usize, c_uint) -> RawPlan;
type ManyR2r<T> = unsafe extern "C" fn(
    c_int,
    *const isize,
    isize,
    isize,
    isize,
    *mut T,
    *mut T,
    usize,
    *const c_int,
    c_uint,
) -> RawPlan;
type ManyTranspose<T> =
    unsafe extern "C" fn(isize, isize, isize, isize, isize, *mut T, *mut T, usize, c_uint) -> RawPlan;

// SAFETY: the address of a function.
unsafe impl<T: Scalar> Sync for Api<T> {}
