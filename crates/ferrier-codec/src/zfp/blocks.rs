//! zfp's encoder of blocks of four values at a fixed rate. It writes the bits that the crate zfp-rs writes, and knows what
//! they decode to: so the loss of a chunk is computed without decoding it.
//!
//! A block is scaled to integers by its largest exponent, decorrelated (`lift`), and sent bit plane by bit plane, the highest
//! first. A plane of four bits is sent as they are, of the values that have had a one bit; of the others by tests whether
//! there is another one bit, and by the bits up to it.

use crate::block_int::Int;
use crate::float::{Float, Word};
use crate::isa::Job;

/// Values of a block.
pub(super) const BLOCK: usize = 4;

#[inline(always)]
fn lift<I: Int>([mut x, mut y, mut z, mut w]: [I; BLOCK]) -> [I; BLOCK] {
    x = x.plus(w).half();
    w = w.minus(x);
    z = z.plus(y).half();
    y = y.minus(z);
    x = x.plus(z).half();
    z = z.minus(x);
    w = w.plus(y).half();
    y = y.minus(w);
    w = w.plus(y.half());
    y = y.minus(w.half());
    [x, y, z, w]
}

#[inline(always)]
fn unlift<I: Int>([mut x, mut y, mut z, mut w]: [I; BLOCK]) -> [I; BLOCK] {
    y = y.plus(w.half());
    w = w.minus(y.half());
    y = y.plus(w);
    w = w.minus(y.minus(w));
    z = z.plus(x);
    x = x.minus(z.minus(x));
    y = y.plus(z);
    z = z.minus(y.minus(z));
    w = w.plus(x);
    x = x.minus(w.minus(x));
    [x, y, z, w]
}

/// The code of a plane: its bits, their number, and how many values have had a one bit then.
#[derive(Clone, Copy)]
struct PlaneCode {
    bits: u8,
    len: u8,
    known: u8,
}

/// Codes by the number of values that have had a one bit, and the bits of the plane.
static CODES: [[PlaneCode; 16]; BLOCK + 1] = {
    let mut codes = [[PlaneCode { bits: 0, len: 0, known: 0 }; 16]; BLOCK + 1];
    let mut known = 0;
    while known <= BLOCK {
        let mut plane = 0;
        while plane < 16 {
            codes[known][plane] = plane_code(known, plane);
            plane += 1;
        }
        known += 1;
    }
    codes
};

const fn plane_code(known: usize, plane: usize) -> PlaneCode {
    let (mut bits, mut len) = ((plane & ((1 << known) - 1)) as u8, known as u8);
    let (mut at, mut rest) = (known, plane >> known);
    while at < BLOCK {
        // Is there another one bit?
        if rest != 0 {
            bits |= 1 << len;
        }
        len += 1;
        if rest == 0 {
            break;
        }
        // The bits up to it; that of the last value follows from the test.
        while at < BLOCK - 1 {
            let one = rest & 1;
            bits |= (one as u8) << len;
            len += 1;
            if one == 1 {
                break;
            }
            rest >>= 1;
            at += 1;
        }
        rest >>= 1;
        at += 1;
    }
    PlaneCode { bits, len, known: at as u8 }
}

/// What a decoder makes of the first `room` bits of the code of a plane.
fn cut_plane(known: usize, plane: u64, room: u32) -> u64 {
    let code = CODES[known][plane as usize];
    let direct = (known as u32).min(room);
    let mut decoded = u64::from(code.bits) & ((1 << direct) - 1);
    let (mut next, mut at) = (direct, known);
    let mut read = || {
        let bit = u32::from(code.bits) >> next & 1;
        next += 1;
        (bit == 1, next == room)
    };
    if direct == room {
        return decoded;
    }
    while at < BLOCK {
        let (more, mut end) = read();
        if !more {
            return decoded;
        }
        while !end && at < BLOCK - 1 {
            let (one, last) = read();
            end = last;
            if one {
                break;
            }
            at += 1;
        }
        decoded |= 1 << at;
        at += 1;
        if end {
            return decoded;
        }
    }
    decoded
}

/// Bits written to words, the lowest first.
struct BitWriter<'a> {
    words: &'a mut [u64],
    at: usize,
}

impl BitWriter<'_> {
    /// At most 64 bits; those above are zero.
    #[inline(always)]
    fn put(&mut self, bits: u64, len: u32) {
        let (word, shift) = (self.at / 64, self.at as u32 % 64);
        self.words[word] |= bits << shift;
        if shift + len > 64 {
            self.words[word + 1] |= bits >> (64 - shift);
        }
        self.at += len as usize;
    }
}

/// Spreads 16 bits: each becomes the lowest of four.
#[inline(always)]
fn spread(bits: u64) -> u64 {
    let bits = (bits | bits << 24) & 0x0000_00ff_0000_00ff;
    let bits = (bits | bits << 12) & 0x000f_000f_000f_000f;
    let bits = (bits | bits << 6) & 0x0303_0303_0303_0303;
    (bits | bits << 3) & 0x1111_1111_1111_1111
}

/// The planes of a block, four bits each, the highest plane lowest; 16 in a word.
#[inline(always)]
fn planes(block: [u64; BLOCK]) -> [u64; 4] {
    std::array::from_fn(|word| {
        let part = |value: usize| spread(block[value] >> (48 - 16 * word) & 0xffff) << value;
        // The lowest plane of these is lowest: the order of the nibbles is reversed.
        let nibbles = (part(0) | part(1) | part(2) | part(3)).swap_bytes();
        (nibbles & 0x0f0f_0f0f_0f0f_0f0f) << 4 | nibbles >> 4 & 0x0f0f_0f0f_0f0f_0f0f
    })
}

/// Writes the planes of a block within `room` bits. Returns the block that they decode to.
#[inline(always)]
fn write_planes<const BITS: u32>(block: [u64; BLOCK], mut room: u32, to: &mut BitWriter<'_>) -> [u64; BLOCK] {
    let any = block[0] | block[1] | block[2] | block[3];
    // Empty planes at the top: a zero bit each.
    let mut plane = any.leading_zeros().min(BITS);
    if plane >= room {
        to.at += room as usize;
        return [0; BLOCK];
    }
    (to.at, room) = (to.at + plane as usize, room - plane);
    let planes = planes(block);
    let mut known = 0;
    while known < BLOCK && plane < BITS && room > 0 {
        let bits = planes[plane as usize / 16] >> (4 * (plane % 16)) & 15;
        let code = CODES[known][bits as usize];
        let len = u32::from(code.len);
        if len > room {
            to.put(u64::from(code.bits) & ((1 << room) - 1), room);
            let decoded = cut_plane(known, bits, room);
            let above = !(u64::MAX >> plane);
            return std::array::from_fn(|value| {
                block[value] & above | (decoded >> value & 1) << (63 - plane)
            });
        }
        to.put(u64::from(code.bits), len);
        (known, plane, room) = (usize::from(code.known), plane + 1, room - len);
    }
    // All values have had a one bit: the other planes are sent as they are.
    let mut left = room.min(4 * (BITS - plane));
    let (full, part) = (plane + left / 4, left % 4);
    let mut at = 4 * plane;
    while left > 0 {
        let (word, shift) = (at as usize / 64, at % 64);
        let len = left.min(64 - shift);
        let bits = planes[word] >> shift;
        to.put(if len < 64 { bits & ((1 << len) - 1) } else { bits }, len);
        (at, left) = (at + len, left - len);
    }
    let above = if full < 64 { !(u64::MAX >> full) } else { u64::MAX };
    let next = if full < 64 { 1 << (63 - full) } else { 0 };
    std::array::from_fn(|value| block[value] & (above | if (value as u32) < part { next } else { 0 }))
}

/// Encodes values at a fixed rate and replaces them by what is decoded. `false` if they are not encoded here: if a block
/// has exponents near an end of the range.
pub(super) struct EncodeBlocks<'a, T> {
    pub values: &'a mut [T],
    /// Zeros, as many as the bits of all blocks need and one more.
    pub words: &'a mut [u64],
    /// Bits of a block, at least a flag and an exponent.
    pub bits: usize,
}

impl<T: Float> Job for EncodeBlocks<'_, T> {
    type Out = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let EncodeBlocks { values, words, bits } = self;
        let mut to = BitWriter { words, at: 0 };
        let top = <T::Int as Int>::BITS as i32 - 2;
        for (number, values) in values.chunks_mut(BLOCK).enumerate() {
            to.at = number * bits;
            let [a, b, c] = [1, 2, 3].map(|at| values.get(at).copied());
            // A block that is not full repeats some of its values.
            let b = b.or(a).unwrap_or(values[0]);
            let block = [values[0], a.unwrap_or(values[0]), b, c.unwrap_or(values[0])];
            let words = block.map(|value| value.word() & T::magnitude());
            let most = words[0].larger(words[1]).larger(words[2].larger(words[3]));
            if most == T::Word::ZERO {
                // A zero bit says that all are zero.
                values.fill(T::default());
                continue;
            }
            let exponent = (most >> T::MANTISSA).to_u64() as i32 - T::BIAS + 1;
            if !T::EXPONENTS.contains(&exponent) {
                return false;
            }
            let header = T::EXPONENT + 1;
            to.put(2 * (exponent + T::BIAS) as u64 + 1, header);
            let scale = T::power(top - exponent);
            let block = lift(block.map(|value| value.to_int(scale))).map(Int::negabinary);
            let room = bits as u32 - header;
            let block = match T::BYTES {
                4 => write_planes::<32>(block, room, &mut to),
                _ => write_planes::<64>(block, room, &mut to),
            };
            let scale = T::power(exponent - top);
            let block = unlift(block.map(Int::of_negabinary)).map(|int| T::of_int(int, scale));
            values.iter_mut().zip(block).for_each(|(value, decoded)| *value = decoded);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use zfp_rs::{
        ZFP_MAX_PREC, ZFP_MIN_EXP, ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpField, ZfpFieldMut,
    };

    /// The bits are those of zfp-rs, and what is said to be decoded is what it decodes.
    fn check<T: Float>(values: &[T], bits: usize) {
        let n = values.len();
        let mut words = vec![0; (n.div_ceil(BLOCK) * bits).div_ceil(64) + 8];
        let mut expected = words.clone();
        let config = ZfpConfig::expert(bits as u32, bits as u32, ZFP_MAX_PREC, ZFP_MIN_EXP).unwrap();
        let field = ZfpField::new(values, n).unwrap();
        ZfpBitStreamRefMut::from_words(&mut expected).compress(&config, &field).unwrap();
        let mut decoded = vec![T::default(); n];
        let mut field = ZfpFieldMut::new(&mut decoded, n).unwrap();
        ZfpBitStreamRef::from_words(&expected).decompress(&config, &mut field).unwrap();
        for isa in Isa::available() {
            let mut own = values.to_vec();
            words.fill(0);
            assert!(isa.runner().run(EncodeBlocks { values: &mut own, words: &mut words, bits }));
            assert_eq!(words, expected, "{values:?} in {bits} bits");
            let same = own.iter().zip(&decoded).all(|(own, decoded)| own == decoded);
            assert!(same, "{values:?} in {bits} bits: {own:?}, zfp {decoded:?}");
        }
    }

    #[test]
    fn bits_and_losses_are_those_of_zfp() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for round in 0..4000 {
            let n = 1 + random() as usize % 9;
            let smooth = random() % 3;
            let values: Vec<f64> = (0..n)
                .map(|i| {
                    let noise = random() as f64 / (1_u64 << 30) as f64 - 1.0;
                    match (smooth, random() % 8) {
                        (_, 0) => 0.0,
                        (0, _) => (0.1 * i as f64 + round as f64).sin(),
                        (1, _) => noise * 2_f64.powi(random() as i32 % 60 - 30),
                        _ => noise,
                    }
                })
                .collect();
            let least = 12;
            check(&values, least + random() as usize % 245);
            let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            check(&values, least + random() as usize % 117);
        }
        check(&[-1.0, 1.0, -1.0, 1.0], 13);
        check(&[1e300, -1e-300, 0.0, 3.5], 128);
    }
}
