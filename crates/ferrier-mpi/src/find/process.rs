//! The MPI library that the host program has loaded.

use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::Library;

use super::locate::Found;
use super::search;
use crate::abi::Family;
use crate::ffi::{Int, address_of, object_of, opened};

/// Functions that tell the library that defines them: tools that wrap MPI define only the second.
const FUNCTIONS: [&str; 2] = ["PMPI_Init_thread", "MPI_Init_thread"];

/// Finds the MPI library that is loaded in this process; `None` where there is
/// none. Loads nothing.
///
/// `function` is the address of any function of MPI as the host program sees it,
/// or null. It decides; else the library whose functions the program's own
/// symbols resolve to, and then any other that is loaded, those first
/// that are initialised.
pub fn find_loaded(function: *const c_void) -> Option<Found> {
    let found = |(path, family), why: &str| Found { path, family, why: why.to_owned(), searched: Vec::new() };
    let given = object_of(function).and_then(|object| library_of(&object));
    if let Some(given) = given {
        return Some(found(given, "the MPI whose function the caller handed over"));
    }
    let global = defining(&Library::this()).and_then(|object| library_of(&object));
    let mut all: Vec<Found> =
        global.map(|library| found(library, "the MPI that this program is linked to")).into_iter().collect();
    for library in objects().iter().filter_map(|object| library_of(object)) {
        if !all.iter().any(|known| known.path == library.0) {
            all.push(found(library, "an MPI that is loaded in this process"));
        }
    }
    let first = all.iter().position(|found| is_initialised(&found.path)).unwrap_or(0);
    (first < all.len()).then(|| all.swap_remove(first))
}

/// The object that defines MPI as seen from `library`. In a program that is not
/// position-independent this can be the program itself: its own table of
/// functions; [`opened`] refuses it.
fn defining(library: &Library) -> Option<PathBuf> {
    FUNCTIONS.iter().find_map(|name| object_of(address_of(library, name)?))
}

/// The MPI library behind a loaded object: itself, or the one that it is linked
/// to (Fortran bindings, tools).
fn library_of(object: &Path) -> Option<(PathBuf, Family)> {
    let path = defining(&opened(object)?)?.canonicalize().ok()?;
    opened(&path)?;
    search::family_of_file(&path).ok().map(|family| (path, family))
}

/// Files of loaded objects whose names are those of MPI libraries.
fn objects() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut objects: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..])))
        .filter(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libmpi")))
        .collect();
    objects.dedup();
    objects
}

/// Has the host initialised this library, and not finalized it?
fn is_initialised(path: &Path) -> bool {
    let Some(library) = opened(path) else { return false };
    let asks = |name: &str| {
        let mut flag: Int = 0;
        // SAFETY: of this type in every MPI; both may be called at any time.
        let code = unsafe {
            library.get::<unsafe extern "C" fn(*mut Int) -> Int>(name).map(|function| function(&mut flag))
        };
        code.is_ok_and(|code| code == 0 && flag != 0)
    };
    asks("MPI_Initialized") && !asks("MPI_Finalized")
}
