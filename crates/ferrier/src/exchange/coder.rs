//! Encoding of an exchange's segments.

use std::ops::Range;

use crate::Result;

/// Encodes and decodes the segments of an exchange, for exchanges that do so chunk by chunk. Knows the lengths of
/// segments that were encoded before the start.
pub trait Coder: Send + Sync {
    /// Bytes of the segment for a rank, encoded or not.
    fn len(&self, peer: usize) -> usize;
    /// Encodes chunks of the segment for a rank into the send buffer, one after the other, beginning where the
    /// first of them would lie if all chunks before it had the maximum length. Returns their bytes. The end mark
    /// of a segment of variable length is not included.
    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize;
    /// Bytes of a chunk of the segment from a rank; the most, without its length field, where that varies.
    fn size(&self, peer: usize, chunk: usize) -> usize;
    /// Decodes a chunk of the segment from a rank. `bytes` is its range in that segment of the receive buffer.
    ///
    /// # Errors
    /// Malformed bytes.
    fn decode(&self, peer: usize, chunk: usize, bytes: Range<usize>) -> Result<()>;
}
