//! Removal of the temporary file when a signal ends the process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The file that a signal removes; null when there is none. The string it
/// points to is never freed, because the handler may be reading it.
static TEMPORARY: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Removes the temporary file, then raises the signal with its default action. Makes only calls
/// that are safe in a signal handler.
extern "C" fn on_signal(signal: libc::c_int) {
    let path = TEMPORARY.swap(ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: `path` is null or a C string that is never freed; unlink, signal
    // and raise are async-signal-safe.
    unsafe {
        if !path.is_null() {
            libc::unlink(path);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Makes a file with `make` while signals are blocked, so that the handler knows every file
/// that exists.
///
/// # Errors
/// Those of `make`.
pub fn guarded<T, E>(make: impl FnOnce() -> Result<T, E>, path: impl FnOnce(&T) -> &Path) -> Result<T, E> {
    // SAFETY: all pointers are to local signal sets, which the calls initialise.
    let before = unsafe {
        let mut block: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut block);
        for signal in SIGNALS {
            libc::sigaddset(&mut block, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &block, &mut before);
        before
    };
    let made = make();
    if let Ok(made) = &made {
        if let Ok(path) = CString::new(path(made).as_os_str().as_bytes()) {
            TEMPORARY.store(path.into_raw(), Ordering::SeqCst);
        }
        install();
    }
    // SAFETY: the first call initialised `before`.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
    made
}

/// Removes the file, before an exit that runs no destructors.
pub fn clean() {
    let path = TEMPORARY.swap(ptr::null_mut(), Ordering::SeqCst);
    if !path.is_null() {
        // SAFETY: `path` is a C string that is never freed.
        unsafe { libc::unlink(path) };
    }
}

/// Registers a file of another process, which a signal to this one removes too.
pub fn share(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        TEMPORARY.store(path.into_raw(), Ordering::SeqCst);
        install();
    }
}

/// Unregisters the file: it has its final name or is removed.
pub fn forget() {
    TEMPORARY.store(ptr::null_mut(), Ordering::SeqCst);
}

fn install() {
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
}

/// Ignores SIGXFSZ: a file larger than `ulimit -f` is then an error of the write, after which
/// the command cleans up, and not the end of the process.
pub fn ignore_file_size_limit() {
    // SAFETY: SIGXFSZ may be ignored at any time; no handler is involved.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
