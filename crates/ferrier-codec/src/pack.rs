//! Integers of any width, packed without padding.
//!
//! Rows of 16 integers are packed lane by lane: each lane has its own bit
//! stream, cut into words, and the words of the 16 lanes are interleaved. So a
//! row costs two vector shifts and no data cross lanes. The bits at the end
//! that do not fill a word (the same number in every lane) and the integers
//! after the last whole row follow as one ordinary bit stream. So `n` integers of `width` bits take exactly `n * width` bits, rounded up to a byte.

use crate::float::Word;

/// Weights of a row.
pub(crate) const ROW: usize = 16;

/// Bytes of `n` integers of `width` bits.
pub(crate) fn packed_bytes(n: usize, width: u32) -> usize {
    // In two parts, so that the product does not overflow for large n.
    n / 8 * width as usize + (n % 8 * width as usize).div_ceil(8)
}

/// The lowest `width` bits.
#[inline(always)]
pub(crate) fn mask<W: Word>(width: u32) -> W {
    if width >= W::BITS { W::ZERO.minus(W::ONE) } else { (W::ONE << width).minus(W::ONE) }
}

#[inline(always)]
fn left<W: Word>(row: &[W; ROW], by: u32) -> [W; ROW] {
    if by >= W::BITS { [W::ZERO; ROW] } else { row.map(|w| w << by) }
}

#[inline(always)]
fn right<W: Word>(row: &[W; ROW], by: u32) -> [W; ROW] {
    if by >= W::BITS { [W::ZERO; ROW] } else { row.map(|w| w >> by) }
}

#[inline(always)]
fn or<W: Word>(a: &[W; ROW], b: &[W; ROW]) -> [W; ROW] {
    std::array::from_fn(|l| a[l] | b[l])
}

/// Writes rows, then the remaining integers.
pub(crate) struct Packer<'a, W> {
    out: &'a mut [u8],
    width: u32,
    used: u32,
    words: [W; ROW],
}

impl<'a, W: Word> Packer<'a, W> {
    /// Packs to `out`, which has [`packed_bytes`] bytes.
    #[inline(always)]
    pub fn new(out: &'a mut [u8], width: u32) -> Self {
        Packer { out, width, used: 0, words: [W::ZERO; ROW] }
    }

    /// Writes a row of integers below 2^width.
    #[inline(always)]
    pub fn row(&mut self, row: &[W; ROW]) {
        // Usually a word begins with a row: then nothing needs shifting.
        self.words = if self.used == 0 { *row } else { or(&self.words, &left(row, self.used)) };
        self.used += self.width;
        if self.used >= W::BITS {
            let ready = self.words;
            let (here, rest) = std::mem::take(&mut self.out).split_at_mut(size_of_val(&ready));
            here.copy_from_slice(bytemuck::bytes_of(&ready));
            self.out = rest;
            self.used -= W::BITS;
            if self.used > 0 {
                self.words = right(row, self.width - self.used);
            }
        }
    }

    /// Writes the bits that did not fill words, and the integers after the last row.
    #[inline(always)]
    pub fn finish(self, tail: &[W]) {
        let mut bits = BitWriter { out: self.out, held: 0, count: 0 };
        if self.used > 0 {
            self.words.iter().for_each(|w| bits.put(w.to_u64(), self.used));
        }
        tail.iter().for_each(|w| bits.put(w.to_u64(), self.width));
        bits.finish();
    }
}

struct BitWriter<'a> {
    out: &'a mut [u8],
    held: u128,
    count: u32,
}

impl BitWriter<'_> {
    #[inline(always)]
    fn put(&mut self, value: u64, width: u32) {
        self.held |= (value as u128) << self.count;
        self.count += width;
        while self.count >= 8 {
            self.byte();
        }
    }

    #[inline(always)]
    fn byte(&mut self) {
        let (first, rest) = std::mem::take(&mut self.out).split_at_mut(1);
        first[0] = self.held as u8;
        self.out = rest;
        self.held >>= 8;
        self.count = self.count.saturating_sub(8);
    }

    #[inline(always)]
    fn finish(mut self) {
        if self.count > 0 {
            self.byte();
        }
    }
}

/// Reads the output of a [`Packer`].
pub(crate) struct Unpacker<'a, W> {
    bytes: &'a [u8],
    width: u32,
    /// Rows of whole words that remain.
    whole: usize,
    /// Bits of each lane after its whole words.
    odd: u32,
    ready: u32,
    words: [W; ROW],
    bits: BitReader<'a>,
}

impl<'a, W: Word> Unpacker<'a, W> {
    /// Reads `n` integers of `width` bits from `bytes`, which has [`packed_bytes`] bytes.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], n: usize, width: u32) -> Self {
        let rows = n / ROW;
        // rows * width / BITS without the product, which could overflow.
        let (cycles, rest) = (rows / W::BITS as usize, (rows % W::BITS as usize) as u32 * width);
        let whole = cycles * width as usize + (rest / W::BITS) as usize;
        let (bytes, odd) = bytes.split_at(whole * ROW * size_of::<W>());
        let bits = BitReader { bytes: odd, held: 0, count: 0 };
        Unpacker { bytes, width, whole, odd: rest % W::BITS, ready: 0, words: [W::ZERO; ROW], bits }
    }

    #[inline(always)]
    fn fetch(&mut self) -> [W; ROW] {
        if self.whole > 0 {
            self.whole -= 1;
            let (here, rest) = self.bytes.split_at(ROW * size_of::<W>());
            self.bytes = rest;
            let mut words = [W::ZERO; ROW];
            bytemuck::bytes_of_mut(&mut words).copy_from_slice(here);
            words
        } else {
            let (odd, bits) = (self.odd, &mut self.bits);
            std::array::from_fn(|_| W::from_u64(bits.get(odd)))
        }
    }

    /// The next row.
    #[inline(always)]
    pub fn row(&mut self) -> [W; ROW] {
        let keep = mask::<W>(self.width);
        let here = self.words;
        if self.ready >= self.width {
            self.words = right(&here, self.width);
            self.ready -= self.width;
            return here.map(|w| w & keep);
        }
        let next = self.fetch();
        let row = or(&here, &left(&next, self.ready)).map(|w| w & keep);
        let taken = self.width - self.ready;
        self.words = right(&next, taken);
        self.ready = W::BITS - taken;
        row
    }

    /// Reads the integers after the last row into `tail`.
    #[inline(always)]
    pub fn tail(&mut self, tail: &mut [W]) {
        let width = self.width;
        tail.iter_mut().for_each(|w| *w = W::from_u64(self.bits.get(width)));
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    held: u128,
    count: u32,
}

impl BitReader<'_> {
    #[inline(always)]
    fn get(&mut self, width: u32) -> u64 {
        while self.count < width {
            let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
            self.bytes = rest;
            self.held |= (*first as u128) << self.count;
            self.count += 8;
        }
        let value = self.held as u64 & mask::<u64>(width);
        self.held >>= width;
        self.count -= width;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 32) << 32 | (*state).wrapping_mul(0x9e3779b97f4a7c15) >> 32
    }

    fn round_trip<W: Word>(n: usize, width: u32) {
        let mut state = n as u64 * 64 + width as u64;
        let values: Vec<W> = (0..n).map(|_| W::from_u64(random(&mut state)) & mask::<W>(width)).collect();
        let mut bytes = vec![0xa5; packed_bytes(n, width)];
        let mut packer = Packer::new(&mut bytes, width);
        let rows = values.chunks_exact(ROW);
        let tail = rows.remainder();
        rows.for_each(|row| packer.row(row.try_into().unwrap()));
        packer.finish(tail);
        assert_eq!(bytes.len(), (n * width as usize).div_ceil(8));
        let mut unpacker = Unpacker::<W>::new(&bytes, n, width);
        let mut back = vec![];
        (0..n / ROW).for_each(|_| back.extend(unpacker.row()));
        let mut tail = vec![W::ZERO; n % ROW];
        unpacker.tail(&mut tail);
        back.extend(tail);
        assert_eq!(values, back, "{n} integers of {width} bits");
    }

    #[test]
    fn every_width_and_many_lengths() {
        for n in (0..70).chain([127, 128, 129, 1000, 1024, 1025, 2048, 4096]) {
            (1..=64).for_each(|width| round_trip::<u64>(n, width));
            (1..=32).for_each(|width| round_trip::<u32>(n, width));
        }
    }
}
