//! Folders that appear complete or not at all.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::failure::{cannot, cannot_io, io_text};
use super::super::location::Location;
use super::super::output::{folder_of, resolve};
use super::super::pending::{self, announce};
use super::metadata::{self, Node};
use crate::Result;

/// A folder with a hidden name beside its target. Removed unless it is committed.
#[derive(Debug)]
pub struct PendingFolder {
    path: PathBuf,
    target: PathBuf,
    /// Keeps other processes from removing it as stale.
    _lock: File,
}

/// Where an array is written: which folder replaces the target, and the folders of groups below it.
pub struct Destination {
    /// The folder that appears: the array, the new store, or a new group of a store.
    target: PathBuf,
    /// Groups to be made and the array, below the target.
    below: Vec<String>,
}

impl Destination {
    /// Where the array of `location` is written; `name` is what the user has given.
    ///
    /// # Errors
    /// Something else has the name; a name of a part of an array.
    pub fn new(name: &Path, location: &Location) -> Result<Destination> {
        let wrong = |why: String| Err(cannot("write", name, why));
        if location.slice.is_some() {
            return wrong("arrays are written as a whole; leave the brackets out".into());
        }
        let mut target = resolve(&location.path);
        if target.file_name().is_none() {
            return wrong("it is the name of a folder".into());
        }
        let parts = location.array.as_deref().map_or(Vec::new(), |inner| inner.split('/').collect());
        if let Some(bad) = parts.iter().find(|part| part.is_empty() || part.starts_with(['.', '_'])) {
            return wrong(format!("`{bad}` is not a name for an array or group of a store"));
        }
        // Goes down to the first folder that does not exist.
        let mut left = parts.into_iter();
        loop {
            let here = target.display().to_string();
            let there = match fs::metadata(&target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(cannot_io("write", name, error)),
                Ok(there) if !there.is_dir() => return wrong(format!("{here} exists and is not a folder")),
                Ok(_) => Some(metadata::node(&target).map_err(|why| cannot("write", name, why))?),
            };
            let is_last = left.len() == 0;
            match there {
                None => break,
                Some(Node::Array(_)) if is_last => break,
                Some(Node::Array(_)) => return wrong(format!("{here} is an array, not a group")),
                Some(Node::Group) if is_last => {
                    return wrong(format!(
                        "{here} is a Zarr group; name an array in it: {}::NAME",
                        name.display()
                    ));
                }
                Some(Node::Group) => target.extend(left.next()),
                Some(Node::None) if is_empty(&target) => break,
                Some(Node::None) => return wrong(format!("{here} is a folder, and not a Zarr array")),
            }
        }
        Ok(Destination { target, below: left.map(str::to_string).collect() })
    }

    /// The folder of the array, below a folder that stands for the target.
    pub fn array_in(&self, folder: &Path) -> PathBuf {
        self.below.iter().fold(folder.into(), |path, part| path.join(part))
    }

    /// Makes an unfinished folder for it, with its groups.
    ///
    /// # Errors
    /// No folder can be made.
    pub fn create(&self, name: &Path) -> Result<PendingFolder> {
        let parent = folder_of(&self.target);
        if !parent.is_dir() {
            return Err(cannot("write", name, format_args!("there is no folder {}", parent.display())));
        }
        pending::remove_stale(parent);
        let make = || loop {
            let made = pending::named().make_in(parent, |path| {
                announce(Some(path));
                fs::create_dir(path)
            })?;
            let path = made.into_temp_path().keep().map_err(|error| error.error)?;
            let lock = File::open(&path)?;
            // Another process may have removed it as stale before it was locked.
            if pending::lock(&lock) && path.exists() {
                return Ok(PendingFolder { path, target: self.target.clone(), _lock: lock });
            }
        };
        let folder = make().map_err(|error: io::Error| {
            let cause = error.raw_os_error().map(io::Error::from_raw_os_error);
            let text = io_text(&cause.unwrap_or(error));
            cannot("write", name, format_args!("no folder can be made in {}: {text}", parent.display()))
        })?;
        let mut group = folder.path.clone();
        for part in &self.below {
            write_json(&group, &metadata::group()).map_err(|error| cannot_io("write", name, error))?;
            group.push(part);
        }
        Ok(folder)
    }
}

/// Writes the metadata of a folder, which is made.
pub fn write_json(folder: &Path, value: &serde_json::Value) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join(metadata::FILE))?;
    serde_json::to_writer_pretty(&file, value)?;
    file.sync_all()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

impl PendingFolder {
    /// The hidden name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    /// It cannot be renamed; the target then keeps its contents.
    pub fn commit(self, name: &Path) -> Result<()> {
        let renamed = fs::rename(&self.path, &self.target).or_else(|error| match error.raw_os_error() {
            // The old folder gets the hidden name, and is removed with it.
            Some(libc::ENOTEMPTY | libc::EEXIST) => exchange(&self.path, &self.target),
            _ => Err(error),
        });
        renamed.map_err(|error| cannot_io("write", name, error))?;
        // Syncing the folder writes the name to disk. Best effort: some file systems cannot sync a folder.
        let _ = File::open(folder_of(&self.target)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Removes what has the hidden name: an unfinished folder, or the one that was replaced.
impl Drop for PendingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        announce(None);
    }
}

/// Exchanges the names of two folders, at once where the system can.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
        let (from, to) = (text(one)?, text(other)?);
        let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
        // SAFETY: both pointers are to C strings that live during the call; the arguments are those of renameat2.
        let status =
            unsafe { libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags) };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            _ if status == 0 => return Ok(()),
            // Not every file system can.
            Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {}
            _ => return Err(error),
        }
    }
    let old = pending::named().make_in(folder_of(other), |path| fs::rename(other, path))?;
    let old = old.into_temp_path().keep().map_err(|error| error.error)?;
    if let Err(error) = fs::rename(one, other) {
        let _ = fs::rename(&old, other);
        return Err(error);
    }
    fs::rename(&old, one)
}
