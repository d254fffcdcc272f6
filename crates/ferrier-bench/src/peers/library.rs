//! Searches for shared libraries.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::failure::{Failure, Outcome};

/// Opens the first of `names` that the system's loader finds.
///
/// # Errors
/// The loader's message for each name.
pub fn open_first(names: &[String]) -> Result<&'static Library, String> {
    let mut searched = Vec::new();
    for name in names {
        match open(Path::new(name), false) {
            Ok(library) => return Ok(library),
            Err(error) => searched.push(error),
        }
    }
    Err(searched.join("; "))
}

/// Opens one library, by name (the loader searches) or by path. It is never unloaded,
/// because the threads that such libraries start outlive every call.
///
/// # Errors
/// The loader's message.
pub fn open(path: &Path, global: bool) -> Result<&'static Library, String> {
    let flags = RTLD_NOW | if global { RTLD_GLOBAL } else { RTLD_LOCAL };
    // SAFETY: loading runs the initialisers of a well-known numerical library that the user
    // asked for by name; they have no preconditions.
    let library = unsafe { Library::open(Some(path), flags) };
    library
        .map(|library| &*Box::leak(Box::new(library)))
        .map_err(|error| error.source().map_or(error.to_string(), ToString::to_string).replace('\n', " "))
}

/// The function (or object) called `name`.
///
/// # Errors
/// The library has no such symbol.
///
/// # Safety
/// `F` is the type of a pointer to it.
pub unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Outcome<F> {
    // SAFETY: this function's contract: `F` is the type of a pointer to the symbol.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| Failure::new(format!("the library has no function {name}")))
}

/// Folders to search that the loader may not search: those of LD_LIBRARY_PATH, the usual
/// ones, and the `lib` folder of each Python.
pub fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for variable in ["LD_LIBRARY_PATH", "MKLROOT", "CONDA_PREFIX", "VIRTUAL_ENV"] {
        for folder in
            env::var_os(variable).iter().flat_map(env::split_paths).filter(|p| !p.as_os_str().is_empty())
        {
            folders.extend([folder.clone(), folder.join("lib"), folder.join("lib/intel64")]);
        }
    }
    let python = env::var("FERRIER_PYTHON").ok();
    for python in python.as_deref().into_iter().chain(["python3", "python"]) {
        folders.extend(prefixes(python).into_iter().map(|prefix| prefix.join("lib")));
    }
    folders.extend(
        [
            "/opt/intel/oneapi/mkl/latest/lib",
            "/opt/intel/oneapi/mkl/latest/lib/intel64",
            "/opt/intel/mkl/lib/intel64",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/usr/local/lib",
        ]
        .map(PathBuf::from),
    );
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let new = folder.is_dir() && !seen.contains(folder);
        seen.push(folder.clone());
        new
    });
    folders
}

/// The prefixes of a Python: its own, its base and its user's.
fn prefixes(python: &str) -> Vec<PathBuf> {
    let script = "import site, sys; print(sys.prefix); print(sys.base_prefix); print(site.getuserbase())";
    let output =
        Command::new(python).args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

/// The files in `folder` whose names begin with `stem`, newest version first.
pub fn files(folder: &Path, stem: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(stem)))
        .collect();
    files.sort();
    files.reverse();
    files
}
