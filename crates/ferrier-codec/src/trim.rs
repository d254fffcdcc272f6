//! `trim:B`: the mantissa kept to `B` bits, rounded to nearest.
//!
//! A number takes `9 + B` bits: sign, 8 bits of exponent and `B` of mantissa.
//! For f32 these are its own exponents. For f64 they count from a base of the
//! chunk: numbers down to 2^-252 (10^-75) of its largest keep `B` bits, below
//! that the error is absolute.

use crate::isa::Runner;
use crate::number::Number;
use crate::small::Small;
use crate::{Codec, Encoded, Error, Isa, Made, parse};

/// The member.
#[derive(Debug)]
struct Trim {
    format: Small,
    runner: Runner,
}

/// A mantissa of `bits` bits.
pub(crate) fn format(bits: u32) -> Small {
    Small { exponent: 8, mantissa: bits }
}

pub(crate) fn make<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    let bits = parse::integer("trim", parameter, 1, T::MANTISSA)?;
    Ok(Box::new(Trim { format: format(bits), runner: isa.runner() }))
}

impl<T: Number> Codec<T> for Trim {
    fn name(&self) -> String {
        format!("trim:{}", self.format.mantissa)
    }

    fn max_bytes(&self, numbers: usize) -> usize {
        self.format.bytes(numbers)
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn bound(&self, numbers: usize) -> Option<f64> {
        Some(self.format.bound(numbers))
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        self.format.encode(values, out, self.runner)
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        self.format.decode(bytes, out, self.runner, "trim")
    }
}
