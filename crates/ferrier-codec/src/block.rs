//! `block:B`: groups of 16 numbers share an exponent.
//!
//! A number is a sign and an integer of `B - 1` bits, in units of its group:
//! the smallest power of two of which no number of the group is more than
//! 2^(B-1) units. The exponents of groups are one byte each, counted down
//! from that of the chunk's largest number, which is in its header.
//!
//! On the wire: header ([`Head`], the exponent field of the largest number),
//! a byte for each group, the packed numbers.

use crate::isa::{Job, Runner};
use crate::number::{Number, SAID, Word};
use crate::pack::{Packer, ROW, Unpacker, mask, packed_bytes};
use crate::scan::{Survey, padded, survey, top, total};
use crate::small::{HEAD, Head};
use crate::{Codec, Encoded, Error, Isa, Loss, Made, parse};

/// Numbers of a group: a row.
pub(crate) const GROUP: usize = ROW;
/// Groups further down than this share the last exponent.
const DEEPEST: i32 = 254;
/// The mark of a group with values that are not finite.
const SPECIAL: u8 = 255;

/// Integers of `bits` bits with exponents of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub bits: u32,
}

impl Block {
    /// The most bits that numbers of `T` can have.
    pub const fn most<T: Number>() -> u32 {
        T::MANTISSA + 1
    }

    pub fn bytes(self, numbers: usize) -> usize {
        if numbers == 0 {
            return 0;
        }
        HEAD + numbers.div_ceil(GROUP) + packed_bytes(numbers, self.bits)
    }

    /// The loss over the norm, at most, of any `numbers` finite numbers.
    pub fn bound(self, numbers: usize) -> f64 {
        // A group's largest number is at least 2^(B-2) units; each of its
        // numbers is off by half a unit at most, or, where rounding up would
        // need another bit, by one unit while it is nearly 2^(B-1).
        // Groups at the deepest exponent add next to nothing.
        let in_group = (numbers.min(GROUP) as f64).sqrt() * 0.5f64.powi(self.bits as i32 - 1);
        let deep = (numbers as f64).sqrt() * 0.5f64.powi(38 + self.bits as i32);
        (in_group + deep) * SAID
    }

    pub fn encode<T: Number>(self, values: &[T], out: &mut [u8], runner: Runner) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        self.encode_surveyed(values, out, runner, &survey(values, runner))
    }

    /// With the chunk already looked at.
    pub fn encode_surveyed<T: Number>(
        self,
        values: &[T],
        out: &mut [u8],
        runner: Runner,
        survey: &Survey<T>,
    ) -> Encoded {
        let Survey { top, special, .. } = survey;
        let special = *special;
        let head = Head { field: top.field(), lifted: top.lifted() != 0, special };
        let bytes = self.bytes(values.len());
        let (first, rest) = out[..bytes].split_at_mut(HEAD);
        first.copy_from_slice(&head.bytes());
        let (depths, packed) = rest.split_at_mut(values.len().div_ceil(GROUP));
        let frame = Frame::new(self, head);
        let (sum, lost) = if special {
            runner.run(Encode::<T, true> { values, depths, packed, frame })
        } else {
            runner.run(Encode::<T, false> { values, depths, packed, frame })
        };
        let loss = match sum {
            _ if special => Loss::INFINITE,
            _ if !lost => Loss::NONE,
            sum if sum < vanished::<T>() => self.slow_loss(values, depths, packed, head),
            sum => Loss::rounded_up::<T>(sum, values.len() / ROW, frame.unit(0) - top.lifted()),
        };
        Encoded { bytes, loss }
    }

    /// The loss of a finite chunk, by decoding it.
    fn slow_loss<T: Number>(self, values: &[T], depths: &[u8], packed: &[u8], head: Head) -> Loss {
        let frame = Frame::<T>::new(self, head);
        let mut unpacker = Unpacker::new(packed, values.len(), self.bits);
        let mut loss = Loss::NONE;
        for (group, depth) in values.chunks(GROUP).zip(depths) {
            let mut codes = [T::Word::ZERO; ROW];
            match group.len() {
                GROUP => codes = unpacker.row(),
                n => unpacker.tail(&mut codes[..n]),
            }
            loss += Loss::number_by_number(group, &frame.values(&codes, *depth));
        }
        loss
    }

    pub fn decode<T: Number>(
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
        let head = Head::read::<T>(bytes, codec)?;
        let (depths, packed) = bytes[HEAD..].split_at(out.len().div_ceil(GROUP));
        runner.run(Decode { depths, packed, out, frame: Frame::new(self, head) });
        Ok(())
    }
}

/// Sums of squares below this may lack some that vanished: beside huge numbers the error of a tiny one, in their
/// units, is below the range of `T`. What is missing in larger sums is far less than they are rounded up by.
fn vanished<T: Number>() -> f64 {
    if T::MANTISSA < 52 { 1e-70 } else { 1e-270 }
}

/// Constants of a chunk.
#[derive(Clone, Copy)]
struct Frame<T: Number> {
    bits: u32,
    /// The exponent field of the chunk's largest number.
    field: i32,
    lift: T,
    lower: T,
    /// The largest integer.
    most: T::Word,
}

impl<T: Number> Frame<T> {
    #[inline(always)]
    fn new(block: Block, head: Head) -> Self {
        let lift = T::power(if head.lifted { T::LIFT } else { 0 });
        Frame { bits: block.bits, field: head.field, lift, lower: head.lower(), most: mask(block.bits - 1) }
    }

    /// The exponent of the unit of a group.
    #[inline(always)]
    fn unit(&self, depth: i32) -> i32 {
        self.field - depth + 1 - T::BIAS - (self.bits as i32 - 1)
    }

    /// How far below the chunk's largest exponent a group is put whose largest magnitude is `word`.
    #[inline(always)]
    fn depth(&self, word: T::Word) -> i32 {
        let field = (word >> T::MANTISSA).to_u64() as i32;
        // Not so deep that one over the unit overflows.
        let deepest = DEEPEST.min(self.field - self.bits as i32).max(0);
        (self.field - field).min(deepest)
    }

    /// Where the marks of values that are not finite begin, in groups that have some.
    #[inline(always)]
    fn marks(&self) -> T::Word {
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

    /// A value of a group in which not all are finite.
    fn special_value(&self, code: T::Word) -> T {
        let (magnitude, sign) = (code & self.most, (code >> (self.bits - 1)) << (T::Word::BITS - 1));
        if magnitude < self.marks() {
            return self.value(code, T::power(self.unit(0)));
        }
        // With two bits there is one mark only, for all that is not finite.
        let infinite = self.bits > 2 && magnitude == self.most;
        let quiet = if infinite { T::Word::ZERO } else { T::Word::ONE << (T::MANTISSA - 1) };
        T::of_word(T::infinity() | quiet | sign)
    }

    /// The code of a value of such a group.
    fn special_code(&self, value: T) -> T::Word {
        let (word, one) = (value.word(), T::Word::ONE);
        let (magnitude, sign) = (word & T::magnitude(), (word >> (T::Word::BITS - 1)) << (self.bits - 1));
        let code = if magnitude < T::infinity() {
            let scaled = T::of_word(magnitude) * self.lift * T::power(-self.unit(0));
            (scaled + T::magic()).word().minus(T::magic().word()).min(self.marks().minus(one))
        } else if magnitude == T::infinity() || self.bits == 2 {
            self.most
        } else {
            self.marks()
        };
        code | sign
    }
}

struct Encode<'a, T: Number, const ODD: bool> {
    values: &'a [T],
    depths: &'a mut [u8],
    packed: &'a mut [u8],
    frame: Frame<T>,
}

/// The codes and the depth of a group; adds the squares of what was lost, in
/// units of the chunk's top group, and its bits.
#[inline(always)]
fn encode_group<T: Number, const ODD: bool>(
    row: &[T; ROW],
    frame: &Frame<T>,
    sums: &mut [f64; ROW],
    lost: &mut [T::Word; ROW],
) -> ([T::Word; ROW], u8) {
    let mut words = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        words[l] = row[l].word() & T::magnitude();
    }
    let mut largest = top(&words);
    if ODD && largest >= T::infinity() {
        return (std::array::from_fn(|l| frame.special_code(row[l])), SPECIAL);
    }
    largest = (T::of_word(largest) * frame.lift).word();
    let depth = frame.depth(largest);
    let (per_unit, weight) = (T::power(-frame.unit(depth)), f64::power(-depth));
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let scaled = T::of_word(words[l]) * frame.lift * per_unit;
        let nearest = (scaled + T::magic()).word().minus(T::magic().word());
        let integer = nearest.smaller(frame.most);
        let error = scaled - T::of_integer(integer);
        let weighted = error.widened() * weight;
        sums[l] += weighted * weighted;
        // What became nothing is lost whole; next to huge numbers its error may have vanished too.
        let gone = if integer == T::Word::ZERO { words[l] } else { error.word() & T::magnitude() };
        lost[l] = lost[l] | gone;
        codes[l] = integer | ((row[l].word() >> (T::Word::BITS - 1)) << (frame.bits - 1));
    }
    (codes, depth as u8)
}

impl<T: Number, const ODD: bool> Job for Encode<'_, T, ODD> {
    /// The sum of squares in units of the top group, and whether anything was lost.
    type Out = (f64, bool);
    #[inline(always)]
    fn run(self) -> (f64, bool) {
        let Encode { values, depths, packed, frame } = self;
        let mut packer = Packer::new(packed, frame.bits);
        let (mut sums, mut lost) = ([0.0; ROW], [T::Word::ZERO; ROW]);
        let (rows, tail) = values.as_chunks::<ROW>();
        let (whole, last) = depths.split_at_mut(rows.len());
        for (row, to) in rows.iter().zip(whole) {
            let (codes, depth) = encode_group::<T, ODD>(row, &frame, &mut sums, &mut lost);
            *to = depth;
            packer.row(&codes);
        }
        let (codes, depth) = encode_group::<T, ODD>(&padded(tail), &frame, &mut sums, &mut lost);
        last.iter_mut().for_each(|to| *to = depth);
        packer.finish(&codes[..tail.len()]);
        (total(&sums), lost.iter().any(|word| *word > T::Word::ZERO))
    }
}

struct Decode<'a, T: Number> {
    depths: &'a [u8],
    packed: &'a [u8],
    out: &'a mut [T],
    frame: Frame<T>,
}

impl<T: Number> Job for Decode<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Decode { depths, packed, out, frame } = self;
        let mut unpacker = Unpacker::new(packed, out.len(), frame.bits);
        let (rows, tail) = out.as_chunks_mut::<ROW>();
        let (whole, last) = depths.split_at(rows.len());
        for (row, depth) in rows.iter_mut().zip(whole) {
            *row = frame.values(&unpacker.row(), *depth);
        }
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        for depth in last {
            tail.copy_from_slice(&frame.values(&codes, *depth)[..tail.len()]);
        }
    }
}

/// The member.
#[derive(Debug)]
struct Member {
    block: Block,
    runner: Runner,
}

/// Numbers with `parameter` bits.
pub(crate) fn make<T: Number>(parameter: &str, isa: Isa) -> Made<T> {
    let bits = parse::integer("block", parameter, 2, Block::most::<T>())?;
    Ok(Box::new(Member { block: Block { bits }, runner: isa.runner() }))
}

impl<T: Number> Codec<T> for Member {
    fn name(&self) -> String {
        format!("block:{}", self.block.bits)
    }

    fn max_bytes(&self, numbers: usize) -> usize {
        self.block.bytes(numbers)
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn bound(&self, numbers: usize) -> Option<f64> {
        Some(self.block.bound(numbers))
    }

    fn encode(&self, values: &[T], out: &mut [u8], _: &mut [u64]) -> Encoded {
        self.block.encode(values, out, self.runner)
    }

    fn decode(&self, bytes: &[u8], out: &mut [T], _: &mut [u64]) -> Result<(), Error> {
        self.block.decode(bytes, out, self.runner, "block")
    }
}
