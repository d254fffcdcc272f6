//! Small floating-point formats, scaled per chunk: the engine of the casts and of `trim`.
//!
//! A number is a sign, `exponent` bits of exponent and `mantissa` bits of
//! mantissa, as in IEEE formats: gradual underflow below, infinities and NaNs
//! at the top. The exponents of a chunk count from a *base* in its header,
//! set so that the largest value comes out next to the top: so no chunk
//! overflows, and what underflows is small beside the chunk's largest.
//!
//! Chunks of very small numbers are first lifted by a power of two, so that
//! arithmetic here never meets the subnormals of the wide format.
//!
//! On the wire: the base (two bytes: see [`Head`]), then the packed numbers.

use crate::isa::{Job, Runner};
use crate::number::{Number, SAID, Word};
use crate::pack::{Packer, ROW, Unpacker, packed_bytes};
use crate::scan::{Largest, Survey, padded, survey, total, widen};
use crate::{Encoded, Error, Loss};

/// Bytes of a chunk's header.
pub(crate) const HEAD: usize = 2;

/// The header of a chunk: an exponent field and two marks.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub field: i32,
    /// The chunk was lifted by [`Number::LIFT`].
    pub lifted: bool,
    /// Some values are not finite.
    pub special: bool,
}

impl Head {
    pub fn bytes(self) -> [u8; HEAD] {
        let marks = (self.lifted as u16) << 14 | (self.special as u16) << 15;
        (self.field as u16 | marks).to_le_bytes()
    }

    pub fn read<T: Number>(bytes: &[u8], codec: &'static str) -> Result<Self, Error> {
        let word = u16::from_le_bytes([bytes[0], bytes[1]]);
        let field = (word & 0x3fff) as i32;
        if field >= (1 << T::EXPONENT) - 1 {
            return Err(Error::Corrupt { codec, what: "an exponent that no finite number has" });
        }
        Ok(Head { field, lifted: word >> 14 & 1 == 1, special: word >> 15 == 1 })
    }

    /// What decoded values are multiplied by.
    pub fn lower<T: Number>(self) -> T {
        T::power(if self.lifted { -T::LIFT } else { 0 })
    }
}

/// A small format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Small {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa.
    pub mantissa: u32,
}

impl Small {
    pub fn width(self) -> u32 {
        1 + self.exponent + self.mantissa
    }

    pub fn bytes(self, numbers: usize) -> usize {
        if numbers == 0 { 0 } else { HEAD + packed_bytes(numbers, self.width()) }
    }

    /// The loss over the norm, at most, of any `numbers` finite numbers.
    pub fn bound(self, numbers: usize) -> f64 {
        // Half a step of the last bit, a whole one where rounding up would
        // overflow; and what lies below the range, half its last step each.
        let relative = 0.5f64.powi(self.mantissa as i32 + 1) * (1.0 + 0.5f64.powi(self.mantissa as i32));
        let range = ((1 << self.exponent) - 4).min(60);
        let tiny = (numbers as f64).sqrt() * 0.5f64.powi(range + self.mantissa as i32);
        (relative + tiny) * SAID
    }

    /// The exponent field that the smallest exponent of a chunk stands for.
    fn base<T: Number>(self, top: &Largest<T>) -> i32 {
        if self.exponent == T::EXPONENT {
            return 0;
        }
        // The one below the top: rounding may carry into the top one.
        let last = (1 << self.exponent) - 3;
        (top.field() - last).max(0)
    }

    pub fn encode<T: Number>(self, values: &[T], out: &mut [u8], runner: Runner) -> Encoded {
        if values.is_empty() {
            return Encoded { bytes: 0, loss: Loss::NONE };
        }
        let Survey { top, special, least } = survey(values, runner);
        let head = Head { field: self.base(&top), lifted: top.lifted() != 0, special };
        let bytes = self.bytes(values.len());
        let (first, packed) = out[..bytes].split_at_mut(HEAD);
        first.copy_from_slice(&head.bytes());
        let frame = Frame::new(self, head);
        let (sum, lost) = if special {
            runner.run(Encode::<T, SPECIAL> { values, packed, frame, top: top.exponent() })
        } else if top.is_plain() && least.plus(T::Word::ONE) >= frame.normal.max(top.lowest()) {
            runner.run(Encode::<T, PLAIN> { values, packed, frame, top: top.exponent() })
        } else {
            runner.run(Encode::<T, WILD> { values, packed, frame, top: top.exponent() })
        };
        let loss = match sum {
            _ if special => Loss::INFINITE,
            _ if !lost => Loss::NONE,
            // The squares may have vanished.
            sum if sum < 1e-270 => self.slow_loss(values, packed, head),
            sum => Loss::rounded_up::<T>(sum, values.len() / ROW, top.exponent() - top.lifted()),
        };
        Encoded { bytes, loss }
    }

    /// The loss of a finite chunk, by decoding it.
    fn slow_loss<T: Number>(self, values: &[T], packed: &[u8], head: Head) -> Loss {
        let frame = Frame::<T>::new(self, head);
        let mut unpacker = Unpacker::new(packed, values.len(), self.width());
        let (rows, tail) = values.as_chunks::<ROW>();
        let of_row = |row: &[T], codes: &[T::Word]| {
            let decoded: [T; ROW] =
                std::array::from_fn(|l| codes.get(l).map_or(T::default(), |c| frame.value::<false>(*c)));
            Loss::number_by_number(row, &decoded)
        };
        let loss: Loss = rows.iter().map(|row| of_row(row, &unpacker.row())).sum();
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        loss + of_row(tail, &codes)
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
        let (packed, frame) = (&bytes[HEAD..], Frame::new(self, head));
        if head.special {
            runner.run(Decode::<T, true> { packed, out, frame });
        } else {
            runner.run(Decode::<T, false> { packed, out, frame });
        }
        Ok(())
    }
}

/// Constants of a format with a base.
#[derive(Clone, Copy)]
struct Frame<T: Number> {
    format: Small,
    /// Bits of mantissa that go.
    cut: u32,
    /// Just below half of the last bit that stays.
    half: T::Word,
    /// 1 if a bit goes, to round ties to even.
    even: T::Word,
    /// The largest magnitude that does not round up to infinity.
    most: T::Word,
    /// Magnitudes below this (lifted) become subnormal.
    normal: T::Word,
    /// What is taken off a code's exponent.
    base: T::Word,
    /// Turns subnormals into integers, and back.
    unit: T,
    step: T,
    lift: T,
    lower: T,
    /// Where the codes of values that are not finite begin.
    special: T::Word,
    /// The sign of a code.
    sign: u32,
}

impl<T: Number> Frame<T> {
    #[inline(always)]
    fn new(format: Small, head: Head) -> Self {
        let Small { exponent, mantissa } = format;
        let (one, zero) = (T::Word::ONE, T::Word::ZERO);
        let cut = T::MANTISSA - mantissa;
        let scale = mantissa as i32 + T::BIAS - head.field - 1;
        // Without a base the codes are the number's own leading bits, its
        // subnormals included.
        let normal = if head.field == 0 { 0 } else { head.field as u64 + 1 };
        let power = |k| if normal == 0 { T::default() } else { T::power(k) };
        Frame {
            format,
            cut,
            half: if cut == 0 { zero } else { (one << (cut - 1)).minus(one) },
            even: if cut == 0 { zero } else { one },
            most: T::infinity().minus(one << cut),
            normal: T::Word::from_u64(normal) << T::MANTISSA,
            base: T::Word::from_u64(head.field as u64) << mantissa,
            unit: power(scale),
            step: power(-scale),
            lift: T::power(if head.lifted { T::LIFT } else { 0 }),
            lower: head.lower(),
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
    fn value<const ODD: bool>(&self, code: T::Word) -> T {
        let sign = (code >> self.sign) << (T::Word::BITS - 1);
        let code = code & crate::pack::mask(self.sign);
        let mut word = (self.magnitude(code) * self.lower).word();
        if ODD && code >= self.special {
            let quiet = if code == self.special { T::Word::ZERO } else { T::Word::ONE << (T::MANTISSA - 1) };
            word = T::infinity() | quiet;
        }
        T::of_word(word | sign)
    }
}

/// Chunks in which all is finite, normal, far from overflow and not so far apart that squares of errors
/// vanish: nearly all there are.
const PLAIN: u8 = 0;
/// Finite chunks with numbers below the range, lifted ones, and some at the end of the range.
const WILD: u8 = 1;
/// Chunks with values that are not finite.
const SPECIAL: u8 = 2;

struct Encode<'a, T: Number, const KIND: u8> {
    values: &'a [T],
    packed: &'a mut [u8],
    frame: Frame<T>,
    /// The exponent of the largest number.
    top: i32,
}

/// The codes of a row of a plain chunk; adds the squares of what was lost.
#[inline(always)]
fn encode_plain_row<T: Number>(
    row: &[T; ROW],
    frame: &Frame<T>,
    weight: T,
    sums: &mut [T; ROW],
) -> [T::Word; ROW] {
    let (base, sign) = (frame.base << frame.cut, T::Word::ONE << frame.sign);
    let kept = T::sign() | T::magnitude().minus(crate::pack::mask(frame.cut));
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let word = row[l].word();
        // The sign comes along: nothing carries into it.
        let rounded = word.plus(frame.half).plus((word >> frame.cut) & frame.even);
        let scaled = (row[l] - T::of_word(rounded & kept)) * weight;
        sums[l] = sums[l] + scaled * scaled;
        // Zeros are below the base.
        let code = (rounded & T::magnitude()).larger(base).minus(base) >> frame.cut;
        codes[l] = code | (rounded >> (T::Word::BITS - 1 - frame.sign)) & sign;
    }
    codes
}

/// The codes of a row of any other chunk; adds the squares of what was lost, and its bits.
#[inline(always)]
fn encode_row<T: Number, const KIND: u8>(
    row: &[T; ROW],
    frame: &Frame<T>,
    weight: f64,
    sums: &mut [f64; ROW],
    lost: &mut [T::Word; ROW],
) -> [T::Word; ROW] {
    let mut codes = [T::Word::ZERO; ROW];
    for l in 0..ROW {
        let word = row[l].word();
        let plain = word & T::magnitude();
        let odd = KIND == SPECIAL && plain >= T::infinity();
        let lifted = T::of_word(if odd { T::Word::ZERO } else { plain }) * frame.lift;
        let mut code = frame.code(lifted.word());
        let error = lifted - frame.magnitude(code);
        let scaled = error.widened() * weight;
        sums[l] += scaled * scaled;
        lost[l] = lost[l] | (error.word() & T::magnitude());
        if odd {
            let quiet = T::Word::from_u64((plain > T::infinity()) as u64);
            code = frame.special | (quiet << (frame.format.mantissa - 1));
        }
        codes[l] = code | ((word >> (T::Word::BITS - 1)) << frame.sign);
    }
    codes
}

impl<T: Number, const KIND: u8> Job for Encode<'_, T, KIND> {
    /// The weighted sum of squares, and whether anything was lost.
    type Out = (f64, bool);
    #[inline(always)]
    fn run(self) -> (f64, bool) {
        if KIND == PLAIN { self.plain() } else { self.any() }
    }
}

impl<T: Number, const KIND: u8> Encode<'_, T, KIND> {
    #[inline(always)]
    fn plain(self) -> (f64, bool) {
        let Encode { values, packed, frame, top } = self;
        let (mut packer, weight) = (Packer::new(packed, frame.format.width()), T::power(-top));
        let mut sums = [0.0; ROW];
        let (rows, tail) = values.as_chunks::<ROW>();
        for some in rows.chunks(T::narrow(rows.len())) {
            let mut few = [T::default(); ROW];
            for row in some {
                packer.row(&encode_plain_row(row, &frame, weight, &mut few));
            }
            widen(&mut sums, &few);
        }
        let mut few = [T::default(); ROW];
        let codes = encode_plain_row(&padded(tail), &frame, weight, &mut few);
        widen(&mut sums, &few);
        packer.finish(&codes[..tail.len()]);
        let sum = total(&sums);
        // In a plain chunk no square vanishes.
        (sum, sum > 0.0)
    }

    #[inline(always)]
    fn any(self) -> (f64, bool) {
        let Encode { values, packed, frame, top } = self;
        let (mut packer, weight) = (Packer::new(packed, frame.format.width()), f64::power(-top));
        let (mut sums, mut lost) = ([0.0; ROW], [T::Word::ZERO; ROW]);
        let (rows, tail) = values.as_chunks::<ROW>();
        for row in rows {
            packer.row(&encode_row::<T, KIND>(row, &frame, weight, &mut sums, &mut lost));
        }
        let codes = encode_row::<T, KIND>(&padded(tail), &frame, weight, &mut sums, &mut lost);
        packer.finish(&codes[..tail.len()]);
        (total(&sums), lost.iter().any(|word| *word > T::Word::ZERO))
    }
}

struct Decode<'a, T: Number, const ODD: bool> {
    packed: &'a [u8],
    out: &'a mut [T],
    frame: Frame<T>,
}

impl<T: Number, const ODD: bool> Job for Decode<'_, T, ODD> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Decode { packed, out, frame } = self;
        let mut unpacker = Unpacker::new(packed, out.len(), frame.format.width());
        let (rows, tail) = out.as_chunks_mut::<ROW>();
        for row in rows {
            let codes = unpacker.row();
            for l in 0..ROW {
                row[l] = frame.value::<ODD>(codes[l]);
            }
        }
        let mut codes = [T::Word::ZERO; ROW];
        unpacker.tail(&mut codes[..tail.len()]);
        for (x, code) in tail.iter_mut().zip(codes) {
            *x = frame.value::<ODD>(code);
        }
    }
}
