//! `zfp:rate=R` and `zfp:accuracy=E`: the crate zfp-rs, in blocks of four values.
//!
//! zfp exploits smoothness along the chunk. Complex data are smooth in their
//! real and in their imaginary parts, but not across the two: where values
//! differ less from the next but one than from the next, the even ones are
//! encoded before the odd ones. zfp does not represent infinities, NaNs or the
//! sign of zero, so chunks that contain them carry bit maps; at a fixed rate
//! the maps reduce the bits of the values. The loss is computed by decoding; at a fixed rate our own encoder of blocks,
//! which writes the same bits, knows what they decode to.
//!
//! On the wire: a byte of flags, the maps, zfp's stream.

mod blocks;

use blocks::{BLOCK, EncodeBlocks};
use zfp_rs::{
    ZFP_MAX_BITS, ZFP_MAX_PREC, ZFP_MIN_BITS, ZFP_MIN_EXP, ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig,
    ZfpField, ZfpFieldMut,
};

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::{Float, Word};
use crate::isa::{Isa, Job, Runner};
use crate::loss::Loss;
use crate::parse;
use crate::raw::{from_bytes, to_bytes};
use crate::stats::{ChunkStats, chunk_stats};

/// The chunk was lifted by [`Float::LIFT`].
const LIFTED: u8 = 1;
/// The chunk was lowered by [`LOWER`], so that no value near the end of the range overflows.
const LOWERED: u8 = 2;
/// Values of even index come before those of odd index.
const SPLIT: u8 = 4;
/// There is a map of negative zeros: one bit per value.
const SIGNS: u8 = 8;
/// There is a map of values that are not finite: two bits per value.
const SPECIAL: u8 = 16;
/// There are only maps: all finite values decode to zero.
const EMPTY: u8 = 32;
/// The values as `raw` encodes them.
const RAW: u8 = 64;

const LOWER: i32 = -8;
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

pub(crate) fn make<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    let most = 8 * T::BYTES as u32;
    let mode = match parameter.split_once('=') {
        Some(("rate", rate)) => Mode::Rate(parse::real("zfp", "zfp:rate=R with R", rate, 4.0, most as f64)?),
        Some(("accuracy", error)) => {
            Mode::Accuracy(parse::real("zfp", "zfp:accuracy=E with E", error, 1e-300, 1e300)?)
        }
        _ => return parse::unexpected("zfp", "zfp:rate=R or zfp:accuracy=E", parameter),
    };
    Ok(Box::new(Zfp { mode, runner: isa.runner() }))
}

/// The fewest bits of a block of `T`: a flag and an exponent.
fn least_bits<T: Float>() -> usize {
    1 + T::EXPONENT as usize
}

/// The sizes of the maps that `flags` announce.
fn map_bytes(flags: u8, count: usize) -> (usize, usize) {
    let signs = if flags & SIGNS > 0 { count.div_ceil(8) } else { 0 };
    let special = if flags & SPECIAL > 0 { count.div_ceil(4) } else { 0 };
    (signs, special)
}

/// Calls `visit` with each value of a chunk and the same value in zfp's order.
#[inline(always)]
fn in_order<A, B>(
    values: impl ExactSizeIterator<Item = A>,
    ordered: &mut [B],
    split: bool,
    visit: impl Fn(A, &mut B),
) {
    if !split {
        return values.zip(ordered).for_each(|(value, ordered)| visit(value, ordered));
    }
    let (even, odd) = ordered.split_at_mut(values.len().div_ceil(2));
    let mut halves = [even.iter_mut(), odd.iter_mut()];
    for (i, value) in values.enumerate() {
        if let Some(ordered) = halves[i % 2].next() {
            visit(value, ordered);
        }
    }
}

impl Zfp {
    /// All bytes of a chunk at a fixed rate.
    fn fixed_bytes(rate: f64, count: usize) -> usize {
        let bits = (rate * BLOCK as f64).round() as usize;
        1 + (count.div_ceil(BLOCK) * bits).div_ceil(8)
    }

    /// The most words that zfp writes for `count` values.
    fn words<T: Float>(count: usize) -> usize {
        // A block's header, one bit per value, and all bits of the values.
        (count.div_ceil(BLOCK) * (32 + BLOCK + BLOCK * 8 * T::BYTES)).div_ceil(64) + 4
    }

    /// Bits of a block of a chunk with these flags at a fixed rate; `None` if the maps leave none for values.
    fn block_bits<T: Float>(rate: f64, flags: u8, count: usize) -> Option<usize> {
        let (signs, special) = map_bytes(flags, count);
        let room = Zfp::fixed_bytes(rate, count).checked_sub(1 + signs + special)?;
        let most = (rate * BLOCK as f64).round() as usize;
        let bits = (8 * room / count.div_ceil(BLOCK)).min(most);
        (bits >= least_bits::<T>()).then_some(bits)
    }

    /// zfp's configuration for a chunk with these flags; `None` if the maps leave no bits for values.
    fn config<T: Float>(&self, flags: u8, count: usize) -> Option<ZfpConfig> {
        match self.mode {
            Mode::Rate(rate) => {
                let bits = Zfp::block_bits::<T>(rate, flags, count)?;
                ZfpConfig::expert(bits as u32, bits as u32, ZFP_MAX_PREC, ZFP_MIN_EXP).ok()
            }
            Mode::Accuracy(error) => {
                // An error of at most 2^exponent.
                let exponent = (error.to_bits() >> 52) as i32 - f64::BIAS + scale::<T>(flags);
                let exponent = exponent.max(ZFP_MIN_EXP);
                ZfpConfig::expert(ZFP_MIN_BITS, ZFP_MAX_BITS, ZFP_MAX_PREC, exponent).ok()
            }
        }
    }
}

/// The exponent of the power of two that a chunk was multiplied by.
fn scale<T: Float>(flags: u8) -> i32 {
    if flags & LIFTED > 0 {
        T::LIFT
    } else if flags & LOWERED > 0 {
        LOWER
    } else {
        0
    }
}

/// Whether values are nearer to the next but one than to the next; they are finite.
struct Interleaved<'a, T>(&'a [T]);

impl<T: Float> Job for Interleaved<'_, T> {
    type Out = bool;
    #[inline(always)]
    fn run(self) -> bool {
        const LANES: usize = 16;
        let quarter = T::power(-2);
        let (mut next, mut second) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |values: &[T], lane: usize| {
            let distance = |by: usize| {
                let difference = values[0] * quarter - values[by] * quarter;
                T::of_word(difference.word() & T::magnitude()).widened()
            };
            next[lane] += distance(1);
            second[lane] += distance(2);
        };
        let pairs = self.0.len().saturating_sub(2);
        let whole = pairs - pairs % LANES;
        for first in (0..whole).step_by(LANES) {
            let row = &self.0[first..first + LANES + 2];
            (0..LANES).for_each(|lane| add(&row[lane..lane + 3], lane));
        }
        (whole..pairs).for_each(|first| add(&self.0[first..first + 3], 0));
        second.iter().sum::<f64>() < next.iter().sum()
    }
}

fn flags_of<T: Float>(values: &[T], runner: Runner) -> (u8, i32) {
    let ChunkStats { top, special, .. } = chunk_stats(values, runner);
    // Without an early end, so that it runs in vectors.
    let signs = values.iter().fold(false, |found, x| found | (x.word() == T::sign()));
    let mut flags = 0;
    if top.lifted() != 0 {
        flags |= LIFTED;
    } else if top.field() > 2 * T::BIAS - 4 {
        flags |= LOWERED;
    }
    let split = !special && runner.run(Interleaved(values));
    for (flag, here) in [(SPLIT, split), (SIGNS, signs), (SPECIAL, special)] {
        flags |= if here { flag } else { 0 };
    }
    (flags, top.exponent() - top.lifted())
}

fn write_maps<T: Float>(values: &[T], maps: &mut [u8], signs: usize) {
    if maps.is_empty() {
        return;
    }
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

fn read_maps<T: Float>(out: &mut [T], maps: &[u8], signs: usize) {
    if maps.is_empty() {
        return;
    }
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

/// The values of a chunk from those in zfp's order; magnitudes above the range become the largest finite one.
fn restore<T: Float>(flags: u8, reordered: &mut [T], out: &mut [T]) {
    let (down, largest) = (T::power(-scale::<T>(flags)), T::infinity().minus(T::Word::ONE));
    in_order(out.iter_mut(), reordered, flags & SPLIT > 0, |x, ordered| {
        let word = (*ordered * down).word();
        let magnitude = (word & T::magnitude()).min(largest);
        // Negative zeros are in the map.
        let sign = if magnitude > T::Word::ZERO { word & T::sign() } else { T::Word::ZERO };
        *x = T::of_word(magnitude | sign);
    });
}

impl Zfp {
    /// Writes zfp's stream of a chunk to `words`; returns its bytes, or `None` if zfp fails. `reordered` then has what is
    /// decoded, if the second is true.
    fn compress<T: Float>(
        &self,
        values: &[T],
        flags: u8,
        words: &mut [u64],
        reordered: &mut [T],
    ) -> (Option<usize>, bool) {
        let up = T::power(scale::<T>(flags));
        let reorder = |reordered: &mut [T]| {
            in_order(values.iter(), reordered, flags & SPLIT > 0, |x, ordered| {
                let finite = x.word() & T::magnitude() < T::infinity();
                *ordered = if finite { *x * up } else { T::default() };
            });
        };
        reorder(reordered);
        words.fill(0);
        if let Mode::Rate(rate) = self.mode {
            let Some(bits) = Zfp::block_bits::<T>(rate, flags, values.len()) else { return (None, false) };
            if self.runner.run(EncodeBlocks { values: reordered, words, bits }) {
                return (Some((values.len().div_ceil(BLOCK) * bits).div_ceil(8)), true);
            }
            reorder(reordered);
            words.fill(0);
        }
        let Some(config) = self.config::<T>(flags, values.len()) else { return (None, false) };
        let field = ZfpField::new(reordered, values.len()).ok();
        let stream =
            field.and_then(|field| ZfpBitStreamRefMut::from_words(words).compress(&config, &field).ok());
        (stream, false)
    }

    /// Decodes zfp's stream.
    fn expand<T: Float>(&self, flags: u8, words: &[u64], reordered: &mut [T], out: &mut [T]) -> Option<()> {
        let config = self.config::<T>(flags, out.len())?;
        let mut field = ZfpFieldMut::new(reordered, out.len()).ok()?;
        ZfpBitStreamRef::from_words(words).decompress(&config, &mut field).ok()?;
        restore(flags, reordered, out);
        Some(())
    }

    fn read<T: Float>(&self, bytes: &[u8], out: &mut [T], scratch: &mut [u64]) -> Result<(), Error> {
        let corrupt = |what| Error::Corrupt { name: "zfp", what };
        let (flags, rest) = (bytes[0], &bytes[1..]);
        if flags & RAW > 0 {
            Error::check_length("zfp", 1 + size_of_val(out), bytes.len())?;
            from_bytes(rest, out);
            return Ok(());
        }
        let (signs, special) = map_bytes(flags, out.len());
        if rest.len() < signs + special {
            return Err(corrupt("more maps than there are bytes"));
        }
        let (maps, stream) = rest.split_at(signs + special);
        if flags & EMPTY > 0 {
            out.fill(T::default());
        } else {
            let (words, reordered) = scratch.split_at_mut(Zfp::words::<T>(out.len()));
            if stream.len() > size_of_val(words) {
                return Err(corrupt("a stream longer than any"));
            }
            words.fill(0);
            bytemuck::cast_slice_mut(words)[..stream.len()].copy_from_slice(stream);
            let reordered = &mut bytemuck::cast_slice_mut(reordered)[..out.len()];
            self.expand(flags, words, reordered, out)
                .ok_or(corrupt("something that zfp cannot have written"))?;
        }
        read_maps(out, maps, signs);
        Ok(())
    }
}

impl<T: Float> Codec<T> for Zfp {
    fn name(&self) -> String {
        match self.mode {
            Mode::Rate(rate) => format!("zfp:rate={rate}"),
            Mode::Accuracy(error) => format!("zfp:accuracy={error:e}"),
        }
    }

    fn max_bytes(&self, count: usize) -> usize {
        match self.mode {
            _ if count == 0 => 0,
            Mode::Rate(rate) => Zfp::fixed_bytes(rate, count),
            Mode::Accuracy(_) => 1 + count * T::BYTES,
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.mode, Mode::Rate(_))
    }

    fn bound(&self, _: usize) -> Option<f64> {
        None
    }

    fn scratch(&self, count: usize) -> usize {
        // The stream, the values in zfp's order, and the decoded values.
        Zfp::words::<T>(count) + 2 * (count * T::BYTES).div_ceil(8)
    }

    fn encode(&self, values: &[T], out: &mut [u8], scratch: &mut [u64]) -> Encoded {
        let n = values.len();
        if n == 0 {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let (mut flags, exponent) = flags_of(values, self.runner);
        let (signs, special) = map_bytes(flags, n);
        let maps = signs + special;
        let limit = Codec::<T>::max_bytes(self, n);
        let (words, buffers) = scratch.split_at_mut(Zfp::words::<T>(n));
        let (reordered, decoded) = buffers.split_at_mut((n * T::BYTES).div_ceil(8));
        let reordered = &mut bytemuck::cast_slice_mut(reordered)[..n];
        let (stream, known) = self.compress(values, flags, words, reordered);
        if !Codec::<T>::is_fixed(self) && stream.is_none_or(|bytes| 1 + maps + bytes >= limit) {
            out[0] = RAW;
            return Encoded { bytes: 1 + to_bytes(values, &mut out[1..]), loss: Loss::NONE };
        }
        let bytes = if Codec::<T>::is_fixed(self) { limit } else { 1 + maps + stream.unwrap_or(0) };
        if stream.is_none() {
            // At this rate the maps leave no bits for the values.
            flags |= EMPTY;
        }
        let room = bytes.saturating_sub(1 + maps);
        out[0] = flags;
        write_maps(values, &mut out[1..1 + maps], signs);
        if stream.is_some() {
            out[1 + maps..bytes].copy_from_slice(&bytemuck::cast_slice(words)[..room]);
        } else {
            out[1 + maps..bytes].fill(0);
        }
        let decoded = &mut bytemuck::cast_slice_mut(decoded)[..n];
        if known {
            restore(flags, reordered, decoded);
        } else if stream.is_none() || self.expand(flags, words, reordered, decoded).is_none() {
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
