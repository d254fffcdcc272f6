//! `raw`: the bytes as they are.

use crate::number::Number;
use crate::{Codec, Encoded, Error, Isa, Loss, Made, parse};

/// Little-endian on the wire, as on every processor that is supported.
pub(crate) fn to_bytes<T: Number>(values: &[T], out: &mut [u8]) -> usize {
    let bytes = size_of_val(values);
    out[..bytes].copy_from_slice(bytemuck::cast_slice(values));
    bytes
}

/// Back; as many bytes as `out` has.
pub(crate) fn from_bytes<T: Number>(bytes: &[u8], out: &mut [T]) {
    bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
}

/// The member; also what a cast to the precision that numbers already have is.
#[derive(Debug)]
pub(crate) struct Raw(pub &'static str);

pub(crate) fn make<T: Number>(parameter: &str, _: Isa) -> Made<T> {
    parse::nothing("raw", parameter)?;
    Ok(Box::new(Raw("raw")))
}

impl<T: Number> Codec<T> for Raw {
    fn name(&self) -> String {
        self.0.into()
    }

    fn max_bytes(&self, numbers: usize) -> usize {
        numbers * T::BYTES
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn bound(&self, _: usize) -> Option<f64> {
        Some(0.0)
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        Encoded { bytes: to_bytes(values, out), loss: Loss::NONE }
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        Error::check_length(self.0, size_of_val(out), bytes.len())?;
        from_bytes(bytes, out);
        Ok(())
    }
}
