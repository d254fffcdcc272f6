//! Sums of squares of differences of f64, exactly: integers of 4352 bits.

use std::cmp::Ordering;

const WORDS: usize = 68;

/// An integer, least significant word first, in a unit that the caller chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Big(pub [u64; WORDS]);

impl Big {
    pub const ZERO: Big = Big([0; WORDS]);

    /// `mantissa * 2^shift`; bits below one are dropped.
    fn shifted(mantissa: u64, shift: i32) -> Big {
        let mut big = Big::ZERO;
        if shift <= -64 {
            return big;
        }
        if shift < 0 {
            big.0[0] = mantissa >> -shift;
            return big;
        }
        let (word, bit) = (shift as usize / 64, shift as u32 % 64);
        let wide = (mantissa as u128) << bit;
        big.0[word] = wide as u64;
        big.0[word + 1] = (wide >> 64) as u64;
        big
    }

    /// |x| in units of 2^-1074.
    fn of(x: f64) -> Big {
        let (field, mantissa) = (x.abs().to_bits() >> 52, x.to_bits() & ((1 << 52) - 1));
        match field {
            0 => Big::shifted(mantissa, 0),
            _ => Big::shifted(mantissa | 1 << 52, field as i32 - 1),
        }
    }

    pub fn add(&mut self, other: &Big) {
        let mut carry = 0;
        for (a, b) in self.0.iter_mut().zip(other.0) {
            let sum = *a as u128 + b as u128 + carry;
            (*a, carry) = (sum as u64, sum >> 64);
        }
        assert_eq!(carry, 0);
    }

    fn sub(&mut self, other: &Big) {
        let mut borrow = false;
        for (a, b) in self.0.iter_mut().zip(other.0) {
            let (x, one) = a.overflowing_sub(b);
            let (y, two) = x.overflowing_sub(borrow as u64);
            (*a, borrow) = (y, one || two);
        }
        assert!(!borrow);
    }

    fn square(&self) -> Big {
        let mut product = Big::ZERO;
        for (i, a) in self.0.iter().enumerate().filter(|(_, a)| **a > 0) {
            for (j, b) in self.0.iter().enumerate().filter(|(_, b)| **b > 0) {
                let mut part = Big::ZERO;
                let wide = *a as u128 * *b as u128;
                (part.0[i + j], part.0[i + j + 1]) = (wide as u64, (wide >> 64) as u64);
                product.add(&part);
            }
        }
        product
    }

    /// The sum of `(a - b)^2`, in units of 2^-2148.
    pub fn sum_of_squares(pairs: impl Iterator<Item = (f64, f64)>) -> Big {
        let mut sum = Big::ZERO;
        for (a, b) in pairs.filter(|(a, b)| a.to_bits() != b.to_bits()) {
            let (x, y) = (Big::of(a), Big::of(b));
            let mut difference = if x >= y { x.clone() } else { y.clone() };
            if a.is_sign_negative() == b.is_sign_negative() {
                difference.sub(if x >= y { &y } else { &x });
            } else {
                difference.add(if x >= y { &y } else { &x });
            }
            sum.add(&difference.square());
        }
        sum
    }

    /// `sum * 4^exponent` in units of 2^-2148, rounded down; `sum` in [1, 4).
    pub fn of_array([sum, exponent]: [f64; 2]) -> Big {
        if sum == 0.0 {
            return Big::ZERO;
        }
        let bits = sum.to_bits();
        let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
        Big::shifted(mantissa, (bits >> 52) as i32 - 1075 + 2 * exponent as i32 + 2148)
    }

    /// More than 1.0201 times `other`, that is 1.01 in the norm?
    pub fn far_above(&self, other: &Big) -> bool {
        let times = |big: &Big, factor: u64| {
            let mut out = Big::ZERO;
            let mut carry = 0;
            for (to, a) in out.0.iter_mut().zip(big.0) {
                let wide = a as u128 * factor as u128 + carry;
                (*to, carry) = (wide as u64, wide >> 64);
            }
            out
        };
        times(self, 10000) > times(other, 10201)
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        Some(self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}
