//! Text files: reports, drawings, tables.

use std::fs;
use std::io::Write;
use std::path::Path;

use ferrier::io::AtomicFile;

use crate::failure::{Outcome, io_failure};

/// Checks that [`write`] can write to `path`. Called before long work.
///
/// # Errors
/// Those of [`write`].
pub fn check(path: &Path) -> Outcome {
    if is_special(path) { Ok(()) } else { Ok(AtomicFile::create(path).map(drop)?) }
}

/// Is it a device or a pipe, which is written and not replaced?
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Writes `text` to `path`: complete or not at all if it is a file, directly if it is a device or
/// a pipe.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> Outcome {
    if is_special(path) {
        return fs::write(path, text).map_err(|error| io_failure("write", path, &error));
    }
    let output = AtomicFile::create(path)?;
    let mut file = output.file();
    file.write_all(text.as_bytes()).map_err(|error| io_failure("write", path, &error))?;
    Ok(output.commit()?)
}
