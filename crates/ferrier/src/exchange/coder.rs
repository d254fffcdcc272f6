//! Encoding of an exchange's segments.

use std::ops::Range;

use crate::Result;

/// Encodes and decodes the segments of an exchange, for exchanges that do so chunk by chunk. Knows the lengths of
/// segments that were encoded before the start.
pub trait Coder: Send + Sync {
    /// Bytes of the segment for a rank, encoded or not.
    fn len(&self, peer: usize) -> usize;
    /// Can these chunks of the segment for a rank be encoded without waiting? `encode` follows where they can.
    ///
    /// # Errors
    /// Where the device that encodes has failed.
    fn can_encode(&self, _peer: usize, _chunks: Range<usize>) -> Result<bool> {
        Ok(true)
    }
    /// Encodes chunks of the segment for a rank into the send buffer, one after the other, beginning where the
    /// first of them would lie if all chunks before it had the maximum length. Returns their bytes. The end mark
    /// of a segment of variable length is not included.
    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize;
    /// Decodes chunks of the segment from a rank: what its `encode` returned, at the beginning of `bytes`, which has
    /// room for the maximum.
    ///
    /// # Errors
    /// Malformed bytes.
    fn decode(&self, peer: usize, chunks: Range<usize>, bytes: &mut [u8]) -> Result<()>;
}
