//! `f32`, `f16`, `bf16`: the IEEE and bfloat16 formats, scaled per chunk. `trim:B`: the mantissa kept to `B` bits,
//! rounded to nearest.
//!
//! A value of `trim:B` takes `9 + B` bits: sign, 8 bits of exponent and `B` of mantissa. For f32 the exponent is that
//! of the value. For f64 it counts from a base of the chunk: values down to 2^-252 (10^-75) of its largest keep `B`
//! bits; for smaller values the error is absolute.

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::Float;
use crate::isa::{Isa, Runner};
use crate::parse;
use crate::raw::Raw;
use crate::short_float::ShortFloat;

/// A named short format.
#[derive(Debug)]
pub(crate) struct Cast {
    name: &'static str,
    /// What follows the name, such as `:12`.
    parameter: String,
    format: ShortFloat,
    runner: Runner,
}

fn make<T: Float>(name: &'static str, format: ShortFloat, parameter: &str, isa: Isa) -> CodecResult<T> {
    parse::none(name, parameter)?;
    Ok(Box::new(Cast { name, parameter: String::new(), format, runner: isa.runner() }))
}

/// 8 bits of exponent, 23 of mantissa; f32 values stay as they are.
pub(crate) fn single<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    if T::MANTISSA == 23 {
        parse::none("f32", parameter)?;
        return Ok(Box::new(Raw("f32")));
    }
    make("f32", ShortFloat { exponent: 8, mantissa: 23 }, parameter, isa)
}

/// 5 bits of exponent, 10 of mantissa.
pub(crate) fn half<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    make("f16", ShortFloat { exponent: 5, mantissa: 10 }, parameter, isa)
}

/// 8 bits of exponent, 7 of mantissa.
pub(crate) fn brain<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    make("bf16", ShortFloat { exponent: 8, mantissa: 7 }, parameter, isa)
}

/// 8 bits of exponent, as many of mantissa as the parameter says.
pub(crate) fn trim<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    let bits = parse::integer("trim", parameter, 1, T::MANTISSA)?;
    let (parameter, format) = (format!(":{bits}"), ShortFloat { exponent: 8, mantissa: bits });
    Ok(Box::new(Cast { name: "trim", parameter, format, runner: isa.runner() }))
}

impl<T: Float> Codec<T> for Cast {
    fn name(&self) -> String {
        format!("{}{}", self.name, self.parameter)
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
        self.format.decode(bytes, out, self.runner, self.name)
    }
}
