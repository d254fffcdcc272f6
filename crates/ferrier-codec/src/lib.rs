//! Codecs: numbers to fewer bytes and back, with a rigorous bound on what was lost.
//!
//! A codec member is one file and one line in [`CODECS`]; users name it, with
//! its parameter, as in `block:16` or `zfp:rate=20`. It encodes *chunks*:
//! slices of numbers of any length (complex data are pairs of numbers), best
//! some thousand, that stay in cache. Codecs know nothing of who sends what
//! to whom, and nothing of transforms.
//!
//! ```
//! use ferrier_codec::{Norm, codec};
//!
//! let values: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
//! let block = codec::<f64>("block:16")?;
//! let mut bytes = vec![0; block.max_bytes(1000)];
//! let mut scratch = vec![0; block.scratch(1000)];
//! let encoded = block.encode(&values, &mut bytes, &mut scratch);
//! assert_eq!(encoded.bytes, 2 + 63 + 2000); // a header, an exponent for each 16 numbers
//! assert!(encoded.loss.relative_to(Norm::of(&values)) < 2e-5);
//!
//! let mut back = vec![0.0; 1000];
//! block.decode(&bytes[..encoded.bytes], &mut back, &mut scratch)?;
//! # Ok::<(), ferrier_codec::Error>(())
//! ```
//!
//! What all members keep: what is finite stays finite, what is not stays not
//! finite (infinities and NaNs keep their kind, but for `block:2`), zeros
//! keep their sign. What a decoder is given is not trusted: any bytes give
//! values or an error. Neither encoding nor decoding allocates. The bytes and
//! the losses are the same on every instruction set.

mod block;
mod cast;
mod isa;
mod lossless;
mod number;
mod pack;
mod parse;
mod pick;
mod raw;
mod scan;
mod small;
mod squares;
mod trim;
mod within;
mod zfp;

use std::fmt::Debug;

pub use isa::Isa;
pub use number::Number;
pub use pick::{Pick, pick};
pub use squares::{Loss, Norm};

#[cfg(target_endian = "big")]
compile_error!("codecs write the bytes of numbers as they lie in memory: little-endian ones");

/// What encoding a chunk gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoded {
    /// How many bytes were written.
    pub bytes: usize,
    /// What was lost, rounded up. Infinite if the codec is lossy and some
    /// values are not finite.
    pub loss: Loss,
}

/// Numbers to bytes and back.
pub trait Codec<T>: Debug + Send + Sync {
    /// The name with its parameter, as [`codec`] takes it.
    fn name(&self) -> String;

    /// Bytes that a chunk of so many numbers takes at most; 0 for none.
    fn max_bytes(&self, numbers: usize) -> usize;

    /// Does every chunk of so many numbers take just [`max_bytes`](Codec::max_bytes)?
    fn is_fixed(&self) -> bool;

    /// The norm of the loss over the norm of the chunk, at most, for any
    /// finite chunk of at most so many numbers; `None` if there is no such bound.
    fn bound(&self, numbers: usize) -> Option<f64>;

    /// Words of scratch that chunks of at most so many numbers need.
    fn scratch(&self, _numbers: usize) -> usize {
        0
    }

    /// Encodes a chunk into the first bytes of `out`. Allocates nothing.
    ///
    /// # Panics
    /// If `out` has less than [`max_bytes`](Codec::max_bytes) or `scratch`
    /// (which may hold anything) less than [`scratch`](Codec::scratch) of the chunk.
    fn encode(&self, values: &[T], out: &mut [u8], scratch: &mut [u64]) -> Encoded;

    /// Decodes a chunk of as many numbers as `out` has from just the bytes
    /// that encoding gave. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Corrupt`]: these bytes did not come from
    /// such a chunk. `out` may then hold anything. Not every wrong byte is
    /// seen: some give other values.
    ///
    /// # Panics
    /// If `scratch` has less than [`scratch`](Codec::scratch) of the chunk.
    fn decode(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error>;
}

/// What can be wrong with a name or with bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No member is called so.
    #[error("there is no codec {given:?}: expected one of {expected}")]
    Name {
        /// What was given.
        given: String,
        /// Those that there are.
        expected: String,
    },
    /// A parameter is missing, superfluous or out of range.
    #[error("codec {codec}: expected {expected}, got {given:?}")]
    Parameter {
        /// The member.
        codec: &'static str,
        /// What would have been right.
        expected: String,
        /// What came after the colon.
        given: String,
    },
    /// Bytes of a chunk are not as many as they must be.
    #[error("codec {codec}: expected a chunk of {expected} bytes, got {got}")]
    Length {
        /// The member.
        codec: &'static str,
        /// How many bytes such a chunk has.
        expected: usize,
        /// How many came.
        got: usize,
    },
    /// Bytes of a chunk say something impossible.
    #[error("codec {codec}: the bytes of a chunk say {what}")]
    Corrupt {
        /// The member.
        codec: &'static str,
        /// What they say.
        what: &'static str,
    },
}

impl Error {
    fn check_length(codec: &'static str, expected: usize, got: usize) -> Result<(), Error> {
        if expected == got { Ok(()) } else { Err(Error::Length { codec, expected, got }) }
    }
}

/// A codec, or why there is none.
#[doc(hidden)]
pub type Made<T> = Result<Box<dyn Codec<T>>, Error>;

type Make<T> = fn(&str, Isa) -> Made<T>;

/// A line of the table of codecs.
#[derive(Debug)]
pub struct Member {
    /// The name users type, before the colon.
    pub name: &'static str,
    /// What follows the name, colon included; empty if nothing does.
    pub parameter: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Do all chunks of one length take the same number of bytes, whatever the parameter?
    pub fixed: bool,
    /// Does everything come back as it was?
    pub lossless: bool,
    f32: Make<f32>,
    f64: Make<f64>,
}

macro_rules! member {
    ($name:literal, $parameter:literal, $fixed:literal, $lossless:literal, $make:path, $summary:literal) => {
        Member {
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
pub static CODECS: &[Member] = &[
    member!("raw", "", true, true, raw::make, "the numbers as they are"),
    member!("f32", "", true, false, cast::single, "32-bit floats, scaled per chunk"),
    member!("f16", "", true, false, cast::half, "16-bit floats with 10 bits of mantissa, scaled per chunk"),
    member!("bf16", "", true, false, cast::brain, "16-bit floats with 7 bits of mantissa, scaled per chunk"),
    member!("trim", ":B", true, false, trim::make, "mantissas kept to B bits, 9 + B bits per number"),
    member!("block", ":B", true, false, block::make, "B bits per number, 16 numbers share an exponent"),
    member!(
        "within",
        ":E",
        false,
        false,
        within::make,
        "block, with just the bits that keep the relative error E in each chunk"
    ),
    member!(
        "zfp",
        ":rate=R|:accuracy=E",
        false,
        false,
        zfp::make,
        "zfp with R bits per number, or with an absolute error of at most E"
    ),
    member!(
        "lossless",
        "",
        false,
        true,
        lossless::make,
        "bytes shuffled and compressed (LZ4), or raw where that grows"
    ),
];

/// The codec called `name`, with its parameter.
///
/// # Errors
/// [`Error::Name`] and [`Error::Parameter`] say what was expected.
pub fn codec<T: Number>(name: &str) -> Result<Box<dyn Codec<T>>, Error> {
    codec_on(name, Isa::best())
}

/// The codec called `name` on a given instruction set (on a portable one
/// where the processor has it not); the bytes are the same.
///
/// # Errors
/// As [`codec`].
pub fn codec_on<T: Number>(name: &str, isa: Isa) -> Result<Box<dyn Codec<T>>, Error> {
    let (first, parameter) = name.split_once(':').unwrap_or((name, ""));
    let Some(member) = CODECS.iter().find(|member| member.name == first) else {
        let names: Vec<String> = CODECS.iter().map(|m| format!("{}{}", m.name, m.parameter)).collect();
        return Err(Error::Name { given: name.into(), expected: names.join(", ") });
    };
    T::make(member, parameter, isa)
}
