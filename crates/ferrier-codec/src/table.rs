//! The table of codecs.

use crate::codec::{Codec, CodecResult};
use crate::error::Error;
use crate::float::Float;
use crate::isa::Isa;
use crate::{block, cast, lossless, raw, within, zfp};

type MakeCodec<T> = fn(&str, Isa) -> CodecResult<T>;

/// An entry of the table of codecs.
#[derive(Debug)]
#[non_exhaustive]
pub struct CodecEntry {
    /// The name users type, before the colon.
    pub name: &'static str,
    /// The form of the parameter, colon included; empty if there is none.
    pub parameter: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Whether all chunks of one length take the same number of bytes, for every parameter.
    pub fixed: bool,
    /// Whether decoding restores every bit.
    pub lossless: bool,
    f32: MakeCodec<f32>,
    f64: MakeCodec<f64>,
}

macro_rules! entry {
    ($name:literal, $parameter:literal, $fixed:literal, $lossless:literal, $make:path, $summary:literal) => {
        CodecEntry {
            name: $name,
            parameter: $parameter,
            summary: $summary,
            fixed: $fixed,
            lossless: $lossless,
            f32: $make,
            f64: $make,
        }
    };
}

/// All codecs; the first is the default.
pub static CODECS: &[CodecEntry] = &[
    entry! { "raw", "", true, true, raw::make, "the values as they are" },
    entry! { "f32", "", true, false, cast::single, "32-bit floats, scaled per chunk" },
    entry! { "f16", "", true, false, cast::half, "16-bit floats with 10 bits of mantissa, scaled per chunk" },
    entry! { "bf16", "", true, false, cast::brain, "16-bit floats with 7 bits of mantissa, scaled per chunk" },
    entry! { "trim", ":B", true, false, cast::trim, "mantissas kept to B bits, 9 + B bits per value" },
    entry! { "block", ":B", true, false, block::make, "B bits per value, 16 values share an exponent" },
    entry! { "within", ":E", false, false, within::make, "block, with the fewest bits that keep the relative error E in each chunk" },
    entry! { "zfp", ":rate=R|:accuracy=E", false, false, zfp::make, "zfp with R bits per value, or with an absolute error of at most E" },
    entry! { "lossless", "", false, true, lossless::make, "bytes shuffled and compressed (LZ4), or raw where that grows" },
];

/// `f32` or `f64`: the type of a chunk's values.
pub trait Scalar: Float {
    #[doc(hidden)]
    fn make(entry: &CodecEntry, parameter: &str, isa: Isa) -> Result<Box<dyn Codec<Self>>, Error>;
}

impl Scalar for f32 {
    fn make(entry: &CodecEntry, parameter: &str, isa: Isa) -> CodecResult<f32> {
        (entry.f32)(parameter, isa)
    }
}

impl Scalar for f64 {
    fn make(entry: &CodecEntry, parameter: &str, isa: Isa) -> CodecResult<f64> {
        (entry.f64)(parameter, isa)
    }
}

/// The codec called `name`, with its parameter. Allocates.
///
/// # Errors
/// [`Error::Name`] and [`Error::Parameter`] say what is expected.
pub fn codec<T: Scalar>(name: &str) -> Result<Box<dyn Codec<T>>, Error> {
    codec_on(name, Isa::best())
}

/// The codec called `name` on a given instruction set (on the portable one if
/// the processor does not have it); the bytes are the same on all.
///
/// # Errors
/// As [`codec`].
pub fn codec_on<T: Scalar>(name: &str, isa: Isa) -> Result<Box<dyn Codec<T>>, Error> {
    let (first, parameter) = name.split_once(':').unwrap_or((name, ""));
    let Some(entry) = CODECS.iter().find(|entry| entry.name == first) else {
        let names: Vec<String> = CODECS.iter().map(|e| format!("{}{}", e.name, e.parameter)).collect();
        return Err(Error::Name { name: name.into(), expected: names.join(", ") });
    };
    T::make(entry, parameter, isa)
}
