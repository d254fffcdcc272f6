//! Double-double numbers: a pair whose sum carries about 106 bits.
//!
//! Only the operations of a naive DFT. Products are split as in Dekker, so no
//! fused multiply-add is needed.

use std::ops::{Add, Mul, Neg, Sub};

/// An unevaluated sum `hi + lo` with `|lo| <= ulp(hi) / 2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dd {
    pub hi: f64,
    pub lo: f64,
}

fn two_sum(a: f64, b: f64) -> Dd {
    let hi = a + b;
    let v = hi - a;
    Dd { hi, lo: (a - (hi - v)) + (b - v) }
}

fn quick_two_sum(a: f64, b: f64) -> Dd {
    let hi = a + b;
    Dd { hi, lo: b - (hi - a) }
}

fn split(a: f64) -> (f64, f64) {
    let t = 134_217_729.0 * a; // 2^27 + 1
    let hi = t - (t - a);
    (hi, a - hi)
}

fn two_prod(a: f64, b: f64) -> Dd {
    let hi = a * b;
    let (ah, al) = split(a);
    let (bh, bl) = split(b);
    Dd { hi, lo: ((ah * bh - hi) + ah * bl + al * bh) + al * bl }
}

impl Dd {
    pub(crate) const ZERO: Dd = Dd { hi: 0.0, lo: 0.0 };
    pub(crate) const ONE: Dd = Dd { hi: 1.0, lo: 0.0 };
    /// 2 pi to 107 bits.
    pub(crate) const TAU: Dd = Dd { hi: std::f64::consts::TAU, lo: 2.449_293_598_294_706_4e-16 };

    pub(crate) fn of(value: f64) -> Self {
        Dd { hi: value, lo: 0.0 }
    }

    pub(crate) fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// `self / divisor` for an integer below 2^53.
    pub(crate) fn over(self, divisor: u64) -> Self {
        let d = divisor as f64;
        let q1 = self.hi / d;
        let rest = self - two_prod(q1, d);
        let q2 = rest.hi / d;
        let rest = rest - two_prod(q2, d);
        quick_two_sum(q1, q2) + Dd::of(rest.hi / d)
    }

    /// Sine and cosine of an angle of at most pi/4, by their series.
    pub(crate) fn sin_cos(self) -> (Self, Self) {
        let (mut sin, mut cos) = (Dd::ZERO, Dd::ZERO);
        let mut term = Dd::ONE; // x^k / k!
        for k in 0..32_u64 {
            match k % 4 {
                0 => cos = cos + term,
                1 => sin = sin + term,
                2 => cos = cos - term,
                _ => sin = sin - term,
            }
            term = (term * self).over(k + 1);
        }
        (sin, cos)
    }
}

impl Add for Dd {
    type Output = Dd;
    fn add(self, other: Dd) -> Dd {
        let s = two_sum(self.hi, other.hi);
        let t = two_sum(self.lo, other.lo);
        let s = quick_two_sum(s.hi, s.lo + t.hi);
        quick_two_sum(s.hi, s.lo + t.lo)
    }
}

impl Neg for Dd {
    type Output = Dd;
    fn neg(self) -> Dd {
        Dd { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Dd {
    type Output = Dd;
    fn sub(self, other: Dd) -> Dd {
        self + -other
    }
}

impl Mul for Dd {
    type Output = Dd;
    fn mul(self, other: Dd) -> Dd {
        let p = two_prod(self.hi, other.hi);
        quick_two_sum(p.hi, p.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_keep_their_identity_to_1e_30() {
        for n in [8_u64, 9, 101, 4096] {
            let (s, c) = Dd::TAU.over(n).sin_cos();
            let one = s * s + c * c - Dd::ONE;
            assert!(one.value().abs() < 1e-30, "n={n}: {one:?}");
        }
    }

    #[test]
    fn a_third_of_three_is_one() {
        let third = Dd::ONE.over(3);
        let rest = third + third + third - Dd::ONE;
        assert!(rest.value().abs() < 1e-31, "{rest:?}");
        assert!(third.lo != 0.0);
    }
}
