//! `within:E`: `block`, with as many bits in each chunk as keep its relative error.
//!
//! The bits are guessed from the exponents of the groups, as if errors were
//! spread evenly, and the loss that encoding then finds is checked: a chunk is
//! encoded again with one bit more until it is within E. `block`'s own bound
//! says how many bits always do, so the bytes of a chunk have a limit.
//!
//! On the wire: the bits (a byte; 0: raw), the chunk as `block` writes it.

use crate::block::{Block, GROUP};
use crate::isa::{Job, Runner};
use crate::number::{Number, Word};
use crate::raw::{from_bytes, to_bytes};
use crate::scan::{Largest, padded, survey, top};
use crate::{Codec, Encoded, Error, Isa, Loss, Made, Norm, parse};

#[derive(Debug)]
struct Within {
    tolerance: f64,
    runner: Runner,
}

pub(crate) fn make<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    let tolerance = parse::number("within", "within:E with E", parameter, 1e-300, 1.0)?;
    Ok(Box::new(Within { tolerance, runner: isa.runner() }))
}

impl Within {
    /// The bits that are enough for any chunk of so many numbers; `None` if only all are.
    fn enough<T: Number>(&self, numbers: usize) -> Option<u32> {
        (2..=Block::most::<T>()).find(|bits| Block { bits: *bits }.bound(numbers) <= self.tolerance)
    }

    /// The bits that are probably enough.
    fn guess<T: Number>(&self, values: &[T], top: &Largest<T>, norm: Norm) -> u32 {
        let spread = self.runner.run(Spread { values, top: top.field(), lift: top.lift() });
        // Errors are even over a unit of each group: its square over 12. A
        // group's unit is 2^(2-B) of the power of two that its largest reaches.
        let unit =
            Loss::rounded_up::<f64>(spread * GROUP as f64 / 12.0, 0, top.exponent() + 2 - top.lifted());
        let ratio = unit.relative_to(norm) / self.tolerance;
        (ratio.log2() + 0.02).ceil().clamp(2.0, 1e3) as u32
    }
}

impl<T: Number> Codec<T> for Within {
    fn name(&self) -> String {
        format!("within:{:e}", self.tolerance)
    }

    fn max_bytes(&self, numbers: usize) -> usize {
        if numbers == 0 {
            return 0;
        }
        // Bounds grow with the numbers of a chunk, so this holds for shorter ones too.
        1 + match self.enough::<T>(numbers) {
            Some(bits) => Block { bits }.bytes(numbers),
            None => numbers * T::BYTES,
        }
    }

    fn is_fixed(&self) -> bool {
        false
    }

    fn bound(&self, _: usize) -> Option<f64> {
        Some(self.tolerance)
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let (first, rest) = out.split_at_mut(1);
        let Some(enough) = self.enough::<T>(values.len()) else {
            first[0] = 0;
            return Encoded { bytes: 1 + to_bytes(values, rest), loss: Loss::NONE };
        };
        let survey = survey(values, self.runner);
        let norm = Norm::surveyed(values, &survey, self.runner);
        let guess = if survey.special { enough } else { self.guess(values, &survey.top, norm).min(enough) };
        for bits in guess..=enough {
            let encoded = Block { bits }.encode_surveyed(values, rest, self.runner, &survey);
            if bits == enough || encoded.loss.relative_to(norm) <= self.tolerance {
                first[0] = bits as u8;
                return Encoded { bytes: 1 + encoded.bytes, loss: encoded.loss };
            }
        }
        unreachable!("the last number of bits returns")
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        let codec = "within";
        let Some((bits, rest)) = bytes.split_first().filter(|_| !out.is_empty()) else {
            return Error::check_length(codec, out.len().min(1), bytes.len());
        };
        match *bits as u32 {
            0 => {
                Error::check_length(codec, 1 + size_of_val(out), bytes.len())?;
                from_bytes(rest, out);
                Ok(())
            }
            bits if (2..=Block::most::<T>()).contains(&bits) => {
                Block { bits }.decode(rest, out, self.runner, codec)
            }
            _ => Err(Error::Corrupt { codec, what: "a number of bits that no chunk has" }),
        }
    }
}

/// The sum over groups of the square of their largest exponent's power, that of the chunk being 1.
struct Spread<'a, T> {
    values: &'a [T],
    top: i32,
    lift: T,
}

impl<T: Number> Job for Spread<'_, T> {
    type Out = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let (rows, tail) = self.values.as_chunks::<GROUP>();
        let last = padded(tail);
        let mut sum = 0.0;
        for row in rows.iter().chain([&last]) {
            let mut words = [T::Word::ZERO; GROUP];
            for l in 0..GROUP {
                words[l] = row[l].word() & T::magnitude();
            }
            let field = ((T::of_word(top(&words)) * self.lift).word() >> T::MANTISSA).to_u64() as i32;
            sum += f64::power(2 * (field - self.top).max(-254));
        }
        sum
    }
}
