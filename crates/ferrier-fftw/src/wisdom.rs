//! Wisdom of FFTW's planner, shared between ranks.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::api::{Api, complain};
use crate::handle::Handle;
use crate::next;
use crate::plan::Scalar;

impl<T: Scalar> Api<T> {
    /// `mpi_gather_wisdom`: what FFTW's planner learned on all ranks goes to rank 0; `mpi_broadcast_wisdom`: what rank 0
    /// has goes to all. Collective.
    ///
    /// # Safety
    /// A communicator of the MPI of this process.
    pub unsafe fn share_wisdom(&self, comm: Handle, to_all: bool) {
        let share = || -> Result<(), String> {
            // SAFETY: the contract of this function.
            let comm = unsafe { comm.comm()? };
            let own = if to_all && comm.rank() != 0 { Vec::new() } else { self.wisdom() };
            let all = comm.all_gather(&own).map_err(|error| error.to_string())?;
            let wanted = if to_all { comm.rank() != 0 } else { comm.rank() == 0 };
            for text in all.iter().filter(|text| wanted && !text.is_empty()) {
                self.learn(text);
            }
            Ok(())
        };
        let result = catch_unwind(AssertUnwindSafe(share)).unwrap_or_else(|_| Err("a panic".into()));
        if let Err(why) = result {
            complain(&format!("{}: {why}", self.name("mpi_gather_wisdom")));
        }
    }

    /// The wisdom of FFTW's library for one process, as text.
    fn wisdom(&self) -> Vec<u8> {
        let Some(function) = next::serial(self.prefix, "export_wisdom_to_string") else { return Vec::new() };
        // SAFETY: its type in fftw3.h; a string of malloc, or null.
        unsafe {
            let text =
                std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> *mut c_char>(function)();
            if text.is_null() {
                return Vec::new();
            }
            let bytes = CStr::from_ptr(text).to_bytes().to_vec();
            libc::free(text.cast());
            bytes
        }
    }

    fn learn(&self, text: &[u8]) {
        let function = next::serial(self.prefix, "import_wisdom_from_string");
        if let (Some(function), Ok(text)) = (function, CString::new(text)) {
            // SAFETY: its type in fftw3.h.
            unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn(*const c_char) -> c_int>(function)(
                    text.as_ptr(),
                )
            };
        }
    }
}
