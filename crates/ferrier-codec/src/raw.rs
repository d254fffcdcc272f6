//! `raw`: the bytes of the values.

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::Float;
use crate::isa::Isa;
use crate::loss::Loss;
use crate::parse;

/// Copies the bytes of `values`, little-endian; returns how many.
pub(crate) fn to_bytes<T: Float>(values: &[T], out: &mut [u8]) -> usize {
    let bytes = size_of_val(values);
    out[..bytes].copy_from_slice(bytemuck::cast_slice(values));
    bytes
}

/// The inverse of [`to_bytes`]; `bytes` has the size of `out`.
pub(crate) fn from_bytes<T: Float>(bytes: &[u8], out: &mut [T]) {
    bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
}

/// Codec `raw`; also `f32` for values of f32.
#[derive(Debug)]
pub(crate) struct Raw(pub &'static str);

pub(crate) fn make<T: Float>(parameter: &str, _: Isa) -> CodecResult<T> {
    parse::none("raw", parameter)?;
    Ok(Box::new(Raw("raw")))
}

impl<T: Float> Codec<T> for Raw {
    fn name(&self) -> String {
        self.0.into()
    }

    fn max_bytes(&self, count: usize) -> usize {
        count * T::BYTES
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
