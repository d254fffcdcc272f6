//! FFTW's own libraries in this process: functions that plans of theirs, and what Ferrier does not do, are passed on to.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};
use std::{env, fs};

/// A function of an `FFTW` library.
pub type Function = *const c_void;

/// The address of an own function tells which file this code is in.
fn own_file() -> Option<PathBuf> {
    // SAFETY: any address may be asked for; all zeros are valid for a structure of pointers.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_file as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        fs::canonicalize(CStr::from_ptr(info.dli_fname).to_str().ok()?).ok()
    }
}

fn open(name: &str, mode: i32) -> Option<usize> {
    let name = CString::new(name).ok()?;
    // SAFETY: the initialisers of FFTW's libraries do nothing that a program could notice.
    let handle = unsafe { libc::dlopen(name.as_ptr(), mode) };
    (!handle.is_null()).then_some(handle as usize)
}

fn symbol(handle: *mut c_void, name: &str) -> Option<Function> {
    let name = CString::new(name).ok()?;
    // SAFETY: a handle of this process, and a string that ends in a zero.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}

/// Functions that were looked up, by name.
static FOUND: LazyLock<Mutex<HashMap<String, Option<usize>>>> = LazyLock::new(Default::default);

fn remembered(name: &str, look_up: impl FnOnce() -> Option<Function>) -> Option<Function> {
    let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = found.get(name) {
        return known.map(|address| address as Function);
    }
    let address = look_up();
    found.insert(name.to_owned(), address.map(|address| address as usize));
    address
}

/// A function of FFTW's library for one process, such as `fftw_execute`: the next after this library in the order in
/// which the program looks names up, else that of the library with this precision's name.
pub fn serial(prefix: &str, name: &str) -> Option<Function> {
    let full = format!("{prefix}{name}");
    remembered(&full, || {
        symbol(libc::RTLD_NEXT, &full).or_else(|| {
            let file = format!("lib{}.so.3", prefix.trim_end_matches('_').replace("fftw", "fftw3"));
            let loaded = open(&file, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            let handle = loaded.or_else(|| open(&file, libc::RTLD_LAZY | libc::RTLD_LOCAL))?;
            symbol(handle as *mut c_void, &full)
        })
    })
}

/// A function that the program may have or not, such as `fftw_planner_nthreads`.
pub fn optional(prefix: &str, name: &str) -> Option<Function> {
    symbol(libc::RTLD_DEFAULT, &format!("{prefix}{name}"))
}

/// A function of FFTW's own library for MPI, such as `fftw_mpi_plan_many_r2r`.
pub fn mpi(prefix: &str, name: &str) -> Option<Function> {
    let full = format!("{prefix}{name}");
    remembered(&full, || symbol(real(prefix)? as *mut c_void, &full))
}

/// FFTW's own library for MPI, opened so that its calls go to itself, not to this library.
fn real(prefix: &str) -> Option<usize> {
    let file = format!("lib{}_mpi.so.3", prefix.trim_end_matches('_').replace("fftw", "fftw3"));
    let own = own_file();
    let listed = env::var_os("LD_LIBRARY_PATH");
    let mut folders: Vec<PathBuf> = listed.iter().flat_map(env::split_paths).collect();
    let arch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
    folders.extend([arch.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    let files = folders.iter().filter_map(|folder| fs::canonicalize(folder.join(&file)).ok());
    let path = files.filter(|path| Some(path) != own.as_ref()).find(|path| is_of_this_mpi(path))?;
    let handle = open(path.to_str()?, libc::RTLD_LAZY | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND)?;
    let init = symbol(handle as *mut c_void, &format!("{prefix}mpi_init"))?;
    // SAFETY: its type in fftw3-mpi.h; MPI is initialised, since there is a communicator.
    unsafe { std::mem::transmute::<Function, unsafe extern "C" fn()>(init)() };
    Some(handle)
}

/// Whether the MPI that a library needs is loaded: another one must not be loaded beside it. The names of needed
/// libraries are strings in the file. Files of this project are not FFTW's.
fn is_of_this_mpi(path: &std::path::Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let strings = || bytes.split(|&byte| byte == 0);
    let needed =
        strings().filter(|text| text.starts_with(b"libmpi") && text.windows(4).any(|part| part == b".so."));
    let mut needed = needed.filter_map(|text| std::str::from_utf8(text).ok()).peekable();
    needed.peek().is_some() && needed.all(|name| open(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD).is_some())
}

/// Whether a function belongs to a library of FFTW's rather than to the one that `own` is in.
pub fn is_foreign(function: Function, own: Function) -> bool {
    let object = |address: Function| {
        // SAFETY: any address may be asked for; all zeros are valid for a structure of pointers.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            let known = libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
            known.then(|| CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
        }
    };
    let name = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libfftw3"));
    match (object(function), object(own)) {
        (Some(found), Some(own)) => found != own && name(&found),
        _ => false,
    }
}
