//! Short floating-point formats, scaled per chunk: used by the casts and by `trim`.
//!
//! A value is a sign, `exponent` bits of exponent and `mantissa` bits of
//! mantissa, as in IEEE formats: gradual underflow below, infinities and NaNs
//! at the top. The exponents of a chunk count from a *base* in its header,
//! set so that the largest value is next to the top: so no chunk overflows,
//! and values that underflow are small compared to the chunk's largest.
//!
//! Chunks of very small values are first multiplied by a power of two, so that
//! no arithmetic here is on subnormals of the wide format.
//!
//! On the wire: the base (two bytes: see [`ChunkHeader`]), the packed values.

use crate::codec::Encoded;
use crate::error::Error;
use crate::float::{Float, LOSS_ROUNDING, Word};
use crate::header::{ChunkHeader, HEADER_BYTES};
use crate::isa::{Job, Runner};
use crate::loss::Loss;
use crate::pack::{Packer, ROW, Unpacker, packed_bytes};
use crate::stats::{ChunkStats, LargestMagnitude, chunk_stats, padded, total, widen};

/// A short format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortFloat {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa.
    pub mantissa: u32,
}

impl ShortFloat {
    pub fn width(self) -> u32 {
        1 + self.exponent + self.mantissa
    }

    pub fn bytes(self, count: usize) -> usize {
        if count == 0 { 0 } else { HEADER_BYTES + packed_bytes(count, self.width()) }
    }

    /// An upper bound of loss over norm for any `count` finite values.
    pub fn bound(self, count: usize) -> f64 {
        // Half a step of the last bit, a whole one where rounding up would
        // overflow; for values below the range, half the smallest step each.
        let relative = 0.5f64.powi(self.mantissa as i32 + 1) * (1.0 + 0.5f64.powi(self.mantissa as i32));
        let range = ((1 << self.exponent) - 4).min(60);
        let tiny = (count as f64).sqrt() * 0.5f64.powi(range + self.mantissa as i32);
        (relative + tiny) * LOSS_ROUNDING
    }

    /// The exponent field that the smallest exponent of a chunk represents.
    fn base<T: Float>(self, top: &LargestMagnitude<T>) -> i32 {
        if self.exponent == T::EXPONENT {
            return 0;
        }
        // One below the top exponent: rounding may carry into the top one.
        let last = (1 << self.exponent) - 3;
        (top.field() - last).max(0)
    }

    pub fn encode<T: Float>(self, values: &[T], out: &mut [u8], runner: Runner) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let ChunkStats { top, special, least } = chunk_stats(values, runner);
        let header = ChunkHeader { field: self.base(&top), lifted: top.lifted() != 0, special };
        let bytes = self.bytes(values.len());
        let (first, packed) = out[..bytes].split_at_mut(HEADER_BYTES);
        first.copy_from_slice(&header.bytes());
        let coder = ShortFloatCoder::new(self, header);
        let (sum, lost) = if special {
            runner.run(Encode::<T, SPECIAL> { values, packed, coder, top: top.exponent() })
        } else if top.is_plain() && least.plus(T::Word::ONE) >= coder.normal.max(top.lowest()) {
            runner.run(Encode::<T, PLAIN> { values, packed, coder, top: top.exponent() })
        } else {
            runner.run(Encode::<T, GENERAL> { values, packed, coder, top: top.exponent() })
        };
        let loss = match sum {
            _ if special => Loss::INFINITE,
            _ if !lost => Loss::NONE,
            // The squares may have underflowed.
            sum if sum < 1e-270 => self.slow_loss(values, packed, header),
            sum => Loss::rounded_up::<T>(sum, values.len() / ROW, top.exponent() - top.lifted()),
        };
        Encoded { bytes, loss }
    }

    /// The loss of a finite chunk, computed by decoding it.
    fn slow_loss<T: Float>(self, values: &[T], packed: &[u8], header: ChunkHeader) -> Loss {
        let coder = ShortFloatCoder::<T>::new(self, header);
        let mut unpacker = Unpacker::new(packed, values.len(), self.width());
        let (rows, tail) = values.as_chunks::<ROW>();
        let of_row = |row: &[T], codes: &[T::Word]| {
            let decoded: [T; ROW] =
                std::array::from_fn(|l| codes.get(l).map_or(T::default(), |c| coder.value::<false>(*c)));
            Loss::value_by_value(row, &decoded)
        };
        let loss: Loss = rows.iter().map(|row| of_row(row, &unpacker.row())).sum();
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        loss + of_row(tail, &codes)
    }

    pub fn decode<T: Float>(
        self,
        bytes: &[u8],
        out: &mut [T],
        runner: Runner,
        codec: &'static str,
    ) -> Result<(), Error> {
        Error::check_length(codec, self.bytes(out.len()), bytes.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let header = ChunkHeader::read::<T>(bytes, codec)?;
        let (packed, coder) = (&bytes[HEADER_BYTES..], ShortFloatCoder::new(self, header));
        if header.special {
            runner.run(Decode::<T, true> { packed, out, coder });
        } else {
            runner.run(Decode::<T, false> { packed, out, coder });
        }
        Ok(())
    }
}

/// Encodes and decodes the values of one chunk: constants of its format and base.
#[derive(Clone, Copy)]
struct ShortFloatCoder<T: Float> {
    format: ShortFloat,
    /// Bits of mantissa that are dropped.
    cut: u32,
    /// Just below half of the last bit that is kept.
    half: T::Word,
    /// 1 if any bit is dropped, to round ties to even.
    even: T::Word,
    /// The largest magnitude that does not round up to infinity.
    most: T::Word,
    /// Magnitudes below this (lifted) become subnormal.
    normal: T::Word,
    /// The offset of a code's exponent.
    base: T::Word,
    /// The factors from subnormals to integers and back.
    unit: T,
    step: T,
    lift: T,
    lower: T,
    /// The first code of a value that is not finite.
    special: T::Word,
    /// The bit position of a code's sign.
    sign: u32,
}

impl<T: Float> ShortFloatCoder<T> {
    #[inline(always)]
    fn new(format: ShortFloat, header: ChunkHeader) -> Self {
        let ShortFloat { exponent, mantissa } = format;
        let (one, zero) = (T::Word::ONE, T::Word::ZERO);
        let cut = T::MANTISSA - mantissa;
        let scale = mantissa as i32 + T::BIAS - header.field - 1;
        // Without a base the codes are the leading bits of the value, also for
        // subnormals.
        let normal = if header.field == 0 { 0 } else { header.field as u64 + 1 };
        let power = |k| if normal == 0 { T::default() } else { T::power(k) };
        ShortFloatCoder {
            format,
            cut,
            half: if cut == 0 { zero } else { (one << (cut - 1)).minus(one) },
            even: if cut == 0 { zero } else { one },
            most: T::infinity().minus(one << cut),
            normal: T::Word::from_u64(normal) << T::MANTISSA,
            base: T::Word::from_u64(header.field as u64) << mantissa,
            unit: power(scale),
            step: power(-scale),
            lift: T::power(if header.lifted { T::LIFT } else { 0 }),
            lower: header.lower(),
            special: (one << exponent).minus(one) << mantissa,
            sign: exponent + mantissa,
        }
    }

    /// The code of a magnitude, already lifted.
    #[inline(always)]
    fn code(&self, magnitude: T::Word) -> T::Word {
        let a = magnitude.min(self.most);
        let rounded = a.plus(self.half).plus((a >> self.cut) & self.even);
        let normal = (rounded >> self.cut).minus(self.base);
        let tiny = (T::of_word(a) * self.unit + T::magic()).word().minus(T::magic().word());
        if a < self.normal { tiny } else { normal }
    }

    /// The lifted magnitude of a code without its sign.
    #[inline(always)]
    fn magnitude(&self, code: T::Word) -> T {
        let normal = T::of_word((code.plus(self.base) << self.cut) & T::magnitude());
        let tiny = T::of_integer(code & crate::pack::mask(self.format.mantissa)) * self.step;
        let subnormal = (code >> self.format.mantissa) == T::Word::ZERO && self.normal > T::Word::ZERO;
        if subnormal { tiny } else { normal }
    }

    /// The value of a code.
    #[inline(always)]
    fn value<const HAS_SPECIAL: bool>(&self, code: T::Word) -> T {
        let sign = (code >> self.sign) << (T::Word::BITS - 1);
        let code = code & crate::pack::mask(self.sign);
        let mut word = (self.magnitude(code) * self.lower).word();
        if HAS_SPECIAL && code >= self.special {
            let quiet = if code == self.special { T::Word::ZERO } else { T::Word::ONE << (T::MANTISSA - 1) };
            word = T::infinity() | quiet;
        }
        T::of_word(word | sign)
    }
}

/// Chunks of finite, normal values, far from overflow and close enough that no squared error underflows:
/// nearly all chunks.
const PLAIN: u8 = 0;
/// Other finite chunks: with values below the range, lifted, or near the end of the range.
const GENERAL: u8 = 1;
/// Chunks with values that are not finite.
const SPECIAL: u8 = 2;

struct Encode<'a, T: Float, const KIND: u8> {
    values: &'a [T],
    packed: &'a mut [u8],
    coder: ShortFloatCoder<T>,
    /// The exponent of the largest value.
    top: i32,
}

/// The codes of a row of a plain chunk; adds the squared errors.
#[inline(always)]
fn encode_plain_row<T: Float>(
    row: &[T; ROW],
    coder: &ShortFloatCoder<T>,
    weight: T,
    sums: &mut [T; ROW],
) -> [T::Word; ROW] {
    let (base, sign) = (coder.base << coder.cut, T::Word::ONE << coder.sign);
    let kept = T::sign() | T::magnitude().minus(crate::pack::mask(coder.cut));
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let word = row[l].word();
        // The sign bit stays in the word: no carry reaches it.
        let rounded = word.plus(coder.half).plus((word >> coder.cut) & coder.even);
        let scaled = (row[l] - T::of_word(rounded & kept)) * weight;
        sums[l] = sums[l] + scaled * scaled;
        // Zeros are below the base and become code 0.
        let code = (rounded & T::magnitude()).larger(base).minus(base) >> coder.cut;
        codes[l] = code | (rounded >> (T::Word::BITS - 1 - coder.sign)) & sign;
    }
    codes
}

/// The codes of a row of any other chunk; adds the squared errors, and ORs the bits of the errors into `lost`.
#[inline(always)]
fn encode_row<T: Float, const KIND: u8>(
    row: &[T; ROW],
    coder: &ShortFloatCoder<T>,
    weight: f64,
    sums: &mut [f64; ROW],
    lost: &mut [T::Word; ROW],
) -> [T::Word; ROW] {
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let word = row[l].word();
        let plain = word & T::magnitude();
        let special = KIND == SPECIAL && plain >= T::infinity();
        let lifted = T::of_word(if special { T::Word::ZERO } else { plain }) * coder.lift;
        let mut code = coder.code(lifted.word());
        let error = lifted - coder.magnitude(code);
        let scaled = error.widened() * weight;
        sums[l] += scaled * scaled;
        lost[l] = lost[l] | (error.word() & T::magnitude());
        if special {
            let quiet = T::Word::from_u64((plain > T::infinity()) as u64);
            code = coder.special | (quiet << (coder.format.mantissa - 1));
        }
        codes[l] = code | ((word >> (T::Word::BITS - 1)) << coder.sign);
    }
    codes
}

impl<T: Float, const KIND: u8> Job for Encode<'_, T, KIND> {
    /// The weighted sum of squared errors, and whether anything was lost.
    type Out = (f64, bool);
    #[inline(always)]
    fn run(self) -> (f64, bool) {
        if KIND == PLAIN { self.plain() } else { self.general() }
    }
}

impl<T: Float, const KIND: u8> Encode<'_, T, KIND> {
    #[inline(always)]
    fn plain(self) -> (f64, bool) {
        let Encode { values, packed, coder, top } = self;
        let (mut packer, weight) = (Packer::new(packed, coder.format.width()), T::power(-top));
        let mut sums = [0.0; ROW];
        let (rows, tail) = values.as_chunks::<ROW>();
        for rows in rows.chunks(T::narrow_rows(rows.len())) {
            let mut partial = [T::default(); ROW];
            for row in rows {
                packer.row(&encode_plain_row(row, &coder, weight, &mut partial));
            }
            widen(&mut sums, &partial);
        }
        let mut partial = [T::default(); ROW];
        let codes = encode_plain_row(&padded(tail), &coder, weight, &mut partial);
        widen(&mut sums, &partial);
        packer.finish(&codes[..tail.len()]);
        let sum = total(&sums);
        // In a plain chunk no square underflows.
        (sum, sum > 0.0)
    }

    #[inline(always)]
    fn general(self) -> (f64, bool) {
        let Encode { values, packed, coder, top } = self;
        let (mut packer, weight) = (Packer::new(packed, coder.format.width()), f64::power(-top));
        let (mut sums, mut lost) = ([0.0; ROW], [T::Word::ZERO; ROW]);
        let (rows, tail) = values.as_chunks::<ROW>();
        for row in rows {
            packer.row(&encode_row::<T, KIND>(row, &coder, weight, &mut sums, &mut lost));
        }
        let codes = encode_row::<T, KIND>(&padded(tail), &coder, weight, &mut sums, &mut lost);
        packer.finish(&codes[..tail.len()]);
        (total(&sums), lost.iter().any(|word| *word > T::Word::ZERO))
    }
}

struct Decode<'a, T: Float, const HAS_SPECIAL: bool> {
    packed: &'a [u8],
    out: &'a mut [T],
    coder: ShortFloatCoder<T>,
}

impl<T: Float, const HAS_SPECIAL: bool> Job for Decode<'_, T, HAS_SPECIAL> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Decode { packed, out, coder } = self;
        let mut unpacker = Unpacker::new(packed, out.len(), coder.format.width());
        let (rows, tail) = out.as_chunks_mut::<ROW>();
        for row in rows {
            let codes = unpacker.row();
            for l in 0..ROW {
                row[l] = coder.value::<HAS_SPECIAL>(codes[l]);
            }
        }
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        for (x, code) in tail.iter_mut().zip(codes) {
            *x = coder.value::<HAS_SPECIAL>(code);
        }
    }
}
