//! Files that appear complete or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::failure::{agree, cannot, cannot_io, io_text};
use super::pending::{self, announce};
use crate::{Comm, Result};

/// A file that gets its name in [`commit`](AtomicFile::commit) and is removed otherwise, however the
/// process ends.
#[derive(Debug)]
pub struct AtomicFile {
    file: Temporary,
    target: PathBuf,
}

/// An unfinished file. The process that made it names or removes it.
#[derive(Debug)]
enum Temporary {
    Nameless(File),
    Hidden(NamedTempFile),
    Joined(File),
}

/// When a file gets a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// At the end, if the file system supports it.
    Late,
    /// At once, a hidden name in the folder of the target, by which other machines open it.
    Early,
}

impl AtomicFile {
    /// Creates a file that becomes `path` in [`commit`](AtomicFile::commit).
    ///
    /// # Errors
    /// The folder does not exist or cannot be written; `path` exists but is not a regular file
    /// or not writable.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_as(path, Naming::Late)
    }

    pub(crate) fn create_as(path: &Path, naming: Naming) -> Result<Self> {
        let target = resolve(path);
        let mode = mode_of(path, &target)?;
        if target.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(cannot("write", path, "it is the name of a folder"));
        }
        let folder = folder_of(&target);
        if !folder.is_dir() {
            return Err(cannot("write", path, format_args!("there is no folder {}", folder.display())));
        }
        pending::remove_stale(folder);
        let file = make(folder, mode.unwrap_or(0o666), naming).map_err(|error| {
            // tempfile adds the name of the temporary file to the message; the folder is enough.
            let cause = error.raw_os_error().map(io::Error::from_raw_os_error);
            let text = io_text(&cause.unwrap_or(error));
            cannot("write", path, format_args!("no file can be made in {}: {text}", folder.display()))
        })?;
        let output = AtomicFile { file, target };
        if let Some(mode) = mode {
            // The umask may have removed permissions of the old file. Best effort: narrower
            // permissions are acceptable.
            let _ = output.file().set_permissions(Permissions::from_mode(mode));
        }
        Ok(output)
    }

    /// Opens the file of `path` on every rank. The first rank creates it with the bytes of `head` and `bytes` more,
    /// the others open that file. Collective.
    ///
    /// # Errors
    /// It cannot be written; the same error on every rank.
    pub(crate) fn create_shared(comm: &Comm, path: &Path, head: &[u8], bytes: u64) -> Result<Self> {
        if comm.node_count() == 1 {
            match Self::share_as(comm, path, head, bytes, Naming::Late)? {
                // Open files of other processes are not accessible: use a hidden name.
                Err(_) => {}
                Ok(file) => return Ok(file),
            }
        }
        Self::share_as(comm, path, head, bytes, Naming::Early)?
    }

    /// The outer error is that of creating the file, the inner that of opening it.
    fn share_as(comm: &Comm, path: &Path, head: &[u8], bytes: u64, naming: Naming) -> Result<Result<Self>> {
        let make = || {
            let output = Self::create_as(path, naming)?;
            output.reserve(head.len() as u64 + bytes)?;
            output.file().write_all_at(head, 0).map_err(|error| cannot_io("write", path, error))?;
            let invitation = output.invitation()?;
            Ok((output, invitation))
        };
        let made = if comm.rank() == 0 { make().map(Some) } else { Ok(None) };
        let made = agree(comm, path, made, false)?;
        let invitation = comm.all_gather(made.as_ref().map_or(&[], |(_, own)| own))?.swap_remove(0);
        let opened = made.map_or_else(|| Self::join(&invitation, path), |(output, _)| Ok(output));
        Ok(agree(comm, path, opened, true))
    }

    /// The bytes by which another process opens this file; see [`join`](AtomicFile::join).
    ///
    /// # Errors
    /// The system does not give the identity of the file.
    fn invitation(&self) -> Result<Vec<u8>> {
        let (path, [device, number]) = match &self.file {
            Temporary::Hidden(temp) => (temp.path().to_path_buf(), [0; 2]),
            Temporary::Nameless(file) | Temporary::Joined(file) => {
                pending::place(file).map_err(|error| cannot_io("write", &self.target, error))?
            }
        };
        Ok([format!("{device} {number} ").as_bytes(), path.as_os_str().as_bytes()].concat())
    }

    /// Opens the file that another process created for `path`. Committing it does nothing: the
    /// other process commits.
    ///
    /// # Errors
    /// It does not exist or cannot be written.
    fn join(invitation: &[u8], path: &Path) -> Result<Self> {
        let mut words = invitation.splitn(3, |&byte| byte == b' ');
        let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
        let identity = [number().unwrap_or(0), number().unwrap_or(0)];
        let place = Path::new(OsStr::from_bytes(words.next().unwrap_or_default()));
        let hidden = identity == [0; 2];
        let opened = OpenOptions::new().write(true).open(place).and_then(|file| {
            // Process ids in another container refer to other processes.
            let meant = hidden || pending::identity(&file)? == identity;
            if meant { Ok(file) } else { Err(io::Error::other("it is another file")) }
        });
        let file = opened.map_err(|error| {
            let why = format!(
                "{}, which the first process has made, cannot be opened (is its folder on a file system that all \
                 hosts share?): {}",
                place.display(),
                io_text(&error)
            );
            cannot("write", path, why)
        })?;
        if hidden {
            announce(Some(place));
        }
        Ok(AtomicFile { file: Temporary::Joined(file), target: path.into() })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        match &self.file {
            Temporary::Hidden(temp) => temp.as_file(),
            Temporary::Nameless(file) | Temporary::Joined(file) => file,
        }
    }

    /// Allocates `bytes` on disk, so that a full disk is an error before the work and not after it.
    ///
    /// # Errors
    /// The disk is full, or the file is larger than allowed.
    fn reserve(&self, bytes: u64) -> Result<()> {
        let no_room = |error: io::Error| {
            cannot("write", &self.target, format_args!("no room for {bytes} bytes: {}", io_text(&error)))
        };
        let Ok(length) = libc::off_t::try_from(bytes) else {
            return Err(no_room(io::ErrorKind::FileTooLarge.into()));
        };
        // Sets the length too, so that parts can be written in any order.
        self.file().set_len(bytes).map_err(no_room)?;
        #[cfg(target_os = "linux")]
        loop {
            // SAFETY: `fallocate` only needs an open descriptor, which `file` owns.
            let status = unsafe { libc::fallocate(self.file().as_raw_fd(), 0, 0, length) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                _ if status == 0 => break,
                Some(libc::EINTR) => continue,
                // The file system cannot allocate in advance: writes may fail later.
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => break,
                _ => return Err(no_room(error)),
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = length;
        Ok(())
    }

    /// Writes the contents to disk and gives the file its name.
    ///
    /// # Errors
    /// Writing fails; the target then keeps its contents.
    pub fn commit(self) -> Result<()> {
        let AtomicFile { file, target } = self;
        let named = match file {
            Temporary::Joined(_) => {
                announce(None);
                return Ok(());
            }
            Temporary::Hidden(temp) => {
                temp.as_file().sync_all().and_then(|()| temp.persist(&target).map(drop).map_err(|e| e.error))
            }
            Temporary::Nameless(file) => file.sync_all().and_then(|()| name(&file, &target)),
        };
        announce(None);
        named.map_err(|error| cannot_io("write", &target, error))?;
        // Syncing the folder writes the name to disk. Best effort: some file systems cannot sync
        // a folder.
        let _ = File::open(folder_of(&target)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// The permissions of the existing file; `None` if there is none.
fn mode_of(path: &Path, target: &Path) -> Result<Option<u32>> {
    match fs::metadata(target) {
        Ok(there) if there.is_dir() => Err(cannot("write", path, "it is a folder")),
        Ok(there) if !there.is_file() => Err(cannot("write", path, "it is not a regular file")),
        Ok(there) => {
            // Renaming over a file does not need write permission on it; require it anyway.
            let opened = OpenOptions::new().write(true).open(target);
            opened.map_err(|error| cannot_io("write", path, error))?;
            Ok(Some(there.permissions().mode() & 0o777))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_io("write", path, error)),
    }
}

pub(super) fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A locked file in `folder`. The umask applies to the mode.
fn make(folder: &Path, mode: u32, naming: Naming) -> io::Result<Temporary> {
    if naming == Naming::Late
        && let Some(file) = pending::nameless(folder, mode)?
    {
        pending::lock(&file);
        return Ok(Temporary::Nameless(file));
    }
    loop {
        let temp = pending::named().make_in(folder, |path| {
            announce(Some(path));
            OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
        })?;
        // Another process may have removed it as stale before it was locked.
        if pending::lock(temp.as_file()) && temp.path().exists() {
            return Ok(Temporary::Hidden(temp));
        }
        announce(None);
    }
}

/// Gives a nameless file the name of the target, which it replaces.
fn name(file: &File, target: &Path) -> io::Result<()> {
    match pending::link(file, target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        outcome => return outcome,
    }
    // Only a file with a name can replace another.
    let linked = pending::named().make_in(folder_of(target), |name| {
        announce(Some(name));
        pending::link(file, name)
    })?;
    linked.persist(target).map(drop).map_err(|error| error.error)
}

/// The file at the end of a chain of symbolic links, so that a rename replaces the file and not
/// the link.
pub(super) fn resolve(path: &Path) -> PathBuf {
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
