//! What the headers for C++ and the Fortran modules call; `include/ferrier_heffte.h` declares it.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrier::{Comm, Kind};

use crate::choice::Options;
use crate::engine::Request;
use crate::geometry::{HeffteBox, Outcome};
use crate::transform::{Numbers, Transform, Variant};

/// What a transform is made from.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Description {
    /// The size of this structure.
    pub size: u64,
    /// The boxes of this rank.
    pub inbox: HeffteBox,
    /// The boxes of this rank.
    pub outbox: HeffteBox,
    /// 0: complex; 1: real to a halved spectrum; cosine and sine transforms of type 2: 2 and 3, of type 1: 4 and 5.
    pub kind: i32,
    /// The halved dimension of kind 1.
    pub halved: i32,
    /// Bit d is set where dimension d is transformed.
    pub dimensions: u32,
    /// `plan_options`.
    pub options: Options,
    /// The CUDA device of the arrays; -1: main memory.
    pub device: i32,
    /// 1: this process alone; the communicator is not looked at.
    pub alone: i32,
}

/// A call of a transform.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// The size of this structure.
    pub size: u64,
    /// Elements of the inbox, or of the outbox where the call goes backward.
    pub input: *const c_void,
    /// The other ones.
    pub output: *mut c_void,
    /// The CUDA stream.
    pub stream: *mut c_void,
    /// A factor.
    pub scale: f64,
    /// Arrays, one after the other.
    pub batch: i32,
    /// 1: from the outbox to the inbox.
    pub backward: i32,
    /// 0: float, 1: double.
    pub double_precision: i32,
    /// 1: elements of the inbox are real although the transform is complex.
    pub real: i32,
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps a text for the thread and returns its address.
pub(crate) fn keep(text: &str) -> *const c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    TEXT.with_borrow_mut(|kept| {
        *kept = text;
        kept.as_ptr()
    })
}

/// Panics become errors.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Outcome<R>) -> Outcome<R> {
    let text = |panic: Box<dyn Any + Send>| {
        let known = panic.downcast_ref::<String>().map(String::as_str);
        let known = known.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("internal error: {}", known.unwrap_or("panic"))
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(text(panic)))
}

fn status(outcome: Outcome<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(text) => {
            keep(&text);
            1
        }
    }
}

impl Description {
    pub(crate) fn numbers(&self) -> Outcome<Numbers> {
        Ok(match (self.kind, self.halved) {
            (0, _) => Numbers::Complex,
            (1, dimension @ 0..=2) => Numbers::Halved(dimension as usize),
            (1, other) => return Err(format!("r2c_direction must be 0, 1 or 2, got {other}")),
            (2, _) => Numbers::Real(Kind::Dct2),
            (3, _) => Numbers::Real(Kind::Dst2),
            (4, _) => Numbers::Real(Kind::Dct1),
            (5, _) => Numbers::Real(Kind::Dst1),
            (other, _) => return Err(format!("unknown kind of transform {other}")),
        })
    }

    pub(crate) fn make(&self, comm: impl FnOnce() -> Outcome<Comm>) -> Outcome<Transform> {
        let (numbers, gpu) = (self.numbers()?, usize::try_from(self.device).ok());
        let comm = if self.alone != 0 { Comm::one_rank() } else { comm()? };
        Transform::new(comm, [self.inbox, self.outbox], numbers, self.dimensions, &self.options, gpu)
    }
}

/// Makes a transform. `comm` and `mpi_function` are those of ferrier_comm_from_fortran. Collective.
///
/// # Safety
/// The description is one, `comm` is a communicator of the MPI that has the function, and `made` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ferrier_heffte_create(
    description: *const Description,
    comm: i32,
    mpi_function: *const c_void,
    made: *mut *mut Transform,
) -> i32 {
    // SAFETY: the contract of this function.
    let description = unsafe { *description };
    status(guarded(|| {
        if description.size != size_of::<Description>() as u64 {
            return Err("the headers are those of another version of the library".into());
        }
        // SAFETY: the contract of this function; MPI checks the communicator.
        let comm =
            || unsafe { ferrier::mpi::from_fortran(comm, mpi_function) }.map_err(|error| error.to_string());
        let transform = Box::new(description.make(comm)?);
        // SAFETY: the contract of this function.
        unsafe { made.write(Box::into_raw(transform)) };
        Ok(())
    }))
}

/// Destroys a transform, also after MPI_Finalize. NULL is allowed.
///
/// # Safety
/// It was made by this library and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ferrier_heffte_free(transform: *mut Transform) {
    if !transform.is_null() {
        // SAFETY: the contract of this function.
        let transform = unsafe { Box::from_raw(transform) };
        // What fails here has no caller to be told.
        let _ = guarded(|| {
            drop(transform);
            Ok(())
        });
    }
}

/// Runs a transform. Collective.
///
/// # Safety
/// The transform is alive, and the arrays are as long as its boxes say, `batch` times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ferrier_heffte_run(transform: *const Transform, call: *const Call) -> i32 {
    // SAFETY: the contract of this function.
    let (transform, call) = unsafe { (&*transform, &*call) };
    let batch = usize::try_from(call.batch).unwrap_or(0);
    let variant = Variant { double: call.double_precision != 0, real: call.real != 0, batch };
    let request = Request {
        backward: call.backward != 0,
        input: call.input,
        output: call.output,
        scale: call.scale,
        stream: call.stream,
    };
    // SAFETY: the contract of this function.
    status(guarded(|| unsafe { transform.run(variant, &request) }))
}

/// The lengths of the whole in real space, by dimensions.
///
/// # Safety
/// The transform is alive, and three numbers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ferrier_heffte_world(transform: *const Transform, lengths: *mut i64) {
    // SAFETY: the contract of this function.
    unsafe { lengths.cast::<[i64; 3]>().write((*transform).world().map(|length| length as i64)) }
}

/// The text of the last error in this thread, until the next function of this library is called in it.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_heffte_error() -> *const c_char {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// Options that are served in another way than in heFFTe, and notes of the plans so far, one per line; valid as
/// ferrier_heffte_error.
///
/// # Safety
/// The transform is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ferrier_heffte_notes(transform: *const Transform) -> *const c_char {
    // SAFETY: the contract of this function.
    keep(&unsafe { &*transform }.notes().join("\n"))
}
