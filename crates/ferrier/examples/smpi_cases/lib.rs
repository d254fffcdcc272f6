//! The case table of `mpi_cases` as a shared library with a C `main`, which SimGrid's `smpirun` loads once for each
//! simulated rank, so that every rank has static variables of its own. `scripts/check-smpi` runs it.

use std::ffi::{CStr, c_char, c_int};

#[path = "../mpi_cases.rs"]
#[allow(dead_code)] // Its `main`.
mod mpi_cases;

/// Runs the case table with the exchanges that the arguments name.
///
/// # Safety
/// `argv` holds `argc` strings, as that of any C `main`.
// SAFETY: the name is C's; nothing else of a shared library is called so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the contract of this function.
    let word = |at: usize| unsafe { CStr::from_ptr(*argv.add(at)) }.to_string_lossy().into_owned();
    let asked: Vec<String> = (1..argc.max(0) as usize).map(word).collect();
    c_int::from(!mpi_cases::run_table(&asked))
}
