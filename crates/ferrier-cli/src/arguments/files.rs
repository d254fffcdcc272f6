//! Options about files of arrays.

use std::path::Path;

use clap::{Args, ValueEnum};
use ferrier::io::{Compression, Dtype, Format, Raw, Reader, WriteOptions};

use crate::failure::{Outcome, fail};

/// The order of axes in a raw file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RawOrder {
    /// The last axis is the fastest.
    #[default]
    C,
    /// The first axis is the fastest.
    F,
}

/// Options about files that are read.
#[derive(Args, Clone, Debug, Default)]
pub struct InputArgs {
    /// Shape of a raw file, such as 256x256x128; several for several raw files
    #[arg(long, value_name = "SHAPE,..", value_delimiter = ',', value_parser = lengths)]
    pub raw_shape: Vec<Lengths>,
    /// Type of a raw file's elements: float32, float64, complex64, complex128, in this machine's byte order;
    /// with a byte order: <f4, <f8, <c8, <c16 (little-endian), >f4 and so on (big-endian). Several for several
    /// raw files
    #[arg(long, value_name = "TYPE,..", value_delimiter = ',', value_parser = dtype, requires = "raw_shape")]
    pub raw_dtype: Vec<Dtype>,
    /// Bytes before the first element of a raw file
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "raw_shape")]
    pub raw_offset: u64,
    /// Order of a raw file's axes
    #[arg(long, value_enum, default_value_t = RawOrder::C, requires = "raw_shape")]
    pub raw_order: RawOrder,
}

/// Options about a file that is written.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputArgs {
    /// Zarr: lengths of a chunk, such as 64,64,64; one number is for all axes [default: about 2^18 elements]
    #[arg(long, value_name = "N,..", value_parser = lengths)]
    pub chunks: Option<Lengths>,
    /// Zarr: lengths of a shard, a file of several chunks, such as 256,256,256 [default: a file per chunk]
    #[arg(long, value_name = "N,..", value_parser = lengths)]
    pub shards: Option<Lengths>,
    /// Zarr: compression of chunks: none, zstd:LEVEL, gzip:LEVEL, blosc:LEVEL [default: zstd:1]
    #[arg(long, value_name = "NAME")]
    pub chunk_codec: Option<Compression>,
}

/// One number per axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths(pub Vec<usize>);

/// Numbers with `x` or `,` between them.
fn lengths(text: &str) -> Result<Lengths, String> {
    let number = |part: &str| part.trim().parse().ok();
    let list: Option<Vec<usize>> = text.split(['x', 'X', ',']).map(number).collect();
    list.map(Lengths).ok_or_else(|| format!("`{text}` is not a list of lengths; write 64x64x64"))
}

fn dtype(text: &str) -> Result<Dtype, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not a type; write float32, float64, complex64, complex128, or <f4, >f4, .. >c16")
    })
}

impl InputArgs {
    /// Opens file `number` (0, 1) of the inputs.
    ///
    /// # Errors
    /// It cannot be read; a raw file without its shape or type.
    pub fn open(&self, path: &Path, number: usize) -> Outcome<Reader> {
        let is_npy = Reader::is_npy(path);
        let is_raw = !is_npy
            && match Format::of_name(path) {
                Format::Raw => true,
                // Any other name may be that of a raw file too.
                Format::Npy => !self.raw_shape.is_empty() && path.extension().is_none_or(|end| end != "npy"),
                Format::Zarr => false,
            };
        if !is_raw {
            return Ok(Reader::open(path)?);
        }
        let of = |count: usize| if count == 1 { 0 } else { number };
        let shape = self.raw_shape.get(of(self.raw_shape.len()));
        let (Some(shape), Some(dtype)) = (shape, self.raw_dtype.get(of(self.raw_dtype.len()))) else {
            return fail(format!(
                "cannot read {}: it is not an .npy file; a raw file needs --raw-shape and --raw-dtype",
                path.display()
            ));
        };
        let mut raw = Raw::new(&shape.0, *dtype);
        (raw.offset, raw.fortran) = (self.raw_offset, self.raw_order == RawOrder::F);
        Ok(Reader::open_raw(path, &raw)?)
    }
}

impl OutputArgs {
    /// How `path` is written. Raw files have the byte order of the input.
    ///
    /// # Errors
    /// Options for Zarr and another file.
    pub fn options(&self, path: &Path, input: Dtype) -> Outcome<WriteOptions> {
        let is_zarr = Format::of_name(path) == Format::Zarr;
        let given = [
            ("--chunks", self.chunks.is_some()),
            ("--shards", self.shards.is_some()),
            ("--chunk-codec", self.chunk_codec.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given && !is_zarr) {
            return fail(format!("{name} is for Zarr stores; {} is none", path.display()));
        }
        let list =
            |lengths: &Option<Lengths>| lengths.as_ref().map_or(Vec::new(), |lengths| lengths.0.clone());
        let mut options = WriteOptions::default();
        options.big_endian = input.is_big_endian();
        (options.chunks, options.shards) = (list(&self.chunks), list(&self.shards));
        options.compress = self.chunk_codec.unwrap_or_default();
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_parsed() {
        assert_eq!(lengths("64"), Ok(Lengths(vec![64])));
        assert_eq!(lengths("4,5, 6"), Ok(Lengths(vec![4, 5, 6])));
        assert_eq!(lengths("4x5x6"), Ok(Lengths(vec![4, 5, 6])));
        for bad in ["", "x", "4x", "-1", "4;5", "99999999999999999999"] {
            assert!(lengths(bad).is_err(), "{bad}");
        }
        assert!(dtype(">c16").is_ok_and(|dtype| dtype.is_big_endian() && dtype.is_complex()));
        assert!(dtype("int32").is_err());
    }
}
