//! The two precisions, as floats and as words of bits.

use std::fmt::Debug;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Shl, Shr, Sub};

/// Rows of f32 whose squares are summed in f32.
pub(crate) const NARROW_ROWS: usize = 16;
/// A computed loss exceeds the true loss by at most this factor because of that; promised bounds include it.
pub(crate) const LOSS_ROUNDING: f64 = 1.0 + (NARROW_ROWS + 4) as f64 / (1 << 24) as f64;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The bits of a float as an integer with wrapping arithmetic.
#[doc(hidden)]
pub trait Word:
    sealed::Sealed
    + bytemuck::Pod
    + Ord
    + Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const BITS: u32;
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    /// The larger of two words whose top bit is clear. Compares as signed
    /// integers, for which all instruction sets have instructions.
    fn larger(self, b: Self) -> Self;
    /// The smaller of two words whose top bit is clear.
    fn smaller(self, b: Self) -> Self;
    fn from_u64(x: u64) -> Self;
    fn to_u64(self) -> u64;
}

macro_rules! word {
    ($t:ty, $signed:ty) => {
        impl Word for $t {
            const BITS: u32 = <$t>::BITS;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn larger(self, b: Self) -> Self {
                (self as $signed).max(b as $signed) as $t
            }
            #[inline(always)]
            fn smaller(self, b: Self) -> Self {
                (self as $signed).min(b as $signed) as $t
            }
            #[inline(always)]
            fn from_u64(x: u64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
        }
    };
}
word!(u32, i32);
word!(u64, i64);

/// The format and the bits of `f32` or `f64`.
pub trait Float:
    sealed::Sealed
    + bytemuck::Pod
    + zfp_rs::ZfpScalar
    + crate::block_int::BlockFloat
    + Default
    + Debug
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
{
    /// `f32` or `f64`.
    const NAME: &'static str;
    /// Bytes of a value.
    const BYTES: usize;
    /// Bits of the mantissa, without the implicit leading one.
    const MANTISSA: u32;
    /// Bits of the exponent.
    const EXPONENT: u32;
    /// The exponent field of 1.
    const BIAS: i32;
    /// Chunks whose largest exponent field is below this are multiplied by 2^LIFT.
    #[doc(hidden)]
    const LOW: i32;
    /// The exponent of that power of two: large enough that no value stays subnormal.
    #[doc(hidden)]
    const LIFT: i32;
    /// The squared rounding error of a value of at least 2^-DEPTH is 0 or a normal float.
    #[doc(hidden)]
    const DEPTH: i32;
    #[doc(hidden)]
    type Word: Word;
    #[doc(hidden)]
    fn word(self) -> Self::Word;
    #[doc(hidden)]
    fn of_word(word: Self::Word) -> Self;
    /// Widens to `f64`.
    fn widened(self) -> f64;
    /// Rounds from `f64`.
    fn rounded(x: f64) -> Self;

    /// The number of rows whose squares are added in this precision before the sum is added to one in f64:
    /// few, so that rounding errors stay small.
    #[doc(hidden)]
    #[inline(always)]
    fn narrow_rows(rows: usize) -> usize {
        if Self::MANTISSA < 52 { NARROW_ROWS } else { rows.max(1) }
    }
    /// The mask of all bits but the sign.
    #[doc(hidden)]
    #[inline(always)]
    fn magnitude() -> Self::Word {
        Self::sign().minus(Self::Word::ONE)
    }
    /// The mask of the sign.
    #[doc(hidden)]
    #[inline(always)]
    fn sign() -> Self::Word {
        Self::Word::ONE << (Self::Word::BITS - 1)
    }
    /// The bits of infinity: magnitudes from here on are not finite.
    #[doc(hidden)]
    #[inline(always)]
    fn infinity() -> Self::Word {
        ((Self::Word::ONE << Self::EXPONENT).minus(Self::Word::ONE)) << Self::MANTISSA
    }
    /// 2^k; 0 below the range, infinity above it.
    #[doc(hidden)]
    #[inline(always)]
    fn power(k: i32) -> Self {
        let (field, last) = (k + Self::BIAS, (1 << Self::EXPONENT) - 1);
        let word = if field > 0 {
            Self::Word::from_u64(field.min(last) as u64) << Self::MANTISSA
        } else if field > -(Self::MANTISSA as i32) {
            Self::Word::ONE << (Self::MANTISSA as i32 - 1 + field) as u32
        } else {
            Self::Word::ZERO
        };
        Self::of_word(word)
    }
    /// 2^MANTISSA: after adding it to a smaller value, the lowest bits are
    /// that value, rounded to an integer.
    #[doc(hidden)]
    #[inline(always)]
    fn magic() -> Self {
        Self::power(Self::MANTISSA as i32)
    }
    /// The integer `q` <= 2^MANTISSA as a float.
    #[doc(hidden)]
    #[inline(always)]
    fn of_integer(q: Self::Word) -> Self {
        Self::of_word(Self::magic().word().plus(q)) - Self::magic()
    }
}

macro_rules! float {
    ($t:ident, $word:ty, $mantissa:literal, $exponent:literal, $low:literal, $lift:literal, $depth:literal) => {
        impl Float for $t {
            const NAME: &'static str = stringify!($t);
            const BYTES: usize = size_of::<$t>();
            const MANTISSA: u32 = $mantissa;
            const EXPONENT: u32 = $exponent;
            const BIAS: i32 = (1 << ($exponent - 1)) - 1;
            const LOW: i32 = $low;
            const LIFT: i32 = $lift;
            const DEPTH: i32 = $depth;
            type Word = $word;
            #[inline(always)]
            fn word(self) -> $word {
                self.to_bits()
            }
            #[inline(always)]
            fn of_word(word: $word) -> Self {
                Self::from_bits(word)
            }
            #[inline(always)]
            fn widened(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn rounded(x: f64) -> Self {
                x as $t
            }
        }
    };
}
// The last bit of 2^-40 is 2^-63 in f32; its square, 2^-126, is the smallest normal float.
float!(f32, u32, 23, 8, 64, 64, 40);
float!(f64, u64, 52, 11, 512, 512, 458);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_reach_from_the_smallest_subnormal_to_infinity() {
        let mut power = 1.0;
        for k in 0..=1074 {
            assert_eq!(f64::power(-k), power, "{k}");
            power /= 2.0;
        }
        for k in 0..=1023 {
            assert_eq!(f64::power(k), 2f64.powi(k), "{k}");
        }
        assert_eq!((f64::power(-1075), f64::power(1024)), (0.0, f64::INFINITY));
        for k in -149..=127 {
            assert_eq!(f32::power(k), 2f64.powi(k) as f32, "{k}");
        }
        assert_eq!((f32::power(-150), f32::power(-4000), f32::power(128)), (0.0, 0.0, f32::INFINITY));
    }

    #[test]
    fn integers_up_to_the_magic_number() {
        for q in [0, 1, 12345, (1 << 52) - 1, 1 << 52] {
            assert_eq!(f64::of_integer(q), q as f64);
        }
        assert_eq!(f32::of_integer(1 << 23), 8388608.0);
    }
}
