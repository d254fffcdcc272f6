//! Codecs: values to fewer bytes and back, with a rigorous bound of the loss.
//!
//! A codec is one file and one entry of [`CODECS`]; users name it, with its
//! parameter, as in `block:16` or `zfp:rate=20`. It encodes *chunks*: slices
//! of real values of any length (complex data are pairs of values), best some
//! thousand, so that a chunk stays in cache. This crate does not depend on
//! messages or transforms.
//!
//! ```
//! use ferrier_codec::{Norm, codec};
//!
//! let values: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
//! let block = codec::<f64>("block:16")?;
//! let mut bytes = vec![0; block.max_bytes(1000)];
//! let mut scratch = vec![0; block.scratch(1000)];
//! let encoded = block.encode(&values, &mut bytes, &mut scratch);
//! assert_eq!(encoded.bytes, 2 + 63 + 2000); // a header, an exponent for each 16 values
//! assert!(encoded.loss.relative_to(Norm::of(&values)) < 2e-5);
//!
//! let mut decoded = vec![0.0; 1000];
//! block.decode(&bytes[..encoded.bytes], &mut decoded, &mut scratch)?;
//! # Ok::<(), ferrier_codec::Error>(())
//! ```
//!
//! Guarantees of every codec: finite values stay finite; infinities and NaNs
//! stay what they are (except that `block:2` turns infinities into NaNs);
//! zeros keep their sign. Decoders do not trust their input: any bytes give
//! values or an error. Neither encoding nor decoding allocates. The bytes and
//! the losses are the same on every instruction set.

mod block;
mod block_int;
mod cast;
mod cheapest;
mod codec;
mod error;
mod float;
mod header;
mod isa;
mod loss;
mod lossless;
mod pack;
mod parse;
mod raw;
mod short_float;
mod stats;
mod table;
mod within;
mod zfp;

pub use cheapest::{FixedRateCodec, cheapest_fixed_rate};
pub use codec::{Codec, Encoded};
pub use error::Error;
pub use float::Float;
pub use isa::Isa;
pub use loss::{Loss, Norm};
pub use table::{CODECS, CodecEntry, Scalar, codec, codec_on};

#[cfg(target_endian = "big")]
compile_error!("codecs write the bytes of values in memory order, which must be little-endian");
