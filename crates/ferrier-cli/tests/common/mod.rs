//! What the tests of the command share. Each test uses only some of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The command, ready for arguments.
pub fn ferrier() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ferrier"))
}

/// Runs the command with these words.
pub fn run(words: &[&str]) -> Output {
    ferrier().args(words).output().unwrap()
}

/// stderr of a command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// stdout of a command.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The command failed as it should: exit code 2, one line that begins with
/// `ferrier: ` and contains `part`, nothing on stdout.
pub fn assert_refused(output: &Output, part: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("ferrier: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(part), "`{part}` is not in: {said}");
    assert!(!said.contains("panicked") && !said.contains("internal error"), "{said}");
    assert!(output.stdout.is_empty(), "{}", stdout(output));
}

/// A folder with files of its own.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path as a word of a command line.
    pub fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    /// The names of the files, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// An .npy file with zeros.
    pub fn npy(&self, name: &str, descr: &str, shape: &[usize]) -> String {
        let bytes = shape.iter().product::<usize>() * descr[2..].parse::<usize>().unwrap();
        self.file(name, &npy(&format!("'{descr}'"), shape, &vec![0; bytes]))
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.word(name)
    }
}

/// The bytes of an .npy file, whether it makes sense or not.
pub fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let lengths: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({lengths}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

/// The doubles of a file that `ferrier` wrote.
pub fn doubles(path: &Path) -> Vec<f64> {
    let bytes = fs::read(path).unwrap();
    let text = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    bytes[10 + text..].chunks_exact(8).map(|chunk| f64::from_le_bytes(chunk.try_into().unwrap())).collect()
}
