//! A folder as a store of `zarrs`. Lengths come from files that may be damaged, so they are compared with the size of
//! the file before memory is allocated for them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{
    Bytes, MaybeBytesIterator, OffsetBytesIterator, ReadableStorageTraits, StorageError, StoreKey,
    StorePrefix, WritableStorageTraits,
};

use super::super::failure::io_text;

/// A folder.
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// The store in this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        FolderStore { root: root.into() }
    }

    fn path(&self, key: &StoreKey) -> PathBuf {
        self.root.join(key.as_str())
    }
}

fn fault(key: &StoreKey, error: &io::Error) -> StorageError {
    StorageError::Other(format!("{key}: {}", io_text(error)))
}

/// The bytes of a range of a file of `length` bytes.
fn read(file: &File, length: u64, range: ByteRange) -> Result<Vec<u8>, String> {
    let (start, end) = match range {
        ByteRange::FromStart(start, None) => (Some(start), Some(length)),
        ByteRange::FromStart(start, Some(count)) => (Some(start), start.checked_add(count)),
        ByteRange::Suffix(count) => (length.checked_sub(count), Some(length)),
    };
    let (Some(start), Some(end)) = (start, end) else { return Err(truncated(length)) };
    if start > end || end > length {
        return Err(truncated(length));
    }
    let mut bytes = vec![0; (end - start) as usize];
    file.read_exact_at(&mut bytes, start).map_err(|error| io_text(&error))?;
    Ok(bytes)
}

fn truncated(length: u64) -> String {
    format!("it is truncated or damaged: bytes beyond its {length} are needed")
}

impl ReadableStorageTraits for FolderStore {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let opened = File::open(self.path(key)).and_then(|file| {
            let about = file.metadata()?;
            if about.is_file() { Ok((file, about.len())) } else { Err(io::Error::other("it is not a file")) }
        });
        let (file, length) = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(key, &error)),
            Ok(opened) => opened,
        };
        let key = key.clone();
        Ok(Some(Box::new(ranges.map(move |range| {
            let bytes = read(&file, length, range);
            bytes.map(Bytes::from).map_err(|why| StorageError::Other(format!("{key}: {why}")))
        }))))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        match fs::metadata(self.path(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(key, &error)),
            Ok(about) => Ok(Some(about.len())),
        }
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

impl WritableStorageTraits for FolderStore {
    /// Writes a new file, to disk.
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StorageError> {
        let path = self.path(key);
        let write = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::create(&path)?;
            file.write_all(&value)?;
            file.sync_all()
        };
        write().map_err(|error| fault(key, &error))
    }

    fn set_partial_many(&self, key: &StoreKey, _: OffsetBytesIterator) -> Result<(), StorageError> {
        Err(StorageError::Unsupported(format!("{key}: chunks are written as a whole")))
    }

    /// Chunks of zeros have no file.
    fn erase(&self, key: &StoreKey) -> Result<(), StorageError> {
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault(key, &error)),
            _ => Ok(()),
        }
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StorageError> {
        Err(StorageError::Unsupported(format!("{prefix}: folders are not removed")))
    }

    fn supports_set_partial(&self) -> bool {
        false
    }
}
