//! `within:E`: `block`, with the fewest bits in each chunk that keep its relative error below E.
//!
//! The bits are estimated from the exponents of the groups, assuming uniformly
//! distributed errors; then the loss of encoding is checked: a chunk is encoded
//! again with one bit more until its error is at most E. The bound of `block`
//! gives a number of bits that always suffices, so the bytes of a chunk are bounded.
//!
//! On the wire: the bits (one byte; 0: raw), the chunk in the format of `block`.

use crate::block::{BlockFormat, GROUP};
use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::{Float, Word};
use crate::isa::{Isa, Job, Runner};
use crate::loss::{Loss, Norm};
use crate::parse;
use crate::raw::{from_bytes, to_bytes};
use crate::stats::{LargestMagnitude, chunk_stats, padded, row_max};

#[derive(Debug)]
struct Within {
    tolerance: f64,
    runner: Runner,
}

pub(crate) fn make<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    let tolerance = parse::real("within", "within:E with E", parameter, 1e-300, 1.0)?;
    Ok(Box::new(Within { tolerance, runner: isa.runner() }))
}

impl Within {
    /// The bits that suffice for any chunk of `count` values; `None` if only `raw` does.
    fn enough<T: Float>(&self, count: usize) -> Option<u32> {
        (2..=BlockFormat::most::<T>()).find(|bits| BlockFormat { bits: *bits }.bound(count) <= self.tolerance)
    }

    /// An estimate of the bits that suffice.
    fn guess<T: Float>(&self, values: &[T], top: &LargestMagnitude<T>, norm: Norm) -> u32 {
        let exponents = self.runner.run(GroupExponents { values, top: top.field(), lift: top.lift() });
        // The mean square of an error uniform over a unit is its square over 12. A
        // group's unit is 2^(2-B) times the power of two of its largest value.
        let unit =
            Loss::rounded_up::<f64>(exponents * GROUP as f64 / 12.0, 0, top.exponent() + 2 - top.lifted());
        let ratio = unit.relative_to(norm) / self.tolerance;
        (ratio.log2() + 0.02).ceil().clamp(2.0, 1e3) as u32
    }
}

impl<T: Float> Codec<T> for Within {
    fn name(&self) -> String {
        format!("within:{:e}", self.tolerance)
    }

    fn max_bytes(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        // Bounds grow with the length of a chunk, so this holds for shorter ones too.
        1 + match self.enough::<T>(count) {
            Some(bits) => BlockFormat { bits }.bytes(count),
            None => count * T::BYTES,
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
        let chunk_stats = chunk_stats(values, self.runner);
        let norm = Norm::with_stats(values, &chunk_stats, self.runner);
        let guess =
            if chunk_stats.special { enough } else { self.guess(values, &chunk_stats.top, norm).min(enough) };
        for bits in guess..=enough {
            let encoded = BlockFormat { bits }.encode_with_stats(values, rest, self.runner, &chunk_stats);
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
            bits if (2..=BlockFormat::most::<T>()).contains(&bits) => {
                BlockFormat { bits }.decode(rest, out, self.runner, codec)
            }
            _ => Err(Error::Corrupt { name: codec, what: "a number of bits that no chunk has" }),
        }
    }
}

/// The sum over groups of 4^(exponent of the group's largest value), relative to the chunk's.
struct GroupExponents<'a, T> {
    values: &'a [T],
    top: i32,
    lift: T,
}

impl<T: Float> Job for GroupExponents<'_, T> {
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
            let field = ((T::of_word(row_max(&words)) * self.lift).word() >> T::MANTISSA).to_u64() as i32;
            sum += f64::power(2 * (field - self.top).max(-254));
        }
        sum
    }
}
