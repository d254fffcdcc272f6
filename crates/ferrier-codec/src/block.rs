//! `block:B`: groups of 16 values share an exponent.
//!
//! A value is a sign and an integer of `B - 1` bits, in units of its group.
//! The unit is the smallest power of two for which no value of the group
//! exceeds 2^(B-1) units. The exponent of a group is one byte: its distance
//! below the exponent of the chunk's largest value, which is in the header.
//!
//! On the wire: header ([`ChunkHeader`], the exponent field of the largest value),
//! one byte per group, the packed values.

use crate::codec::{Codec, CodecResult, Encoded};
use crate::error::Error;
use crate::float::{Float, LOSS_ROUNDING, Word};
use crate::header::{ChunkHeader, HEADER_BYTES};
use crate::isa::{Isa, Job, Runner};
use crate::loss::Loss;
use crate::pack::{Packer, ROW, Unpacker, mask, packed_bytes};
use crate::parse;
use crate::stats::{ChunkStats, chunk_stats, padded, row_max, total};

/// Values of a group: one row.
pub(crate) const GROUP: usize = ROW;
/// The largest distance of a group's exponent below the chunk's; smaller groups use it too.
const DEEPEST: i32 = 254;
/// The exponent byte of a group with values that are not finite.
const SPECIAL: u8 = 255;

/// Integers of `bits` bits (sign included) with an exponent per group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFormat {
    pub bits: u32,
}

impl BlockFormat {
    /// The most bits that are useful for values of `T`.
    pub const fn most<T: Float>() -> u32 {
        T::MANTISSA + 1
    }

    pub fn bytes(self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        HEADER_BYTES + count.div_ceil(GROUP) + packed_bytes(count, self.bits)
    }

    /// An upper bound of loss over norm for any `count` finite values.
    pub fn bound(self, count: usize) -> f64 {
        // A group's largest value is at least 2^(B-2) units; each of its
        // values is off by half a unit at most, or, where rounding up would
        // need another bit, by one unit while it is nearly 2^(B-1).
        // Groups at the deepest exponent add next to nothing.
        let in_group = (count.min(GROUP) as f64).sqrt() * 0.5f64.powi(self.bits as i32 - 1);
        let deep = (count as f64).sqrt() * 0.5f64.powi(38 + self.bits as i32);
        (in_group + deep) * LOSS_ROUNDING
    }

    pub fn encode<T: Float>(self, values: &[T], out: &mut [u8], runner: Runner) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        self.encode_with_stats(values, out, runner, &chunk_stats(values, runner))
    }

    /// Encodes a chunk whose statistics are known.
    pub fn encode_with_stats<T: Float>(
        self,
        values: &[T],
        out: &mut [u8],
        runner: Runner,
        chunk_stats: &ChunkStats<T>,
    ) -> Encoded {
        let ChunkStats { top, special, .. } = chunk_stats;
        let special = *special;
        let header = ChunkHeader { field: top.field(), lifted: top.lifted() != 0, special };
        let bytes = self.bytes(values.len());
        let (first, rest) = out[..bytes].split_at_mut(HEADER_BYTES);
        first.copy_from_slice(&header.bytes());
        let (depths, packed) = rest.split_at_mut(values.len().div_ceil(GROUP));
        let coder = BlockCoder::new(self, header);
        let (sum, lost) = if special {
            runner.run(Encode::<T, true> { values, depths, packed, coder })
        } else {
            runner.run(Encode::<T, false> { values, depths, packed, coder })
        };
        let loss = match sum {
            _ if special => Loss::INFINITE,
            _ if !lost => Loss::NONE,
            sum if sum < underflow_limit::<T>() => self.slow_loss(values, depths, packed, header),
            sum => Loss::rounded_up::<T>(sum, values.len() / ROW, coder.unit(0) - top.lifted()),
        };
        Encoded { bytes, loss }
    }

    /// The loss of a finite chunk, computed by decoding it.
    fn slow_loss<T: Float>(self, values: &[T], depths: &[u8], packed: &[u8], header: ChunkHeader) -> Loss {
        let coder = BlockCoder::<T>::new(self, header);
        let mut unpacker = Unpacker::new(packed, values.len(), self.bits);
        let mut loss = Loss::NONE;
        for (group, depth) in values.chunks(GROUP).zip(depths) {
            let mut codes = [T::Word::ZERO; ROW];
            match group.len() {
                GROUP => codes = unpacker.row(),
                n => unpacker.tail(&mut codes[..n]),
            }
            loss += Loss::value_by_value(group, &coder.values(&codes, *depth));
        }
        loss
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
        let (depths, packed) = bytes[HEADER_BYTES..].split_at(out.len().div_ceil(GROUP));
        runner.run(Decode { depths, packed, out, coder: BlockCoder::new(self, header) });
        Ok(())
    }
}

/// Sums of squares below this may miss terms that underflowed: the error of a tiny value, in units of a huge
/// one, is below the range of `T`. In larger sums the missing terms are far smaller than the rounding up.
fn underflow_limit<T: Float>() -> f64 {
    if T::MANTISSA < 52 { 1e-70 } else { 1e-270 }
}

/// Encodes and decodes the groups of one chunk: constants of the chunk.
#[derive(Clone, Copy)]
struct BlockCoder<T: Float> {
    bits: u32,
    /// The exponent field of the chunk's largest value.
    field: i32,
    lift: T,
    lower: T,
    /// The largest integer.
    most: T::Word,
}

impl<T: Float> BlockCoder<T> {
    #[inline(always)]
    fn new(block: BlockFormat, header: ChunkHeader) -> Self {
        let lift = T::power(if header.lifted { T::LIFT } else { 0 });
        BlockCoder {
            bits: block.bits,
            field: header.field,
            lift,
            lower: header.lower(),
            most: mask(block.bits - 1),
        }
    }

    /// The exponent of the unit of a group.
    #[inline(always)]
    fn unit(&self, depth: i32) -> i32 {
        self.field - depth + 1 - T::BIAS - (self.bits as i32 - 1)
    }

    /// The distance of a group's exponent below the chunk's, from the group's largest magnitude `word`.
    #[inline(always)]
    fn depth(&self, word: T::Word) -> i32 {
        let field = (word >> T::MANTISSA).to_u64() as i32;
        // Limited so that the reciprocal of the unit does not overflow.
        let deepest = DEEPEST.min(self.field - self.bits as i32).max(0);
        (self.field - field).min(deepest)
    }

    /// In groups with values that are not finite: the first code of such a value.
    #[inline(always)]
    fn first_special(&self) -> T::Word {
        if self.bits == 2 { self.most } else { self.most.minus(T::Word::ONE) }
    }

    /// The values of a group.
    #[inline(always)]
    fn values(&self, codes: &[T::Word; ROW], depth: u8) -> [T; ROW] {
        if depth == SPECIAL {
            return std::array::from_fn(|l| self.special_value(codes[l]));
        }
        let unit = T::power(self.unit(depth as i32));
        let mut row = [T::default(); ROW];
        for l in 0..ROW {
            row[l] = self.value(codes[l], unit);
        }
        row
    }

    #[inline(always)]
    fn value(&self, code: T::Word, unit: T) -> T {
        let sign = (code >> (self.bits - 1)) << (T::Word::BITS - 1);
        let x = T::of_integer(code & self.most) * unit * self.lower;
        T::of_word(x.word() | sign)
    }

    /// Decodes a value of a group in which not all are finite.
    fn special_value(&self, code: T::Word) -> T {
        let (magnitude, sign) = (code & self.most, (code >> (self.bits - 1)) << (T::Word::BITS - 1));
        if magnitude < self.first_special() {
            return self.value(code, T::power(self.unit(0)));
        }
        // With two bits there is a single special code; it decodes to NaN.
        let infinite = self.bits > 2 && magnitude == self.most;
        let quiet = if infinite { T::Word::ZERO } else { T::Word::ONE << (T::MANTISSA - 1) };
        T::of_word(T::infinity() | quiet | sign)
    }

    /// Encodes a value of such a group.
    fn special_code(&self, value: T) -> T::Word {
        let (word, one) = (value.word(), T::Word::ONE);
        let (magnitude, sign) = (word & T::magnitude(), (word >> (T::Word::BITS - 1)) << (self.bits - 1));
        let code = if magnitude < T::infinity() {
            let scaled = T::of_word(magnitude) * self.lift * T::power(-self.unit(0));
            (scaled + T::magic()).word().minus(T::magic().word()).min(self.first_special().minus(one))
        } else if magnitude == T::infinity() || self.bits == 2 {
            self.most
        } else {
            self.first_special()
        };
        code | sign
    }
}

struct Encode<'a, T: Float, const HAS_SPECIAL: bool> {
    values: &'a [T],
    depths: &'a mut [u8],
    packed: &'a mut [u8],
    coder: BlockCoder<T>,
}

/// The codes and the depth of a group. Adds the squared errors to `sums`, in
/// units of the chunk's top group, and ORs their bits into `lost`.
#[inline(always)]
fn encode_group<T: Float, const HAS_SPECIAL: bool>(
    row: &[T; ROW],
    coder: &BlockCoder<T>,
    sums: &mut [f64; ROW],
    lost: &mut [T::Word; ROW],
) -> ([T::Word; ROW], u8) {
    let mut words = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        words[l] = row[l].word() & T::magnitude();
    }
    let mut largest = row_max(&words);
    if HAS_SPECIAL && largest >= T::infinity() {
        return (std::array::from_fn(|l| coder.special_code(row[l])), SPECIAL);
    }
    largest = (T::of_word(largest) * coder.lift).word();
    let depth = coder.depth(largest);
    let (per_unit, weight) = (T::power(-coder.unit(depth)), f64::power(-depth));
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let scaled = T::of_word(words[l]) * coder.lift * per_unit;
        let nearest = (scaled + T::magic()).word().minus(T::magic().word());
        let integer = nearest.smaller(coder.most);
        let error = scaled - T::of_integer(integer);
        let weighted = error.widened() * weight;
        sums[l] += weighted * weighted;
        // A value that rounds to zero is lost entirely; beside huge values its error may underflow.
        let missing = if integer == T::Word::ZERO { words[l] } else { error.word() & T::magnitude() };
        lost[l] = lost[l] | missing;
        codes[l] = integer | ((row[l].word() >> (T::Word::BITS - 1)) << (coder.bits - 1));
    }
    (codes, depth as u8)
}

impl<T: Float, const HAS_SPECIAL: bool> Job for Encode<'_, T, HAS_SPECIAL> {
    /// The sum of squared errors in units of the top group, and whether anything was lost.
    type Out = (f64, bool);
    #[inline(always)]
    fn run(self) -> (f64, bool) {
        let Encode { values, depths, packed, coder } = self;
        let mut packer = Packer::new(packed, coder.bits);
        let (mut sums, mut lost) = ([0.0; ROW], [T::Word::ZERO; ROW]);
        let (rows, tail) = values.as_chunks::<ROW>();
        let (whole, last) = depths.split_at_mut(rows.len());
        for (row, to) in rows.iter().zip(whole) {
            let (codes, depth) = encode_group::<T, HAS_SPECIAL>(row, &coder, &mut sums, &mut lost);
            *to = depth;
            packer.row(&codes);
        }
        let (codes, depth) = encode_group::<T, HAS_SPECIAL>(&padded(tail), &coder, &mut sums, &mut lost);
        last.iter_mut().for_each(|to| *to = depth);
        packer.finish(&codes[..tail.len()]);
        (total(&sums), lost.iter().any(|word| *word > T::Word::ZERO))
    }
}

struct Decode<'a, T: Float> {
    depths: &'a [u8],
    packed: &'a [u8],
    out: &'a mut [T],
    coder: BlockCoder<T>,
}

impl<T: Float> Job for Decode<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Decode { depths, packed, out, coder } = self;
        let mut unpacker = Unpacker::new(packed, out.len(), coder.bits);
        let (rows, tail) = out.as_chunks_mut::<ROW>();
        let (whole, last) = depths.split_at(rows.len());
        for (row, depth) in rows.iter_mut().zip(whole) {
            *row = coder.values(&unpacker.row(), *depth);
        }
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        for depth in last {
            tail.copy_from_slice(&coder.values(&codes, *depth)[..tail.len()]);
        }
    }
}

/// Codec `block`.
#[derive(Debug)]
struct BlockCodec {
    block: BlockFormat,
    runner: Runner,
}

/// Codec `block` with `parameter` bits.
pub(crate) fn make<T: Float>(parameter: &str, isa: Isa) -> CodecResult<T> {
    let bits = parse::integer("block", parameter, 2, BlockFormat::most::<T>())?;
    Ok(Box::new(BlockCodec { block: BlockFormat { bits }, runner: isa.runner() }))
}

impl<T: Float> Codec<T> for BlockCodec {
    fn name(&self) -> String {
        format!("block:{}", self.block.bits)
    }

    fn max_bytes(&self, count: usize) -> usize {
        self.block.bytes(count)
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn bound(&self, count: usize) -> Option<f64> {
        Some(self.block.bound(count))
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        self.block.encode(values, out, self.runner)
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        self.block.decode(bytes, out, self.runner, "block")
    }
}
