//! The wisdom file.
//!
//! Readers take no lock: the file is replaced by a rename, so that a reader sees one version or the next. Writers
//! hold a lock on a second file from reading to renaming, so that no update is lost. An invalid file is renamed
//! before a new one is written.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::entries::{Entry, Wisdom};
use crate::planner::entry_ref::now;
use crate::{Error, Result};

/// The version of the file format.
const VERSION: u64 = 1;
/// The key that identifies a wisdom file.
const FORMAT_KEY: &str = "ferrier_wisdom";
/// The largest size of a valid file, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// How long a writer waits for others: each needs some milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// The wisdom file that a planner uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum WisdomFile {
    /// The file of [`user_file`].
    #[default]
    User,
    Path(PathBuf),
    Off,
}

impl WisdomFile {
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            WisdomFile::User => user_file(),
            WisdomFile::Path(path) => Some(path.clone()),
            WisdomFile::Off => None,
        }
    }
}

/// The user's wisdom file: `FERRIER_WISDOM`, or `ferrier/wisdom.json` in the user's data folder. `None` if
/// `FERRIER_WISDOM` is `off` or there is no data folder.
pub fn user_file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = variable("FERRIER_WISDOM") {
        return (!named.eq_ignore_ascii_case("off")).then(|| named.into());
    }
    // The XDG specification requires that relative paths are ignored.
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let data = data.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))?;
    Some(data.join("ferrier/wisdom.json"))
}

impl Wisdom {
    /// Reads a file; empty if it does not exist. Takes no lock.
    ///
    /// # Errors
    /// [`Error::Wisdom`] if it cannot be read, is incomplete, is no wisdom file, or is of a later version.
    pub fn read(path: &Path) -> Result<Wisdom> {
        let Some(bytes) = read_bytes(path)? else { return Ok(Wisdom::default()) };
        parse(&bytes).map_err(|reason| Error::wisdom(path, invalid(path, &reason)))
    }

    /// Reads a file, applies `change`, and replaces the file, under a lock. An invalid file is kept under another
    /// name, with a warning on stderr.
    ///
    /// # Errors
    /// [`Error::Wisdom`] if it cannot be written; it is then unchanged.
    pub fn update(path: &Path, change: impl FnOnce(&mut Wisdom)) -> Result<()> {
        let target = resolve(path);
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let fail = |error: std::io::Error| failed("write", path, error);
        fs::create_dir_all(&folder).map_err(fail)?;
        let _lock = lock(&beside(&target, ".lock")).map_err(|reason| failed("write", path, reason))?;
        let mut wisdom = match read_bytes(&target)?.map(|bytes| parse(&bytes)) {
            None => Wisdom::default(),
            Some(Ok(wisdom)) => wisdom,
            Some(Err(reason)) => {
                let aside = set_aside(&target).map_err(fail)?;
                warn(&format!("{}; it is now {}", invalid(path, &reason), aside.display()));
                Wisdom::default()
            }
        };
        change(&mut wisdom);
        replace(&target, &wisdom).map_err(fail)?;
        // Makes the rename durable. Some file systems cannot sync a folder.
        let _ = File::open(&folder).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

fn invalid(path: &Path, reason: &str) -> String {
    format!("the wisdom in {} cannot be used: {reason}", path.display())
}

fn failed(what: &str, path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let cause = cause.into();
    let message = format!("cannot {what} the wisdom in {}: {cause}", path.display());
    Error::Wisdom { path: path.to_path_buf(), message, source: Some(cause.into()) }
}

/// Prints a warning on stderr, each text once.
pub(super) fn warn(text: &str) {
    static PRINTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.get_or_insert_default().insert(text.to_string()) {
        eprintln!("ferrier: warning: {text}");
    }
}

/// The bytes of a file, at most one more than [`MAX_BYTES`]; `None` if it does not exist.
fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    let fail = |error| failed("read", path, error);
    match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // Opening a pipe would wait for a writer.
        Ok(metadata) if !metadata.is_file() => return Err(failed("read", path, "it is not a regular file")),
        metadata => metadata.map_err(fail)?,
    };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(fail)?;
    Ok(Some(bytes))
}

fn parse(bytes: &[u8]) -> std::result::Result<Wisdom, String> {
    match bytes.len() as u64 {
        0 => return Err("it is empty".into()),
        length if length > MAX_BYTES => return Err(format!("it has more than {MAX_BYTES} bytes")),
        _ => {}
    }
    let mut text: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not whole: {error}"))?;
    match text[FORMAT_KEY].as_u64() {
        None => return Err("it is not a file of wisdom".into()),
        Some(version) if version > VERSION => {
            return Err(format!("it is of version {version}, this Ferrier knows {VERSION}"));
        }
        Some(_) => {}
    }
    let Value::Array(entries) = text["entries"].take() else {
        return Err("it has no list of entries".into());
    };
    // Entries that this version cannot parse are kept: another version may.
    let parsed = |raw: Value| (serde_json::from_value::<Entry>(raw.clone()).ok(), raw);
    Ok(Wisdom { entries: entries.into_iter().map(parsed).collect() })
}

/// Writes a second file and renames it. Needs the lock: the name of the second file is always the same, so that
/// killed writers leave one such file at most, which the next one overwrites.
fn replace(target: &Path, wisdom: &Wisdom) -> std::io::Result<()> {
    let raw: Vec<&Value> = wisdom.entries.iter().map(|(_, raw)| raw).collect();
    let mut text = serde_json::to_string_pretty(&json!({ FORMAT_KEY: VERSION, "entries": raw }))?;
    text.push('\n');
    let part = beside(target, ".part");
    let old = fs::metadata(target);
    if old.is_ok() {
        // A rename ignores the permissions of the replaced file; opening it checks them.
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

/// Renames a file to an unused name.
fn set_aside(target: &Path) -> std::io::Result<PathBuf> {
    let now = now();
    for number in 0.. {
        let name = beside(target, &format!(".aside-{now}-{number}"));
        if fs::symlink_metadata(&name).is_err() {
            fs::rename(target, &name)?;
            return Ok(name);
        }
    }
    unreachable!("there is always another number")
}

/// Locks a file. The system releases the lock when the process ends.
fn lock(path: &Path) -> std::result::Result<File, String> {
    let text = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(text)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(text(error)),
            Err(TryLockError::WouldBlock) if began.elapsed() > LOCK_TIMEOUT => {
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

/// Follows symbolic links, so that a rename replaces the file and not the link.
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

/// Identifies a version of a file.
#[derive(PartialEq, Eq)]
struct FileVersion {
    path: PathBuf,
    changed: Option<SystemTime>,
    length: u64,
    /// The inode. Clocks of file systems are coarse, but a replaced file has another inode.
    inode: u64,
}

impl FileVersion {
    fn new(path: &Path, metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        FileVersion {
            path: path.to_path_buf(),
            changed: metadata.modified().ok(),
            length: metadata.len(),
            inode,
        }
    }
}

/// The contents of a file, parsed once for each version; `None`, with a warning, if it cannot be read.
pub(super) fn cached(path: &Path) -> Option<Arc<Wisdom>> {
    static LAST: Mutex<Option<(FileVersion, Arc<Wisdom>)>> = Mutex::new(None);
    let version = FileVersion::new(path, &fs::metadata(path).ok()?);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, wisdom)) = &*last
        && *known == version
    {
        return Some(wisdom.clone());
    }
    match Wisdom::read(path) {
        Ok(wisdom) => {
            let wisdom = Arc::new(wisdom);
            *last = Some((version, wisdom.clone()));
            Some(wisdom)
        }
        Err(error) => {
            warn(&error.to_string());
            None
        }
    }
}
