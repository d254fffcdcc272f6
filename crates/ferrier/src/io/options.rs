//! How a file is written.

use std::str::FromStr;

use super::location::Format;

/// How a file is written. The defaults follow from its name and shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The format; `None`: by the name, see [`Format::of_name`].
    pub format: Option<Format>,
    /// Raw files: the most significant byte first.
    pub big_endian: bool,
    /// Zarr: lengths of a chunk, one per axis, or one for all. Empty: about 2^18 elements, as cubic as the shape.
    pub chunks: Vec<usize>,
    /// Zarr: lengths of a shard, a file of several chunks; multiples of those of a chunk. Empty: a file per chunk.
    pub shards: Vec<usize>,
    /// Zarr: how chunks are compressed.
    pub compress: Compression,
}

/// How chunks are compressed; all without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// zstd of this level, 1 to 22.
    Zstd(u8),
    /// gzip of this level, 0 to 9.
    Gzip(u8),
    /// Blosc of this level, 1 to 9: zstd of the first bytes of all scalars, then of the second ones, ... Smaller than zstd
    /// alone where neighbours are alike.
    Blosc(u8),
}

/// The level at which zstd takes about as long as writing to a disk.
impl Default for Compression {
    fn default() -> Self {
        Compression::Zstd(1)
    }
}

/// `none`, `zstd`, `zstd:3`, `gzip`, `gzip:5`, `blosc`, `blosc:5`.
impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = "none, zstd:1 to zstd:22, gzip:0 to gzip:9, blosc:1 to blosc:9";
        let wrong = || format!("unknown compression `{text}`; known are: {known}");
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (name, level) {
            ("none", None) => Ok(Compression::None),
            ("zstd", level) if (1..=22).contains(&level.unwrap_or(1)) => {
                Ok(Compression::Zstd(level.unwrap_or(1)))
            }
            ("blosc", level) if (1..=9).contains(&level.unwrap_or(1)) => {
                Ok(Compression::Blosc(level.unwrap_or(1)))
            }
            ("gzip", level) if level.unwrap_or(5) <= 9 => Ok(Compression::Gzip(level.unwrap_or(5))),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked() {
        for (text, value) in [
            ("none", Compression::None),
            ("zstd", Compression::Zstd(1)),
            ("zstd:9", Compression::Zstd(9)),
            ("gzip:0", Compression::Gzip(0)),
            ("blosc:9", Compression::Blosc(9)),
        ] {
            assert_eq!(text.parse(), Ok(value));
        }
        for text in ["", "zstd:0", "zstd:23", "gzip:10", "blosc:0", "none:1", "lz4", "zstd:x"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
