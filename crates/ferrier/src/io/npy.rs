//! The header of an `.npy` file.
//!
//! The crate `npyz` is not used: it multiplies the lengths of the axes without a check (a panic
//! in debug builds, a wrong count in release), recurses as deep as the header nests and
//! allocates as much as the header claims. This parser reads the three keys of a header only.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::dtype::{Dtype, SUPPORTED};
use super::failure::{cannot, cannot_io};
use crate::Result as FileResult;

pub const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The limit of numpy for untrusted files.
const LONGEST_HEADER: usize = 10_000;
/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the elements.
    pub dtype: Dtype,
    /// The lengths of the axes.
    pub shape: Vec<usize>,
    /// The first axis is the fastest.
    pub fortran: bool,
    /// Offset of the first element in bytes.
    pub offset: u64,
}

impl Header {
    /// A header in C order and this machine's byte order, and its bytes.
    pub fn write(dtype: Dtype, shape: &[usize]) -> (Header, Vec<u8>) {
        let lengths: String = shape.iter().map(|n| format!("{n}, ")).collect();
        // As Python writes a tuple: (4,) but (4, 5).
        let lengths = if shape.len() == 1 { lengths.trim_end() } else { lengths.trim_end_matches(", ") };
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({lengths}), }}", dtype.descr());
        // Elements begin at a multiple of 64; the text ends with a newline.
        let before = MAGIC.len() + 4;
        let total = (before + text.len() + 1).next_multiple_of(64);
        text.push_str(&" ".repeat(total - before - text.len() - 1));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        (Header { dtype, shape: shape.to_vec(), fortran: false, offset: total as u64 }, bytes)
    }

    /// Reads the header of `file` and checks that the file has all elements.
    ///
    /// # Errors
    /// Not an `.npy` file, an unsupported element type, a truncated file.
    pub fn read(file: &File, path: &Path) -> FileResult<Header> {
        let wrong = |why: String| cannot("read", path, why);
        let there = file.metadata().map_err(|error| cannot_io("read", path, error))?;
        if !there.is_file() {
            let what = if there.is_dir() { "a folder" } else { "not a regular file" };
            return Err(wrong(format!("it is {what}")));
        }
        let read = |bytes: &mut [u8], at: u64| match file.read_exact_at(bytes, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(wrong("the file is truncated within its header".into()))
            }
            Err(error) => Err(cannot_io("read", path, error)),
            Ok(()) => Ok(()),
        };
        let mut start = [0; 12];
        let length = there.len().min(12) as usize;
        read(&mut start[..length], 0)?;
        if !start.starts_with(MAGIC) {
            return Err(wrong("it is not an .npy file".into()));
        }
        if length < 12 {
            return Err(wrong("the file is truncated within its header".into()));
        }
        let (text_at, text_len) = match start[6] {
            1 => (10, u16::from_le_bytes([start[8], start[9]]) as usize),
            2 | 3 => (12, u32::from_le_bytes([start[8], start[9], start[10], start[11]]) as usize),
            version => {
                return Err(wrong(format!("version {version} of the .npy format is not known (1 to 3 are)")));
            }
        };
        if text_len > LONGEST_HEADER {
            return Err(wrong(format!("its header claims {text_len} bytes, more than any array needs")));
        }
        let mut text = vec![0; text_len];
        read(&mut text, text_at)?;
        let parsed = parse(&text).map_err(|why| wrong(format!("its header is damaged: {why}")))?;
        let dtype = parsed.descr.and_then(|descr| of_descr(&descr)).map_err(wrong)?;
        let header =
            Header { dtype, shape: parsed.shape, fortran: parsed.fortran, offset: text_at + text_len as u64 };
        check_length(header.dtype, &header.shape, header.offset, there.len(), path)?;
        Ok(header)
    }
}

/// The element type of a header: with a byte order.
fn of_descr(descr: &str) -> Result<Dtype, String> {
    match Dtype::named(descr) {
        Some(_) => Err(format!("its elements are of type '{descr}'; supported are {SUPPORTED}")),
        None => descr.parse(),
    }
}

/// Checks that a file of `there` bytes has all elements of an array that begins at `offset`.
pub fn check_length(dtype: Dtype, shape: &[usize], offset: u64, there: u64, path: &Path) -> FileResult<()> {
    let announced = shape
        .iter()
        .try_fold(dtype.bytes() as u64, |product, &n| product.checked_mul(n as u64))
        .and_then(|bytes| bytes.checked_add(offset));
    let text = shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    match announced {
        None => Err(cannot("read", path, format_args!("shape {text} is too large: its size overflows"))),
        Some(bytes) if bytes > there => {
            let name = dtype.name();
            let why =
                format!("the file is truncated: shape {text} of {name} needs {bytes} bytes, it has {there}");
            Err(cannot("read", path, why))
        }
        Some(_) => Ok(()),
    }
}

struct Parsed {
    /// The element type, or why it is not supported.
    descr: Result<String, String>,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads the dictionary `{'descr': .., 'fortran_order': .., 'shape': ..}`.
fn parse(text: &[u8]) -> Result<Parsed, String> {
    let mut cursor = Cursor { text, at: 0 };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    cursor.expect(b'{')?;
    while !cursor.take(b'}') {
        let key = cursor.string()?;
        cursor.expect(b':')?;
        match key.as_str() {
            "descr" if cursor.peek() == Some(b'[') => {
                cursor.skip_list()?;
                descr = Some(Err(format!("it is a structured array; supported are {SUPPORTED}")));
            }
            "descr" => descr = Some(Ok(cursor.string()?)),
            "fortran_order" => fortran = Some(cursor.boolean()?),
            "shape" => shape = Some(cursor.tuple()?),
            _ => return Err(format!("unexpected key '{key}'")),
        }
        if !cursor.take(b',') {
            cursor.expect(b'}')?;
            break;
        }
    }
    Ok(Parsed {
        descr: descr.ok_or("no 'descr'")?,
        fortran: fortran.ok_or("no 'fortran_order'")?,
        shape: shape.ok_or("no 'shape'")?,
    })
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += there as usize;
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(format!("no '{}' at byte {}", byte as char, self.at)) }
    }

    fn word(&mut self, of: impl Fn(u8) -> bool) -> String {
        self.peek();
        let start = self.at;
        while self.text.get(self.at).is_some_and(|&byte| of(byte)) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = if self.take(b'"') { b'"' } else { self.expect(b'\'').map(|()| b'\'')? };
        let start = self.at;
        let length =
            self.text[start..].iter().position(|&byte| byte == quote).ok_or("a string has no end")?;
        self.at = start + length + 1;
        Ok(String::from_utf8_lossy(&self.text[start..start + length]).into_owned())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        match self.word(|byte| byte.is_ascii_alphabetic()).as_str() {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(format!("'{other}' is neither True nor False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect(b'(')?;
        let mut lengths = Vec::new();
        while !self.take(b')') {
            let digits = self.word(|byte| byte.is_ascii_digit());
            if digits.is_empty() {
                return Err("an axis whose length is not a number".into());
            }
            lengths.push(digits.parse().map_err(|_| format!("an axis of length {digits} is too long"))?);
            self.take(b'L'); // a long integer of Python 2
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(lengths)
    }

    /// Skips a structured type, which is not supported.
    fn skip_list(&mut self) -> Result<(), String> {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    self.string()?;
                    continue;
                }
                b'[' | b'(' => depth += 1,
                b']' | b')' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err("a list has no end".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    #[test]
    fn headers_read_back() {
        for complex in [false, true] {
            for precision in [Precision::F32, Precision::F64] {
                for shape in [&[7][..], &[3, 4], &[100000, 20000, 3]] {
                    let dtype = Dtype::new(complex, precision);
                    let (header, bytes) = Header::write(dtype, shape);
                    assert_eq!(bytes.len() as u64, header.offset);
                    assert_eq!(bytes.len() % 64, 0);
                    let parsed = parse(&bytes[10..]).unwrap();
                    assert_eq!(of_descr(&parsed.descr.unwrap()).unwrap(), dtype);
                    assert_eq!(parsed.shape, shape);
                    assert!(!parsed.fortran);
                }
            }
        }
    }

    #[test]
    fn other_writers_are_understood() {
        let text = b"{\"shape\":(2L, 3L),'fortran_order':True , 'descr' : '>c16'}   \n";
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.shape, [2, 3]);
        assert!(parsed.fortran);
        let dtype = of_descr(&parsed.descr.unwrap()).unwrap();
        assert_eq!((dtype.name(), dtype.is_big_endian()), ("complex128", true));
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let good = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }";
        for length in 0..good.len() {
            assert!(parse(&good[..length]).is_err(), "cut at {length}");
        }
        for at in 0..good.len() {
            for byte in [0, b'(', b'\'', b'}', b'[', b'9', 0xff] {
                let mut bad = good.to_vec();
                bad[at] = byte;
                let _ = parse(&bad).map(|parsed| parsed.descr.map(|descr| of_descr(&descr)));
            }
        }
        assert!(
            parse(b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}").is_err()
        );
        let structured =
            b"{'descr': [('a', '<f8'), ('b)', '<i4', (2, 2))], 'fortran_order': False, 'shape': (3,)}";
        assert!(parse(structured).unwrap().descr.unwrap_err().contains("structured"));
        for descr in ["<i8", "|b1", "<f2", "<U3", "", "é", "f8", "|O", "float32"] {
            assert!(of_descr(descr).is_err(), "{descr}");
        }
    }
}
