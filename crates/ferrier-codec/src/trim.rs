//! `trim:B`: the mantissa kept to `B` bits, rounded to nearest.
//!
//! A value takes `9 + B` bits: sign, 8 bits of exponent and `B` of mantissa.
//! For f32 the exponent is that of the value. For f64 it counts from a base of
//! the chunk: values down to 2^-252 (10^-75) of its largest keep `B` bits; for
//! smaller values the error is absolute.

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::Float;
use crate::isa::{Isa, Runner};
use crate::parse;
use crate::short_float::ShortFloat;

/// Codec `trim`.
#[derive(Debug)]
struct Trim {
    format: ShortFloat,
    runner: Runner,
}

/// The format with a mantissa of `bits` bits.
pub(crate) fn format(bits: u32) -> ShortFloat {
    ShortFloat { exponent: 8, mantissa: bits }
}

pub(crate) fn make<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    let bits = parse::integer("trim", parameter, 1, T::MANTISSA)?;
    Ok(Box::new(Trim { format: format(bits), runner: isa.runner() }))
}

impl<T: Float> Codec<T> for Trim {
    fn name(&self) -> String {
        format!("trim:{}", self.format.mantissa)
    }

    fn max_bytes(&self, count: usize) -> usize {
        self.format.bytes(count)
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn bound(&self, count: usize) -> Option<f64> {
        Some(self.format.bound(count))
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        self.format.encode(values, out, self.runner)
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        self.format.decode(bytes, out, self.runner, "trim")
    }
}
