//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome, fail, io_failure, io_text};
use crate::signals;

/// A file under a temporary name in the folder of its target. It gets the
/// target's name in [`commit`](Output::commit) and is removed otherwise, also
/// when the process is interrupted. One at a time.
#[derive(Debug)]
pub struct Output {
    file: Temporary,
    target: PathBuf,
}

/// Who made the file removes and renames it.
#[derive(Debug)]
enum Temporary {
    Ours(NamedTempFile),
    Anothers(File, PathBuf),
}

impl Output {
    /// Opens a temporary file beside `path`.
    ///
    /// # Errors
    /// The folder does not exist or cannot be written to; `path` is there but
    /// is no regular file, or one that may not be written.
    pub fn create(path: &Path) -> Outcome<Self> {
        let target = resolve(path);
        let mut mode = 0o666; // less the umask, as for any new file
        match fs::metadata(&target) {
            Ok(there) if there.is_dir() => {
                return fail(format!("cannot write {}: it is a folder", path.display()));
            }
            Ok(there) if !there.is_file() => {
                return fail(format!("cannot write {}: it is not a regular file", path.display()));
            }
            Ok(there) => {
                // Renaming over a file needs no leave of the file; ask for it all the same.
                OpenOptions::new()
                    .write(true)
                    .open(&target)
                    .map_err(|error| io_failure("write", path, &error))?;
                mode = there.permissions().mode() & 0o777;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_failure("write", path, &error)),
        }
        if target.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return fail(format!("cannot write {}: it is the name of a folder", path.display()));
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return fail(format!("cannot write {}: there is no folder {}", path.display(), folder.display()));
        }
        let make = || {
            tempfile::Builder::new()
                .prefix(".ferrier-")
                .suffix(".part")
                .permissions(Permissions::from_mode(mode))
                .tempfile_in(folder)
        };
        let temp = signals::guarded(make, |temp| temp.path()).map_err(|error| {
            // tempfile adds its own file's name to the message; the user knows the folder.
            let cause = error.raw_os_error().map(io::Error::from_raw_os_error);
            Failure::new(format!(
                "cannot write {}: no file can be made in {}: {}",
                path.display(),
                folder.display(),
                io_text(&cause.unwrap_or(error))
            ))
        })?;
        if target.exists() {
            // The umask has cut what the old file allowed. Best effort: a file
            // with narrower permissions is still a right file.
            let _ = temp.as_file().set_permissions(Permissions::from_mode(mode));
        }
        Ok(Output { file: Temporary::Ours(temp), target })
    }

    /// Opens the temporary file `temporary` that another process has made to
    /// become `path`. Committing it does nothing: that is the other's to do.
    ///
    /// # Errors
    /// It is not there, or may not be written.
    pub fn join(temporary: &Path, path: &Path) -> Outcome<Self> {
        let file = OpenOptions::new().write(true).open(temporary).map_err(|error| {
            Failure::new(format!(
                "cannot write {}: {}, which the first process has made, cannot be opened (is its folder on a file \
                 system that all hosts share?): {}",
                path.display(),
                temporary.display(),
                io_text(&error)
            ))
        })?;
        signals::share(temporary);
        Ok(Output { file: Temporary::Anothers(file, temporary.into()), target: path.into() })
    }

    /// Where the file is meanwhile.
    pub fn temporary(&self) -> &Path {
        match &self.file {
            Temporary::Ours(temp) => temp.path(),
            Temporary::Anothers(_, path) => path,
        }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match &self.file {
            Temporary::Ours(temp) => temp.as_file(),
            Temporary::Anothers(file, _) => file,
        }
    }

    /// Takes `bytes` of disk now, so that a full one is found before the work
    /// is done and not after it.
    ///
    /// # Errors
    /// The disk is full, or such a file is not allowed.
    pub fn reserve(&self, bytes: u64) -> Outcome {
        let no_room = |error: io::Error| {
            Failure::new(format!(
                "cannot write {}: no room for {bytes} bytes: {}",
                self.target.display(),
                io_text(&error)
            ))
        };
        let Ok(length) = libc::off_t::try_from(bytes) else {
            return Err(no_room(io::ErrorKind::FileTooLarge.into()));
        };
        // Sets the length too: what is not written later would read as zeros.
        self.file().set_len(bytes).map_err(no_room)?;
        #[cfg(target_os = "linux")]
        loop {
            // SAFETY: a plain call on an open descriptor.
            let status = unsafe { libc::fallocate(self.file().as_raw_fd(), 0, 0, length) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                _ if status == 0 => break,
                Some(libc::EINTR) => continue,
                // A file system that cannot promise: the writes will tell.
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => break,
                _ => return Err(no_room(error)),
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = length;
        Ok(())
    }

    /// Gives the file its name, once its contents are on disk.
    ///
    /// # Errors
    /// The disk refuses; the target is then as it was.
    pub fn commit(self) -> Outcome {
        let Output { file, target } = self;
        let Temporary::Ours(temp) = file else {
            signals::forget();
            return Ok(());
        };
        let done =
            temp.as_file().sync_all().map_err(|error| io_failure("write", &target, &error)).and_then(|()| {
                temp.persist(&target).map_err(|error| io_failure("write", &target, &error.error)).map(|_| ())
            });
        signals::forget();
        done?;
        // The rename itself reaches the disk with the folder; best effort,
        // since some file systems cannot sync a folder.
        if let Some(folder) = target.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

/// Could [`write_text`] write there? Asked before long work, not after it.
///
/// # Errors
/// Those of [`write_text`].
pub fn check_text(path: &Path) -> Outcome {
    if is_special(path) { Ok(()) } else { Output::create(path).map(|_| ()) }
}

/// A device or a pipe: to be written to, not to be replaced.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Writes `text` to `path`: whole or not at all where that is a file,
/// straight where it is a device or a pipe.
///
/// # Errors
/// The file cannot be written.
pub fn write_text(path: &Path, text: &str) -> Outcome {
    use std::io::Write;
    if is_special(path) {
        return fs::write(path, text).map_err(|error| io_failure("write", path, &error));
    }
    let output = Output::create(path)?;
    let mut file = output.file();
    file.write_all(text.as_bytes()).map_err(|error| io_failure("write", path, &error))?;
    output.commit()
}

/// The file behind a chain of symbolic links, so that a rename replaces the
/// file and not the link.
fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(next) if next.is_absolute() => path = next,
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    path
}
