//! What a signal must not leave behind: one temporary file.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The file that a signal removes; null when there is none. The string it
/// points to is never freed, because the handler may be reading it.
static DOOMED: AtomicPtr<libc::c_char> = AtomicPtr::new(ptr::null_mut());

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Removes the temporary file, then dies of the signal as if nothing had
/// caught it. Only calls that are safe in a signal handler.
extern "C" fn on_signal(signal: libc::c_int) {
    let path = DOOMED.swap(ptr::null_mut(), Ordering::SeqCst);
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

/// Makes a file with `make` such that no signal can come between its making
/// and its being known to the handler.
///
/// # Errors
/// Those of `make`.
pub fn guarded<T, E>(make: impl FnOnce() -> Result<T, E>, path: impl FnOnce(&T) -> &Path) -> Result<T, E> {
    // SAFETY: plain calls with valid pointers to local signal sets.
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
            DOOMED.store(path.into_raw(), Ordering::SeqCst);
        }
        install();
    }
    // SAFETY: `before` was filled in above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
    }
    made
}

/// Removes the file, before an end that runs no destructors.
pub fn clean() {
    let path = DOOMED.swap(ptr::null_mut(), Ordering::SeqCst);
    if !path.is_null() {
        // SAFETY: a C string that is never freed.
        unsafe { libc::unlink(path) };
    }
}

/// A file that another process made is removed by a signal to this one, too.
pub fn share(path: &Path) {
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        DOOMED.store(path.into_raw(), Ordering::SeqCst);
        install();
    }
}

/// Forgets the file: it has its final name, or is gone.
pub fn forget() {
    DOOMED.store(ptr::null_mut(), Ordering::SeqCst);
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

/// A file grown past `ulimit -f` is from now on an error of the write, which
/// says so and cleans up, and not a death that does neither.
pub fn outlive_limits() {
    // SAFETY: plain call.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
