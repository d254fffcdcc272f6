//! Unfinished files: without a name, or with a hidden one. Unfinished folders have hidden names.
//!
//! The system removes a file without a name when the last process closes it, however that
//! process ends. On file systems without such files a hidden name is used instead. Files and
//! folders are locked, so that the next run recognises and removes those of killed jobs.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PREFIX: &str = ".ferrier-";
const SUFFIX: &str = ".part";

/// Learns the name of an unfinished file or folder before it is made, and `None` when no such name is left.
pub type Watcher = fn(Option<&Path>);

static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// Sets the function that learns of unfinished files with names, so that a program can remove them when a signal
/// ends it. The first one stays.
pub fn watch(watcher: Watcher) {
    let _ = WATCHER.set(watcher);
}

/// Tells the watcher.
pub fn announce(path: Option<&Path>) {
    if let Some(watcher) = WATCHER.get() {
        watcher(path);
    }
}

/// A builder of hidden names for unfinished files.
pub fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// A file in `folder` without a name; `None` if the file system does not support it.
///
/// # Errors
/// No file can be created in the folder.
#[cfg(target_os = "linux")]
pub fn nameless(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    let opened =
        OpenOptions::new().read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder);
    match opened {
        // Without /proc it cannot get a name later.
        Ok(file) if fs::metadata(own_place(&file)).is_ok() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL | libc::ENOENT) => Ok(None),
            _ => Err(error),
        },
    }
}

/// A file in `folder` without a name; `None` if the file system does not support it.
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

/// The path by which other processes of this machine open the file, and its identity.
pub fn place(file: &File) -> io::Result<(PathBuf, [u64; 2])> {
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((path.into(), identity(file)?))
}

/// Device and inode, which identify a file on this machine.
pub fn identity(file: &File) -> io::Result<[u64; 2]> {
    let about = file.metadata()?;
    Ok([about.dev(), about.ino()])
}

/// Gives a nameless file a name that does not exist yet.
///
/// # Errors
/// The name exists; the folder cannot be written.
pub fn link(file: &File, name: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let (from, to) = (text(&own_place(file))?, text(name)?);
    let here = libc::AT_FDCWD;
    // SAFETY: both pointers are to C strings that live during the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Locks the file for as long as it is open. False if another process has it locked in order
/// to remove it. True on file systems without locks, where no process removes such files.
pub fn lock(file: &File) -> bool {
    // SAFETY: `flock` only needs an open descriptor, which `file` owns.
    let outcome = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    outcome == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EWOULDBLOCK)
}

/// Removes the files and folders that killed jobs left in a folder. Best effort.
pub fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_bytes();
        let ours = name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes());
        let kind = entry.file_type();
        let is_folder = kind.as_ref().is_ok_and(fs::FileType::is_dir);
        if !ours || !(is_folder || kind.is_ok_and(|kind| kind.is_file())) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        // SAFETY: `flock` only needs an open descriptor, which `file` owns.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            let _ = if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlocked_files_are_removed() {
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
        fs::create_dir(folder.path().join("folder.part")).unwrap();
        fs::create_dir_all(folder.path().join(".ferrier-gone.zarr.part/c/0")).unwrap();
        let busy = folder.path().join(".ferrier-busy.part");
        fs::create_dir(&busy).unwrap();
        let busy = File::open(&busy).unwrap();
        assert!(lock(&busy));
        remove_stale(folder.path());
        let left = [
            ".ferrier-busy.part".into(),
            "folder.part".into(),
            held.path().file_name().unwrap().into(),
            "data.part".into(),
        ];
        let mut left: Vec<std::ffi::OsString> = left.to_vec();
        left.sort();
        assert_eq!(names(), left);
    }

    #[test]
    fn a_nameless_file_gets_a_name() {
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
