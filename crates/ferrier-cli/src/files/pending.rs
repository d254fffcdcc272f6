//! Files that have no name yet, and names that nobody uses any more.
//!
//! A file without a name is gone with the last process that has it open,
//! whatever ended that process. Where a file system has none, a hidden name
//! stands in; it is locked, so that one left behind by a job that was killed is
//! known for what it is and taken away by the next.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = ".ferrier-";
const SUFFIX: &str = ".part";

/// A name that says that its file is not whole.
pub fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// A file in `folder` that has no name; `None` where there are none such.
///
/// # Errors
/// No file can be made there.
#[cfg(target_os = "linux")]
pub fn nameless(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    let opened =
        OpenOptions::new().read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder);
    match opened {
        // Without /proc it could never get a name.
        Ok(file) if fs::metadata(own_place(&file)).is_ok() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL | libc::ENOENT) => Ok(None),
            _ => Err(error),
        },
    }
}

/// A file in `folder` that has no name; `None` where there are none such.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn nameless(_folder: &Path, _mode: u32) -> io::Result<Option<File>> {
    Ok(None)
}

fn own_place(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Where other processes of this machine find an open file, and what it is.
pub fn place(file: &File) -> io::Result<(PathBuf, [u64; 2])> {
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((path.into(), identity(file)?))
}

/// What tells a file from all others of this machine.
pub fn identity(file: &File) -> io::Result<[u64; 2]> {
    let about = file.metadata()?;
    Ok([about.dev(), about.ino()])
}

/// Gives a nameless file a name that nothing has.
///
/// # Errors
/// There is such a file; the folder refuses.
pub fn link(file: &File, name: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let (from, to) = (text(&own_place(file))?, text(name)?);
    let here = libc::AT_FDCWD;
    // SAFETY: two C strings that live for the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Says that the file is in use, for as long as it is open. False where
/// another process is about to take its name away, or has; where there are no
/// locks nobody will.
pub fn lock(file: &File) -> bool {
    // SAFETY: a plain call on an open descriptor.
    let outcome = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    outcome == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EWOULDBLOCK)
}

/// Removes what jobs that were killed have left in a folder. Best effort.
pub fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        let ours = name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes());
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        // SAFETY: a plain call on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let held = named().tempfile_in(&folder).unwrap();
        assert!(lock(held.as_file()));
        fs::write(folder.path().join(".ferrier-gone.part"), "half").unwrap();
        fs::write(folder.path().join("data.part"), "not ours").unwrap();
        fs::create_dir(folder.path().join(".ferrier-folder.part")).unwrap();
        sweep(folder.path());
        let left =
            [".ferrier-folder.part".into(), held.path().file_name().unwrap().into(), "data.part".into()];
        let mut left: Vec<std::ffi::OsString> = left.to_vec();
        left.sort();
        assert_eq!(names(), left);
    }

    #[test]
    fn a_file_without_a_name_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let Some(file) = nameless(folder.path(), 0o600).unwrap() else { return };
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let (there, identity) = place(&file).unwrap();
        fs::write(there, "whole").unwrap();
        let name = folder.path().join("name");
        link(&file, &name).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"whole");
        assert_eq!(self::identity(&File::open(&name).unwrap()).unwrap(), identity);
        assert_eq!(link(&file, &name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
