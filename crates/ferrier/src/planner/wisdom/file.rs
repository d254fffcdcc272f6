//! The file of wisdom: read whole, written whole, never lost.
//!
//! Readers take no lock: the file is replaced by a rename, so it is always
//! one version or the next. Writers hold a lock on a file beside it from
//! reading to renaming, so that no two of them can each miss what the other
//! adds. A file that is not ours, or not whole, is renamed before another
//! takes its place.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Entry, Wisdom};
use crate::{Error, Result};

/// The version of the file's form.
const VERSION: u64 = 1;
/// The key that says that a file is one of ours.
const MARK: &str = "ferrier_wisdom";
/// A file longer than this is none of ours.
const LARGEST: u64 = 256 << 20;
/// How long a writer waits for others: each needs some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// What lies where the file should be.
pub(super) enum There {
    Nothing,
    Whole(Wisdom),
    /// A file, but not one to use: what is wrong with it.
    Strange(String),
}

fn trouble(what: &str, path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let cause = cause.into();
    let message = format!("cannot {what} the wisdom in {}: {cause}", path.display());
    Error::Wisdom { path: path.to_path_buf(), message, source: Some(cause.into()) }
}

/// Reads a file. Takes no lock, changes nothing.
///
/// # Errors
/// It is there, but is no file or may not be read.
pub(super) fn read(path: &Path) -> Result<There> {
    match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(There::Nothing);
        }
        Err(error) => return Err(trouble("read", path, error)),
        // Not even opened: to open a pipe is to wait for whoever writes to it.
        Ok(there) if !there.is_file() => return Err(trouble("read", path, "it is not a regular file")),
        Ok(there) if there.len() > LARGEST => {
            return Ok(There::Strange(format!("{} bytes are more than it could have", there.len())));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    read.map_err(|error| trouble("read", path, error))?;
    Ok(match parse(&bytes) {
        Ok(wisdom) => There::Whole(wisdom),
        Err(reason) => There::Strange(reason),
    })
}

fn parse(bytes: &[u8]) -> std::result::Result<Wisdom, String> {
    if bytes.is_empty() {
        return Err("it is empty".into());
    }
    let mut text: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not whole: {error}"))?;
    match text[MARK].as_u64() {
        None => return Err("it is not a file of wisdom".into()),
        Some(version) if version > VERSION => {
            return Err(format!("it is of version {version}, this Ferrier knows {VERSION}"));
        }
        Some(_) => {}
    }
    let Value::Array(entries) = text["entries"].take() else {
        return Err("it has no list of entries".into());
    };
    // An entry that cannot be understood is kept as it is: somebody can.
    let understood = |raw: Value| (serde_json::from_value::<Entry>(raw.clone()).ok(), raw);
    Ok(Wisdom { entries: entries.into_iter().map(understood).collect() })
}

/// Reads a file, lets `change` change what is in it, and replaces it; says
/// where a file that was not usable has gone.
///
/// # Errors
/// It cannot be written; it is then as it was.
pub(super) fn update(path: &Path, change: impl FnOnce(&mut Wisdom)) -> Result<Option<(PathBuf, String)>> {
    let target = resolve(path);
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let fail = |error: std::io::Error| trouble("write", path, error);
    fs::create_dir_all(&folder).map_err(fail)?;
    let _lock = lock(&beside(&target, ".lock")).map_err(|why| trouble("write", path, why))?;
    let mut aside = None;
    let mut wisdom = match read(&target)? {
        There::Nothing => Wisdom::default(),
        There::Whole(wisdom) => wisdom,
        There::Strange(reason) => {
            aside = Some((set_aside(&target).map_err(fail)?, reason));
            Wisdom::default()
        }
    };
    change(&mut wisdom);
    replace(&target, &wisdom).map_err(fail)?;
    // The rename itself reaches the disk with the folder; some file systems cannot sync one.
    let _ = File::open(&folder).and_then(|folder| folder.sync_all());
    Ok(aside)
}

/// Writes under another name and renames. Needs the lock: the other name is always the same, so
/// that writers that were killed leave one such file at most, which the next one overwrites.
fn replace(target: &Path, wisdom: &Wisdom) -> std::io::Result<()> {
    let raw: Vec<&Value> = wisdom.entries.iter().map(|(_, raw)| raw).collect();
    let mut text = serde_json::to_string_pretty(&json!({ MARK: VERSION, "entries": raw }))?;
    text.push('\n');
    let part = beside(target, ".part");
    let old = fs::metadata(target);
    if old.is_ok() {
        // A rename needs no leave of the file; ask for it all the same.
        OpenOptions::new().write(true).open(target)?;
    }
    let mut file = File::create(&part)?;
    if let Ok(old) = old {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, target)
}

/// Gives a file a name that nothing has.
fn set_aside(target: &Path) -> std::io::Result<PathBuf> {
    let now = super::now();
    for number in 0.. {
        let name = beside(target, &format!(".aside-{now}-{number}"));
        if fs::symlink_metadata(&name).is_err() {
            fs::rename(target, &name)?;
            return Ok(name);
        }
    }
    unreachable!("there is always another number")
}

/// A lock that is gone with the process, however it goes.
fn lock(path: &Path) -> std::result::Result<File, String> {
    let text = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(text)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(text(error)),
            Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => {
                return Err(format!("another process has held {} for long", path.display()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    target.with_file_name(name)
}

/// The file behind symbolic links, so that a rename replaces the file and not the link.
fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    path
}
