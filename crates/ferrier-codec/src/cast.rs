//! `f32`, `f16`, `bf16`: IEEE's and Google's short formats, scaled per chunk.

use crate::isa::Runner;
use crate::number::Number;
use crate::raw::Raw;
use crate::small::Small;
use crate::{Codec, Encoded, Error, Isa, Made, parse};

/// A short format with a name.
#[derive(Debug)]
pub(crate) struct Cast {
    name: &'static str,
    format: Small,
    runner: Runner,
}

fn make<T: Number>(name: &'static str, format: Small, parameter: &str, isa: Isa) -> Made<T> {
    parse::nothing(name, parameter)?;
    Ok(Box::new(Cast { name, format, runner: isa.runner() }))
}

/// 8 bits of exponent, 23 of mantissa; numbers that have just these stay as they are.
pub(crate) fn single<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    if T::MANTISSA == 23 {
        parse::nothing("f32", parameter)?;
        return Ok(Box::new(Raw("f32")));
    }
    make("f32", Small { exponent: 8, mantissa: 23 }, parameter, isa)
}

/// 5 bits of exponent, 10 of mantissa.
pub(crate) fn half<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    make("f16", Small { exponent: 5, mantissa: 10 }, parameter, isa)
}

/// 8 bits of exponent, 7 of mantissa.
pub(crate) fn brain<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    make("bf16", Small { exponent: 8, mantissa: 7 }, parameter, isa)
}

impl<T: Number> Codec<T> for Cast {
    fn name(&self) -> String {
        self.name.into()
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
        self.format.decode(bytes, out, self.runner, self.name)
    }
}
