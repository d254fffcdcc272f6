//! Libraries of transforms that are installed on the machine, found by the system's loader at run time.

use std::error::Error;
use std::mem::ManuallyDrop;

use libloading::Library;

/// Opens the first of these files that the loader finds. It is never unloaded: plans use its functions.
pub(crate) fn open(names: &[&str]) -> Result<ManuallyDrop<Library>, String> {
    let mut searched = Vec::new();
    for name in names {
        // SAFETY: the initialisers of a well-known numerical library that the user asked for by name have no
        // preconditions.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(ManuallyDrop::new(library)),
            Err(error) => {
                let why = error.source().map_or(error.to_string(), ToString::to_string);
                searched.push(why.replace('\n', " "));
            }
        }
    }
    Err(searched.join("; "))
}

/// The function called `name`.
///
/// # Safety
/// `F` is the type of a pointer to it.
pub(crate) unsafe fn function<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    // SAFETY: this function's contract.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|function| *function).map_err(|_| format!("the library has no function {name}"))
}
