//! `zfp:rate=R` and `zfp:accuracy=E`: the crate zfp-rs, in blocks of four numbers.
//!
//! zfp looks for smoothness along the chunk. Complex data are smooth in their
//! real and in their imaginary parts, not from one to the other: where numbers
//! differ less from the next but one than from the next, the even ones are
//! encoded before the odd ones. zfp knows neither infinities nor NaNs nor the
//! sign of zero, so chunks that have such are given maps of them; at a fixed
//! rate the maps take their bits from the numbers. The loss is found by decoding.
//!
//! On the wire: a byte of marks, the maps, zfp's stream.

use zfp_rs::{ZFP_MAX_BITS, ZFP_MAX_PREC, ZFP_MIN_BITS, ZFP_MIN_EXP};
use zfp_rs::{ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpField, ZfpFieldMut};

use crate::isa::Runner;
use crate::number::{Number, Word};
use crate::raw::{from_bytes, to_bytes};
use crate::scan::{Survey, survey};
use crate::{Codec, Encoded, Error, Isa, Loss, Made, parse};

/// The chunk was lifted by [`Number::LIFT`].
const LIFTED: u8 = 1;
/// The chunk was lowered by [`LOWER`], so that nothing near the largest number overflows.
const LOWERED: u8 = 2;
/// Even numbers come before odd ones.
const SPLIT: u8 = 4;
/// There is a map of zeros with a sign: a bit for each number.
const SIGNS: u8 = 8;
/// There is a map of values that are not finite: two bits for each number.
const SPECIAL: u8 = 16;
/// There is nothing but the maps: all finite numbers are zero.
const EMPTY: u8 = 32;
/// The numbers as they are, and nothing else.
const RAW: u8 = 64;

const LOWER: i32 = -8;
/// Numbers of a block.
const BLOCK: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Rate(f64),
    Accuracy(f64),
}

#[derive(Debug)]
struct Zfp {
    mode: Mode,
    runner: Runner,
}

pub(crate) fn make<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    let most = 8 * T::BYTES as u32;
    let mode = match parameter.split_once('=') {
        Some(("rate", rate)) => {
            Mode::Rate(parse::number("zfp", "zfp:rate=R with R", rate, 4.0, most as f64)?)
        }
        Some(("accuracy", error)) => {
            Mode::Accuracy(parse::number("zfp", "zfp:accuracy=E with E", error, 1e-300, 1e300)?)
        }
        _ => return parse::neither("zfp", "zfp:rate=R or zfp:accuracy=E", parameter),
    };
    Ok(Box::new(Zfp { mode, runner: isa.runner() }))
}

/// Bits that a block of `T` needs for less than nothing: a mark and an exponent.
fn least_bits<T: Number>() -> usize {
    1 + T::EXPONENT as usize
}

/// The sizes of the maps that `marks` speak of.
fn map_bytes(marks: u8, numbers: usize) -> (usize, usize) {
    let signs = if marks & SIGNS > 0 { numbers.div_ceil(8) } else { 0 };
    let special = if marks & SPECIAL > 0 { numbers.div_ceil(4) } else { 0 };
    (signs, special)
}

/// Where number `i` goes in a chunk that is split.
fn place(i: usize, numbers: usize, split: bool) -> usize {
    match split {
        true if i % 2 == 1 => numbers.div_ceil(2) + i / 2,
        true => i / 2,
        false => i,
    }
}

impl Zfp {
    /// All bytes of a chunk at a fixed rate.
    fn fixed_bytes(rate: f64, numbers: usize) -> usize {
        let bits = (rate * BLOCK as f64).round() as usize;
        1 + (numbers.div_ceil(BLOCK) * bits).div_ceil(8)
    }

    /// Words that zfp may write for so many numbers.
    fn words<T: Number>(numbers: usize) -> usize {
        // A block's header, a bit for each number, and all its bits.
        (numbers.div_ceil(BLOCK) * (32 + BLOCK + BLOCK * 8 * T::BYTES)).div_ceil(64) + 4
    }

    /// How a chunk with such marks is written; `None` if there is no room for numbers.
    fn config<T: Number>(&self, marks: u8, numbers: usize) -> Option<ZfpConfig> {
        let (signs, special) = map_bytes(marks, numbers);
        match self.mode {
            Mode::Rate(rate) => {
                let room = Zfp::fixed_bytes(rate, numbers).checked_sub(1 + signs + special)?;
                let bits = 8 * room / numbers.div_ceil(BLOCK);
                let most = (rate * BLOCK as f64).round() as usize;
                let bits = bits.min(most);
                if bits < least_bits::<T>() {
                    return None;
                }
                ZfpConfig::expert(bits as u32, bits as u32, ZFP_MAX_PREC, ZFP_MIN_EXP).ok()
            }
            Mode::Accuracy(error) => {
                // An error of at most 2^exponent.
                let exponent = (error.to_bits() >> 52) as i32 - f64::BIAS + scale::<T>(marks);
                let exponent = exponent.max(ZFP_MIN_EXP);
                ZfpConfig::expert(ZFP_MIN_BITS, ZFP_MAX_BITS, ZFP_MAX_PREC, exponent).ok()
            }
        }
    }
}

/// The power of two that a chunk was multiplied by.
fn scale<T: Number>(marks: u8) -> i32 {
    if marks & LIFTED > 0 {
        T::LIFT
    } else if marks & LOWERED > 0 {
        LOWER
    } else {
        0
    }
}

/// Are numbers nearer to the next but one than to the next?
fn alternate<T: Number>(values: &[T]) -> bool {
    let distance = |by: usize| -> f64 {
        let pairs = values.iter().zip(values.iter().skip(by));
        pairs.map(|(a, b)| (a.widened() * 0.25 - b.widened() * 0.25).abs()).filter(|d| d.is_finite()).sum()
    };
    distance(2) < distance(1)
}

fn marks<T: Number>(values: &[T], runner: Runner) -> (u8, i32) {
    let Survey { top, special, .. } = survey(values, runner);
    let signs = values.iter().any(|x| x.word() == T::sign());
    let mut marks = 0;
    if top.lifted() != 0 {
        marks |= LIFTED;
    } else if top.field() > 2 * T::BIAS - 4 {
        marks |= LOWERED;
    }
    for (mark, here) in [(SPLIT, alternate(values)), (SIGNS, signs), (SPECIAL, special)] {
        marks |= if here { mark } else { 0 };
    }
    (marks, top.exponent() - top.lifted())
}

fn write_maps<T: Number>(values: &[T], maps: &mut [u8], signs: usize) {
    maps.fill(0);
    let (zeros, special) = maps.split_at_mut(signs);
    for (i, x) in values.iter().enumerate() {
        if !zeros.is_empty() && x.word() == T::sign() {
            zeros[i / 8] |= 1 << (i % 8);
        }
        let magnitude = x.word() & T::magnitude();
        if !special.is_empty() && magnitude >= T::infinity() {
            let kind = match (magnitude > T::infinity(), x.word() == magnitude) {
                (true, _) => 1,
                (false, true) => 2,
                (false, false) => 3,
            };
            special[i / 4] |= kind << (2 * (i % 4));
        }
    }
}

fn read_maps<T: Number>(out: &mut [T], maps: &[u8], signs: usize) {
    let (zeros, special) = maps.split_at(signs);
    for (i, x) in out.iter_mut().enumerate() {
        if !zeros.is_empty() && zeros[i / 8] >> (i % 8) & 1 == 1 {
            *x = T::of_word(T::sign());
        }
        let kind = if special.is_empty() { 0 } else { special[i / 4] >> (2 * (i % 4)) & 3 };
        match kind {
            0 => {}
            1 => *x = T::rounded(f64::NAN),
            2 => *x = T::of_word(T::infinity()),
            _ => *x = T::of_word(T::infinity() | T::sign()),
        }
    }
}

impl Zfp {
    /// zfp's stream of a chunk, at the start of `words`; how many bytes, if all went well.
    fn compress<T: Number>(
        &self,
        values: &[T],
        marks: u8,
        words: &mut [u64],
        turned: &mut [T],
    ) -> Option<usize> {
        let up = T::power(scale::<T>(marks));
        for (i, x) in values.iter().enumerate() {
            let finite = x.word() & T::magnitude() < T::infinity();
            turned[place(i, values.len(), marks & SPLIT > 0)] = if finite { *x * up } else { T::default() };
        }
        let config = self.config::<T>(marks, values.len())?;
        let field = ZfpField::new(turned, values.len()).ok()?;
        words.fill(0);
        ZfpBitStreamRefMut::from_words(words).compress(&config, &field).ok()
    }

    /// The numbers of zfp's stream; what would be too large becomes the largest.
    fn expand<T: Number>(&self, marks: u8, words: &[u64], turned: &mut [T], out: &mut [T]) -> Option<()> {
        let n = out.len();
        let config = self.config::<T>(marks, n)?;
        let mut field = ZfpFieldMut::new(turned, n).ok()?;
        ZfpBitStreamRef::from_words(words).decompress(&config, &mut field).ok()?;
        let (down, largest) = (T::power(-scale::<T>(marks)), T::infinity().minus(T::Word::ONE));
        for (i, x) in out.iter_mut().enumerate() {
            let word = (turned[place(i, n, marks & SPLIT > 0)] * down).word();
            let magnitude = (word & T::magnitude()).min(largest);
            // Zeros with a sign are in the map.
            let sign = if magnitude > T::Word::ZERO { word & T::sign() } else { T::Word::ZERO };
            *x = T::of_word(magnitude | sign);
        }
        Some(())
    }

    fn read<T: Number>(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error> {
        let corrupt = |what| Error::Corrupt { codec: "zfp", what };
        let (marks, rest) = (bytes[0], &bytes[1..]);
        if marks & RAW > 0 {
            Error::check_length("zfp", 1 + size_of_val(out), bytes.len())?;
            from_bytes(rest, out);
            return Ok(());
        }
        let (signs, special) = map_bytes(marks, out.len());
        if rest.len() < signs + special {
            return Err(corrupt("more maps than there are bytes"));
        }
        let (maps, stream) = rest.split_at(signs + special);
        if marks & EMPTY > 0 {
            out.fill(T::default());
        } else {
            let (words, turned) = scratch.split_at_mut(Zfp::words::<T>(out.len()));
            if stream.len() > size_of_val(words) {
                return Err(corrupt("a stream longer than any"));
            }
            words.fill(0);
            bytemuck::cast_slice_mut(words)[..stream.len()].copy_from_slice(stream);
            let turned = &mut bytemuck::cast_slice_mut(turned)[..out.len()];
            self.expand(marks, words, turned, out)
                .ok_or(corrupt("something that zfp cannot have written"))?;
        }
        read_maps(out, maps, signs);
        Ok(())
    }
}

impl<T: Number> Codec<T> for Zfp {
    fn name(&self) -> String {
        match self.mode {
            Mode::Rate(rate) => format!("zfp:rate={rate}"),
            Mode::Accuracy(error) => format!("zfp:accuracy={error:e}"),
        }
    }

    fn max_bytes(&self, numbers: usize) -> usize {
        match self.mode {
            _ if numbers == 0 => 0,
            Mode::Rate(rate) => Zfp::fixed_bytes(rate, numbers),
            Mode::Accuracy(_) => 1 + numbers * T::BYTES,
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.mode, Mode::Rate(_))
    }

    fn bound(&self, _: usize) -> Option<f64> {
        None
    }

    fn scratch(&self, numbers: usize) -> usize {
        // The stream, the numbers in zfp's order, and decoded.
        Zfp::words::<T>(numbers) + 2 * (numbers * T::BYTES).div_ceil(8)
    }

    fn encode(&self, values: &[T], out: &mut [u8], scratch: &mut [u64]) -> Encoded {
        let n = values.len();
        if n == 0 {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let (mut marks, exponent) = marks(values, self.runner);
        let (signs, special) = map_bytes(marks, n);
        let maps = signs + special;
        let limit = Codec::<T>::max_bytes(self, n);
        let (words, numbers) = scratch.split_at_mut(Zfp::words::<T>(n));
        let (turned, decoded) = numbers.split_at_mut((n * T::BYTES).div_ceil(8));
        let turned = &mut bytemuck::cast_slice_mut(turned)[..n];
        let stream = self.compress(values, marks, words, turned);
        if !Codec::<T>::is_fixed(self) && stream.is_none_or(|bytes| 1 + maps + bytes >= limit) {
            out[0] = RAW;
            return Encoded { bytes: 1 + to_bytes(values, &mut out[1..]), loss: Loss::NONE };
        }
        let bytes = if Codec::<T>::is_fixed(self) { limit } else { 1 + maps + stream.unwrap_or(0) };
        if stream.is_none() {
            // Maps that fill the chunk: a rate that low has no room for numbers beside them.
            marks |= EMPTY;
        }
        let room = bytes.saturating_sub(1 + maps);
        out[0] = marks;
        write_maps(values, &mut out[1..1 + maps], signs);
        if stream.is_some() {
            out[1 + maps..bytes].copy_from_slice(&bytemuck::cast_slice(words)[..room]);
        } else {
            out[1 + maps..bytes].fill(0);
        }
        let decoded = &mut bytemuck::cast_slice_mut(decoded)[..n];
        if stream.is_none() || self.expand(marks, words, turned, decoded).is_none() {
            decoded.fill(T::default());
        }
        read_maps(decoded, &out[1..1 + maps], signs);
        let loss = match special {
            0 => Loss::between(values, decoded, exponent + 3, self.runner),
            _ => Loss::INFINITE,
        };
        Encoded { bytes, loss }
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error> {
        let expected = Codec::<T>::max_bytes(self, out.len());
        if Codec::<T>::is_fixed(self) || out.is_empty() {
            Error::check_length("zfp", expected, bytes.len())?;
        } else if bytes.is_empty() {
            Error::check_length("zfp", 1, 0)?;
        }
        if out.is_empty() { Ok(()) } else { self.read(bytes, out, scratch) }
    }
}
