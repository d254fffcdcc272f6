//! The interface of a codec.

use std::fmt::Debug;

use crate::error::Error;
use crate::loss::Loss;

/// The result of encoding a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Encoded {
    /// The number of bytes written.
    pub bytes: usize,
    /// The loss, rounded up. Infinite if the codec is lossy and some values
    /// are not finite.
    pub loss: Loss,
}

/// Encodes values to bytes and decodes them.
pub trait Codec<T>: Debug + Send + Sync {
    /// The name with its parameter, as [`codec`](crate::codec) takes it.
    fn name(&self) -> String;

    /// The most bytes that a chunk of `count` values takes; 0 for an empty chunk.
    fn max_bytes(&self, count: usize) -> usize;

    /// Whether every chunk takes exactly [`max_bytes`](Codec::max_bytes).
    fn is_fixed(&self) -> bool;

    /// An upper bound of the norm of the loss over the norm of the chunk, for
    /// any finite chunk of at most `count` values; `None` if there is none.
    fn bound(&self, count: usize) -> Option<f64>;

    /// Words of scratch that chunks of at most `count` values need.
    fn scratch(&self, _count: usize) -> usize {
        0
    }

    /// Encodes a chunk into the first bytes of `out`. Does not allocate.
    ///
    /// # Panics
    /// If `out` is shorter than [`max_bytes`](Codec::max_bytes) or `scratch`
    /// (with any contents) is shorter than [`scratch`](Codec::scratch) of the chunk.
    fn encode(&self, values: &[T], out: &mut [u8], scratch: &mut [u64]) -> Encoded;

    /// Decodes a chunk of `out.len()` values from exactly the bytes that
    /// encoding wrote. Does not allocate.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Corrupt`]: these bytes are not an encoded
    /// chunk of that length; the contents of `out` are then unspecified. Not
    /// every wrong byte is detected: some decode to other values.
    ///
    /// # Panics
    /// If `scratch` is shorter than [`scratch`](Codec::scratch) of the chunk.
    fn decode(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error>;
}

/// A codec, or why there is none.
pub(crate) type CodecResult<T> = Result<Box<dyn Codec<T>>, Error>;
