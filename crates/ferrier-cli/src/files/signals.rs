//! Removal of the unfinished file or folder when a signal ends the process.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The file that a signal removes; null when there is none. The string it
/// points to is never freed, because the handler may be reading it.
static TEMPORARY: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

/// The end of a pipe by which the handler wakes the thread that removes folders; -1 where there is none.
static WAKE: AtomicI32 = AtomicI32::new(-1);

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Removes the temporary file, then raises the signal with its default action. Makes only calls
/// that are safe in a signal handler. To remove a folder is not: a thread does it and raises the signal.
extern "C" fn on_signal(signal: libc::c_int) {
    let path = TEMPORARY.load(Ordering::SeqCst);
    // SAFETY: `path` is null or a C string that is never freed; unlink, write, signal and raise are
    // async-signal-safe.
    unsafe {
        let is_folder = !path.is_null() && libc::unlink(path) != 0 && is_folder_error();
        if is_folder && wake(signal) {
            return;
        }
        die(signal);
    }
}

/// Did `unlink` find a folder?
fn is_folder_error() -> bool {
    matches!(io::Error::last_os_error().raw_os_error(), Some(libc::EISDIR | libc::EPERM))
}

/// Wakes the thread that removes folders; false where there is none.
fn wake(signal: libc::c_int) -> bool {
    let (pipe, byte) = (WAKE.load(Ordering::SeqCst), signal as u8);
    // SAFETY: `byte` is one byte that lives during the call; `write` is async-signal-safe and refuses -1.
    unsafe { libc::write(pipe, (&raw const byte).cast(), 1) == 1 }
}

/// Ends the process by the signal's default action.
fn die(signal: libc::c_int) {
    // SAFETY: both calls are async-signal-safe and take no pointer of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

/// Removes the file or folder that has this name; others may be writing to the folder.
fn remove(path: &Path) {
    for _ in 0..100 {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        if removed.is_ok() || !path.exists() {
            break;
        }
    }
}

/// The path in `TEMPORARY`.
fn temporary() -> Option<&'static Path> {
    let path = TEMPORARY.load(Ordering::SeqCst);
    // SAFETY: a path that is not null is a C string that is never freed.
    (!path.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

/// Removes the unfinished file or folder, before an exit that runs no destructors.
pub fn clean() {
    if let Some(path) = temporary() {
        remove(path);
    }
    TEMPORARY.store(ptr::null_mut(), Ordering::SeqCst);
}

/// Learns of unfinished files that have names; see `ferrier::io::watch`.
fn learn(path: Option<&Path>) {
    let path = path.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if path.is_some() {
        install();
    }
    TEMPORARY.store(path.map_or(ptr::null_mut(), CString::into_raw), Ordering::SeqCst);
}

/// Removes unfinished files when a signal ends the process, and makes a file larger than `ulimit -f` an error of the
/// write, after which the command cleans up, and not the end of the process.
pub fn guard_files() {
    ferrier::io::watch(learn);
    // SAFETY: SIGXFSZ may be ignored at any time; no handler is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Installs the handlers and starts the thread that removes folders, once.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        start_cleaner();
        let handler = on_signal as extern "C" fn(libc::c_int);
        for signal in SIGNALS {
            // SAFETY: the handler calls async-signal-safe functions only. A signal
            // that the caller ignores (nohup) stays ignored.
            unsafe {
                if libc::signal(signal, handler as *const () as libc::sighandler_t) == libc::SIG_IGN {
                    libc::signal(signal, libc::SIG_IGN);
                }
            }
        }
    });
}

fn start_cleaner() {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return;
    }
    let wait = move || {
        let mut signal = 0u8;
        // SAFETY: `signal` is one byte that lives during the call; the pipe is never closed.
        while unsafe { libc::read(ends[0], (&raw mut signal).cast(), 1) } != 1 {}
        if let Some(path) = temporary() {
            remove(path);
        }
        die(libc::c_int::from(signal));
    };
    if std::thread::Builder::new().name("remove".into()).spawn(wait).is_ok() {
        WAKE.store(ends[1], Ordering::SeqCst);
    }
}
