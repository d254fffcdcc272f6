//! Floats of a block as integers with a common exponent, and these as negabinary numbers.

/// The integers of a precision.
#[doc(hidden)]
pub trait BlockFloat: Copy {
    type Int: Int;
    /// Blocks with these exponents are scaled without overflow, and keep all bits of the integers.
    const EXPONENTS: std::ops::Range<i32>;
    fn to_int(self, scale: Self) -> Self::Int;
    fn of_int(int: Self::Int, scale: Self) -> Self;
}

/// Wrapping arithmetic, and negabinary numbers with their highest bit in the highest of a word.
#[doc(hidden)]
pub trait Int: Copy {
    const BITS: u32;
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    fn half(self) -> Self;
    fn negabinary(self) -> u64;
    fn of_negabinary(bits: u64) -> Self;
}

macro_rules! block_float {
    ($float:ty, $int:ty, $word:ty, $mask:literal, $exponents:expr) => {
        impl BlockFloat for $float {
            type Int = $int;
            const EXPONENTS: std::ops::Range<i32> = $exponents;
            #[inline(always)]
            fn to_int(self, scale: Self) -> $int {
                (self * scale) as $int
            }
            #[inline(always)]
            fn of_int(int: $int, scale: Self) -> Self {
                int as $float * scale
            }
        }

        impl Int for $int {
            const BITS: u32 = <$int>::BITS;
            #[inline(always)]
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }
            #[inline(always)]
            fn negabinary(self) -> u64 {
                let bits = (self as $word).wrapping_add($mask) ^ $mask;
                u64::from(bits) << (u64::BITS - <$int>::BITS)
            }
            #[inline(always)]
            fn of_negabinary(bits: u64) -> Self {
                let bits = (bits >> (u64::BITS - <$int>::BITS)) as $word;
                (bits ^ $mask).wrapping_sub($mask) as $int
            }
        }
    };
}
block_float!(f32, i32, u32, 0xaaaa_aaaa, -90..128);
block_float!(f64, i64, u64, 0xaaaa_aaaa_aaaa_aaaa, -900..1024);
