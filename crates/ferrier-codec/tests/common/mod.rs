//! Shared by the tests of codecs: names, data, and the exact loss.
#![allow(dead_code, missing_docs)]

pub mod exact;

use ferrier_codec::{Codec, Encoded, Isa, Scalar, codec_on};

/// Every codec, with parameters at the ends and in the middle of their ranges, for a precision.
pub fn names<T: Scalar>() -> Vec<String> {
    let most = T::MANTISSA;
    let bits = [2, 3, 7, 8, 11, 16, 17, 20, most];
    let mut names: Vec<String> = bits.iter().map(|b| format!("trim:{b}")).collect();
    names.extend(bits.iter().chain(&[most + 1]).map(|b| format!("block:{b}")));
    let others = "raw f32 f16 bf16 trim:1 zfp:rate=4 zfp:rate=9.25 zfp:rate=16 zfp:rate=32 zfp:accuracy=1e-300 \
                  zfp:accuracy=1e-3 zfp:accuracy=1e300 lossless within:0.5 within:1e-4 within:1e-7 within:1e-13 within:1e-200";
    names.extend(others.split_whitespace().map(String::from));
    names
}

/// A small pseudo-random generator.
pub struct Rng(pub u64);

impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
        x ^ (x >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
    /// In (-1, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * self.uniform().abs().max(1e-300).ln()).sqrt();
        r * (std::f64::consts::PI * self.uniform()).cos()
    }
}

pub const KINDS: usize = 21;

/// Data of many kinds, extreme ones included.
pub fn data<T: Scalar>(kind: usize, n: usize) -> Vec<T> {
    let mut rng = Rng((kind * 1_000_003 + n) as u64);
    let f64s = T::MANTISSA == 52;
    let (largest, large) = if f64s { (f64::MAX, 1e300) } else { (f32::MAX as f64, 1e37) };
    let (smallest, small) = if f64s { (5e-324, 1e-300) } else { (1.4e-45, 1e-37) };
    let decades = if f64s { 600.0 } else { 70.0 };
    let spike = rng.below(n.max(1));
    (0..n)
        .map(|i| {
            let x = match kind {
                0 => rng.normal(),
                1 => 0.0,
                2 => 1.0,
                3 => -0.1,
                4 => rng.normal() * large,
                5 => rng.normal() * small,
                6 => rng.uniform() * largest,
                7 => (rng.below(9) as f64 - 4.0) * smallest,
                8 => rng.uniform() * 10f64.powf(decades * 0.5 * rng.uniform()),
                9 => {
                    if i == spike {
                        large
                    } else {
                        rng.uniform() * large * if f64s { 1e-60 } else { 1e-30 }
                    }
                }
                10 => [0.0, -0.0, 1.0, -1.0][rng.below(4)],
                11 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -0.0, 0.0, largest][rng.below(7)],
                12 => (i as f64 * 0.01).sin(),
                13 => {
                    if i % 2 == 0 {
                        (i as f64 * 0.01).sin()
                    } else {
                        40.0 + (i as f64 * 0.02).cos()
                    }
                }
                14 => {
                    if i == spike {
                        f64::NAN
                    } else {
                        rng.normal() * large
                    }
                }
                15 => [largest, -largest, 0.0][rng.below(3)],
                // Close below a power of two: rounding up needs another bit.
                16 => [1.0f64.next_down(), -0.99999999, 0.5][rng.below(3)],
                17 => {
                    if i == spike {
                        f64::NEG_INFINITY
                    } else {
                        -0.0
                    }
                }
                18 => f64::from_bits(rng.bits()),
                // Beside the largest, values that underflow in its units.
                19 => {
                    if i == spike {
                        large
                    } else {
                        smallest * rng.below(3) as f64
                    }
                }
                _ => {
                    if i == spike {
                        1.0
                    } else {
                        small * small.sqrt().sqrt().max(1e-8)
                    }
                }
            };
            let y = T::rounded(x);
            // Rounding the largest must not overflow.
            if x.is_finite() && !y.widened().is_finite() { T::rounded(largest.copysign(x)) } else { y }
        })
        .collect()
}

/// Encodes and decodes with unaligned buffers of arbitrary contents.
pub fn round_trip<T: Scalar>(codec: &dyn Codec<T>, values: &[T]) -> (Encoded, Vec<u8>, Vec<T>) {
    let (n, offset) = (values.len(), 1 + values.len() % 7);
    let limit = codec.max_bytes(n);
    let mut bytes = vec![0xa5; offset + limit + 9];
    let mut scratch = vec![0xdead_beef_dead_beef; codec.scratch(n)];
    let encoded = codec.encode(values, &mut bytes[offset..offset + limit], &mut scratch);
    assert!(encoded.bytes <= limit && (!codec.is_fixed() || encoded.bytes == limit), "{}: {n}", codec.name());
    assert!(bytes[..offset].iter().chain(&bytes[offset + limit..]).all(|byte| *byte == 0xa5));
    scratch.fill(0x5555_5555_5555_5555);
    let mut back = vec![T::rounded(7.25); n];
    let sent = bytes[offset..offset + encoded.bytes].to_vec();
    let result = codec.decode(&bytes[offset..offset + encoded.bytes], &mut back, &mut scratch);
    result.unwrap_or_else(|error| panic!("{}: {n} values: {error}", codec.name()));
    (encoded, sent, back)
}

pub fn bits<T: Scalar>(values: &[T]) -> Vec<u64> {
    values.iter().map(|x| x.widened().to_bits()).collect()
}

/// Checks that every instruction set gives the same bits; returns the results of the best one.
pub fn on_every_isa<T: Scalar>(name: &str, values: &[T]) -> (Box<dyn Codec<T>>, Encoded, Vec<T>) {
    let mut first = None;
    for isa in Isa::available() {
        let codec = codec_on::<T>(name, isa).unwrap_or_else(|error| panic!("{error}"));
        let (encoded, bytes, back) = round_trip(&*codec, values);
        match &first {
            None => first = Some((codec, encoded, bytes, back)),
            Some((_, encoded_1, bytes_1, back_1)) => {
                assert_eq!(bytes, *bytes_1, "{name} {isa:?}: other bytes of {} values", values.len());
                assert_eq!(encoded, *encoded_1, "{name} {isa:?}: another loss");
                assert_eq!(bits(&back), bits(back_1), "{name} {isa:?}: other values");
            }
        }
    }
    let (codec, encoded, _, back) = first.expect("one that is here");
    (codec, encoded, back)
}
