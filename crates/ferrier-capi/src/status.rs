//! Status codes, and the text of the last error of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrier::Error;

/// What a function returns. Only 0 is success; ferrier_last_error() has the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An argument is NULL, out of range, misaligned, overlaps another or is no valid text.
    Argument = 1,
    /// A handle is NULL, was destroyed, or is of another kind.
    Handle = 2,
    /// A shape, axis, batch or scale that no transform can have.
    Problem = 3,
    /// Boxes that do not tile the shape, a grid that does not fit the ranks.
    Layout = 4,
    /// An option that does not fit the problem.
    Choice = 5,
    /// The name of an exchange, kernel, codec, operator, ... that does not exist.
    UnknownName = 6,
    /// A message that its codec cannot decode.
    Codec = 7,
    /// The certified error of a transform exceeds the tolerance.
    Tolerance = 8,
    /// An array or a workspace that does not fit the plan.
    Array = 9,
    /// Memory could not be allocated.
    Memory = 10,
    /// Ranks called with different arguments.
    Disagreement = 11,
    /// Another rank failed or left.
    Rank = 12,
    /// MPI or a thread failed, or no MPI was found.
    Transport = 13,
    /// A GPU, its driver or one of its libraries is missing or fails.
    Device = 14,
    /// A wisdom file cannot be read or written.
    Wisdom = 15,
    /// An error of the operating system.
    Io = 16,
    /// Not in this build of the library.
    Unsupported = 17,
    /// An error inside the library: please report it.
    Panic = 18,
    /// Any other error.
    Other = 19,
}

/// All status codes with their names.
const NAMES: [(Status, &CStr); 20] = [
    (Status::Ok, c"FERRIER_STATUS_OK"),
    (Status::Argument, c"FERRIER_STATUS_ARGUMENT"),
    (Status::Handle, c"FERRIER_STATUS_HANDLE"),
    (Status::Problem, c"FERRIER_STATUS_PROBLEM"),
    (Status::Layout, c"FERRIER_STATUS_LAYOUT"),
    (Status::Choice, c"FERRIER_STATUS_CHOICE"),
    (Status::UnknownName, c"FERRIER_STATUS_UNKNOWN_NAME"),
    (Status::Codec, c"FERRIER_STATUS_CODEC"),
    (Status::Tolerance, c"FERRIER_STATUS_TOLERANCE"),
    (Status::Array, c"FERRIER_STATUS_ARRAY"),
    (Status::Memory, c"FERRIER_STATUS_MEMORY"),
    (Status::Disagreement, c"FERRIER_STATUS_DISAGREEMENT"),
    (Status::Rank, c"FERRIER_STATUS_RANK"),
    (Status::Transport, c"FERRIER_STATUS_TRANSPORT"),
    (Status::Device, c"FERRIER_STATUS_DEVICE"),
    (Status::Wisdom, c"FERRIER_STATUS_WISDOM"),
    (Status::Io, c"FERRIER_STATUS_IO"),
    (Status::Unsupported, c"FERRIER_STATUS_UNSUPPORTED"),
    (Status::Panic, c"FERRIER_STATUS_PANIC"),
    (Status::Other, c"FERRIER_STATUS_OTHER"),
];

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(status: Status, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    /// An argument that is not as expected.
    pub fn argument(name: &str, message: impl std::fmt::Display) -> Failure {
        Failure::new(Status::Argument, format!("argument `{name}` {message}"))
    }

    #[cfg(test)]
    pub fn status(&self) -> Status {
        self.status
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            Error::Problem(_) => Status::Problem,
            Error::Layout(_) => Status::Layout,
            Error::Choice(_) => Status::Choice,
            Error::UnknownName { .. } => Status::UnknownName,
            Error::Codec { .. } => Status::Codec,
            Error::Tolerance { .. } => Status::Tolerance,
            Error::Array { .. } => Status::Array,
            Error::Memory { .. } => Status::Memory,
            Error::Disagreement { .. } => Status::Disagreement,
            Error::RankPanicked { .. } | Error::RankLeft { .. } => Status::Rank,
            Error::Transport { .. } => Status::Transport,
            Error::Device { .. } => Status::Device,
            Error::Wisdom { .. } => Status::Wisdom,
            Error::Io(_) => Status::Io,
            _ => Status::Other,
        };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs a function of this library: an error is recorded for this thread, a panic becomes one.
pub(crate) fn guard(work: impl FnOnce() -> Outcome) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
            Failure::new(Status::Panic, format!("internal error: {text}"))
        }
    };
    let text = failure.message.replace('\0', " ");
    // While the thread ends there is nowhere to keep it.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    failure.status
}

/// The text of the last error of a function of this library in the calling thread; empty where none has failed. Valid
/// until the next function fails in this thread. Successful calls leave it alone.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The name of a status code (a ferrier_status): "FERRIER_STATUS_OK". Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_status_name(status: i32) -> *const c_char {
    let name = NAMES.iter().find(|(known, _)| *known as i32 == status);
    name.map_or(c"unknown status", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: valid until the next failure in this thread.
        unsafe { CStr::from_ptr(ferrier_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn failures_and_panics_become_status_and_text() {
        assert_eq!(guard(|| Ok(())), Status::Ok);
        assert_eq!(last(), "");
        assert_eq!(guard(|| Err(Failure::argument("shape", "is NULL"))), Status::Argument);
        assert_eq!(last(), "argument `shape` is NULL");
        assert_eq!(guard(|| panic!("a zero \0 byte")), Status::Panic);
        assert_eq!(last(), "internal error: a zero   byte");
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("each thread has its own");
    }

    #[test]
    fn all_codes_have_names() {
        for (number, (status, _)) in NAMES.iter().enumerate() {
            assert_eq!(*status as usize, number);
        }
        // SAFETY: a constant.
        let name = |status| unsafe { CStr::from_ptr(ferrier_status_name(status)) };
        assert_eq!((name(9), name(-1)), (c"FERRIER_STATUS_ARRAY", c"unknown status"));
    }
}
