//! The header of an encoded chunk.

use crate::error::Error;
use crate::float::Float;

/// Bytes of a chunk's header.
pub(crate) const HEADER_BYTES: usize = 2;

/// The header of a chunk: an exponent field and two flags.
#[derive(Clone, Copy)]
pub(crate) struct ChunkHeader {
    pub field: i32,
    /// The chunk was lifted by [`Float::LIFT`].
    pub lifted: bool,
    /// Some values are not finite.
    pub special: bool,
}

impl ChunkHeader {
    pub fn bytes(self) -> [u8; HEADER_BYTES] {
        let flags = (self.lifted as u16) << 14 | (self.special as u16) << 15;
        (self.field as u16 | flags).to_le_bytes()
    }

    pub fn read<T: Float>(bytes: &[u8], codec: &'static str) -> Result<Self, Error> {
        let word = u16::from_le_bytes([bytes[0], bytes[1]]);
        let field = (word & 0x3fff) as i32;
        if field >= (1 << T::EXPONENT) - 1 {
            return Err(Error::Corrupt { name: codec, what: "an exponent that no finite value has" });
        }
        Ok(ChunkHeader { field, lifted: word >> 14 & 1 == 1, special: word >> 15 == 1 })
    }

    /// The factor that undoes the lift of decoded values.
    pub fn lower<T: Float>(self) -> T {
        T::power(if self.lifted { -T::LIFT } else { 0 })
    }
}
