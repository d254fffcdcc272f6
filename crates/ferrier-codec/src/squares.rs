//! Sums of squares that neither overflow nor underflow, rounded to one side.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::isa::{Isa, Runner};
use crate::number::{NARROW, Number};
use crate::scan::{Lanes, Survey, sum_of_differences, sum_of_squares, survey};

/// `sum * 4^exponent`; `sum` is 0, infinite, or in [1, 4).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Squares {
    sum: f64,
    exponent: i32,
}

/// Which way a sum is rounded.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Down,
    Up,
}

impl Squares {
    const ZERO: Squares = Squares { sum: 0.0, exponent: 0 };

    /// `sum * 4^exponent`, exactly.
    fn new(sum: f64, exponent: i32) -> Self {
        if sum == 0.0 {
            return Squares::ZERO;
        }
        if !sum.is_finite() {
            return Squares { sum: f64::INFINITY, exponent: 0 };
        }
        if sum < f64::MIN_POSITIVE {
            return Squares::new(sum * f64::power(128), exponent - 64);
        }
        let halves = (sum.to_bits() >> 52) as i32 - 1023;
        let quarters = halves.div_euclid(2);
        // In two steps: 4^quarters may be out of range though the result is not.
        let sum = sum * f64::power(-quarters) * f64::power(-quarters);
        Squares { sum, exponent: exponent.saturating_add(quarters) }
    }

    fn plus(self, other: Self, side: Side) -> Self {
        let (large, small) = if (self.exponent, self.sum) >= (other.exponent, other.sum) {
            (self, other)
        } else {
            (other, self)
        };
        if small.sum == 0.0 || large.sum == f64::INFINITY {
            return large;
        }
        if large.sum == 0.0 || small.sum == f64::INFINITY {
            return small;
        }
        let apart = large.exponent.saturating_sub(small.exponent).min(500);
        let sum = large.sum + small.sum * f64::power(-2 * apart);
        Squares::new(if side == Side::Up { sum.next_up() } else { sum.next_down() }, large.exponent)
    }

    /// The root of `self / other`, to within a few roundings.
    fn root_over(self, other: Self) -> f64 {
        let ratio = (self.sum / other.sum).sqrt();
        let exponent = self.exponent.saturating_sub(other.exponent).clamp(-4000, 4000);
        // In two steps, so that only the result overflows or underflows.
        ratio * f64::power(exponent / 2) * f64::power(exponent - exponent / 2)
    }
}

/// Some roundings up.
fn up(x: f64) -> f64 {
    // NaN stays NaN; zero stays zero only where it is exact, which callers see to.
    (0..4).fold(x, |x, _| x.next_up())
}

/// What encoding lost: the sum of the squares of the differences between the
/// values and what decoding gives, never less than it is.
///
/// Holds any finite data without overflow or underflow. A chunk with values
/// that are not finite has an infinite loss if its codec is lossy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss(Squares);

impl Loss {
    /// Nothing was lost.
    pub const NONE: Loss = Loss(Squares::ZERO);
    /// There is no bound: something was not finite.
    pub const INFINITE: Loss = Loss(Squares { sum: f64::INFINITY, exponent: 0 });

    /// A sum over `rows` roundings, in units of 4^exponent; [`Number::narrow`] rows may have been summed in `T`.
    pub(crate) fn rounded_up<T: Number>(sum: f64, rows: usize, exponent: i32) -> Self {
        // As in `slack`: half an epsilon for each addition, the square, and what rounds here, twice over.
        let narrow = (NARROW + 4) as f64 * 0.5f64.powi(T::MANTISSA as i32);
        Loss(Squares::new(sum * (1.0 + slack(rows) + narrow), exponent))
    }

    /// The squared difference of two numbers.
    fn of_difference(a: f64, b: f64) -> Self {
        let scale = if a.abs().max(b.abs()) > f64::power(1000) { -60 } else { 0 };
        let difference = (a * f64::power(scale) - b * f64::power(scale)).abs();
        if difference == 0.0 {
            return Loss::NONE;
        }
        if !difference.is_finite() {
            return Loss::INFINITE;
        }
        let lift = if difference < f64::power(-500) { 540 } else { 0 };
        let exponent = ((difference * f64::power(lift)).to_bits() >> 52) as i32 - 1023;
        let unit = difference * f64::power(lift) * f64::power(-exponent);
        Loss(Squares::new((unit * unit) * (1.0 + slack(1)), exponent - lift - scale))
    }

    /// The loss of `decoded` in the place of `values`, number by number: for
    /// chunks that are too wild for anything faster.
    pub(crate) fn number_by_number<T: Number>(values: &[T], decoded: &[T]) -> Self {
        values.iter().zip(decoded).map(|(a, b)| Loss::of_difference(a.widened(), b.widened())).sum()
    }

    /// The loss of `decoded` in the place of finite `values`, neither of them more than 2^`exponent`.
    pub(crate) fn between<T: Number>(values: &[T], decoded: &[T], exponent: i32, runner: Runner) -> Self {
        if exponent.abs() > 900 {
            return Loss::number_by_number(values, decoded);
        }
        match sum_of_differences(values, decoded, f64::power(-exponent), runner) {
            (_, false) => Loss::NONE,
            // The squares may have vanished.
            (sum, _) if sum < 1e-270 => Loss::number_by_number(values, decoded),
            (sum, _) => Loss::rounded_up::<f64>(sum, values.len() / 16, exponent),
        }
    }

    /// The L2 norm of what was lost, rounded up (infinite if it is beyond the largest number).
    pub fn norm(self) -> f64 {
        if self == Loss::NONE { 0.0 } else { up(self.0.root_over(Squares { sum: 1.0, exponent: 0 })) }
    }

    /// The norm of the loss over that of the values, rounded up. 0 where nothing was lost.
    pub fn relative_to(self, norm: Norm) -> f64 {
        if self == Loss::NONE {
            0.0
        } else if norm.low.sum == 0.0 {
            f64::INFINITY
        } else {
            // An infinite loss of infinite values has no bound either.
            let ratio = self.0.root_over(norm.low);
            if ratio.is_nan() { f64::INFINITY } else { up(ratio) }
        }
    }

    /// Two numbers for the wire, where losses of other ranks are to be added.
    pub fn to_numbers(self) -> [f64; 2] {
        [self.0.sum, self.0.exponent as f64]
    }

    /// What [`to_numbers`](Loss::to_numbers) gave; infinite if these did not come from there.
    pub fn from_numbers([sum, exponent]: [f64; 2]) -> Self {
        let good = sum >= 0.0 && exponent.abs() < 1e6;
        if good { Loss(Squares::new(sum, exponent as i32)) } else { Loss::INFINITE }
    }
}

impl Add for Loss {
    type Output = Loss;
    fn add(self, other: Loss) -> Loss {
        Loss(self.0.plus(other.0, Side::Up))
    }
}

impl AddAssign for Loss {
    fn add_assign(&mut self, other: Loss) {
        *self = *self + other;
    }
}

impl Sum for Loss {
    fn sum<I: Iterator<Item = Loss>>(losses: I) -> Loss {
        losses.fold(Loss::NONE, Add::add)
    }
}

/// The sum of the squares of values, between two bounds, without overflow or underflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    low: Squares,
    high: Squares,
}

impl Norm {
    /// That of no values.
    pub const ZERO: Norm = Norm { low: Squares::ZERO, high: Squares::ZERO };
    /// That of values of which some are not finite.
    pub const INFINITE: Norm = Norm { low: Loss::INFINITE.0, high: Loss::INFINITE.0 };

    /// That of `values`; infinite if any of them is not finite. Allocates nothing.
    pub fn of<T: Number>(values: &[T]) -> Self {
        let runner = Isa::best().runner();
        Norm::surveyed(values, &survey(values, runner), runner)
    }

    pub(crate) fn surveyed<T: Number>(values: &[T], survey: &Survey<T>, runner: Runner) -> Self {
        let top = &survey.top;
        if survey.special {
            return Norm::INFINITE;
        }
        if top.word == crate::number::Word::ZERO {
            return Norm::ZERO;
        }
        let lanes = Lanes { lift: top.lift(), weight: f64::power(-top.exponent()) };
        let sum = sum_of_squares(values, lanes, runner);
        let (slack, exponent) = (slack(values.len() / 16), top.exponent() - top.lifted());
        Norm {
            low: Squares::new(sum * (1.0 - slack), exponent),
            high: Squares::new(sum * (1.0 + slack), exponent),
        }
    }

    /// The L2 norm, rounded down.
    pub fn at_least(self) -> f64 {
        let one = Squares { sum: 1.0, exponent: 0 };
        (0..4).fold(self.low.root_over(one), |x, _| if x > 0.0 { x.next_down() } else { x })
    }

    /// The L2 norm, rounded up.
    pub fn at_most(self) -> f64 {
        Loss(self.high).norm()
    }

    /// Four numbers for the wire, where norms of other ranks are to be added.
    pub fn to_numbers(self) -> [f64; 4] {
        [self.low.sum, self.low.exponent as f64, self.high.sum, self.high.exponent as f64]
    }

    /// What [`to_numbers`](Norm::to_numbers) gave.
    pub fn from_numbers([low, low_exponent, high, high_exponent]: [f64; 4]) -> Self {
        let squares = |sum, exponent| Loss::from_numbers([sum, exponent]).0;
        Norm { low: squares(low, low_exponent), high: squares(high, high_exponent) }
    }
}

impl Add for Norm {
    type Output = Norm;
    fn add(self, other: Norm) -> Norm {
        Norm { low: self.low.plus(other.low, Side::Down), high: self.high.plus(other.high, Side::Up) }
    }
}

impl AddAssign for Norm {
    fn add_assign(&mut self, other: Norm) {
        *self = *self + other;
    }
}

impl Sum for Norm {
    fn sum<I: Iterator<Item = Norm>>(norms: I) -> Norm {
        norms.fold(Norm::ZERO, Add::add)
    }
}

/// The relative error of a sum of squares in 16 lanes of `rows` rows: half an
/// epsilon for each addition, the square, the weight and the lanes' sum, twice over.
fn slack(rows: usize) -> f64 {
    (rows + 40) as f64 * f64::EPSILON
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_overflow_and_no_underflow() {
        for scale in [1e-300, 1e-320, 1e-150, 1.0, 1e150, 1e300] {
            let values = vec![3.0 * scale, 4.0 * scale];
            let norm = Norm::of(&values);
            let true_norm = 5.0 * scale;
            assert!(norm.at_least() <= true_norm * 1.0001 && norm.at_most() >= true_norm * 0.9999);
            if scale > 1e-310 {
                assert!(norm.at_least() <= true_norm && true_norm <= norm.at_most(), "{scale}: {norm:?}");
                assert!(norm.at_most() / norm.at_least() < 1.0 + 1e-13);
            }
            let loss = Loss::number_by_number(&values, &[0.0, 0.0]);
            assert!((loss.norm() / norm.at_most() - 1.0).abs() < 1e-3, "{scale} {loss:?}");
        }
    }

    #[test]
    fn sums_round_outwards_over_six_hundred_decades() {
        let large = Loss::of_difference(1e300, 0.0);
        let small = Loss::of_difference(1e-300, 0.0);
        assert!(large + small > large && small + large == large + small);
        assert_eq!(large + Loss::NONE, large);
        assert_eq!(Loss::INFINITE + small, Loss::INFINITE);
        let (a, b) = (Norm::of(&[1e300]), Norm::of(&[1e-300]));
        let both = a + b;
        assert!(both.low.sum < a.high.sum && both.high.sum > a.high.sum);
        assert_eq!(Loss::from_numbers(large.to_numbers()), large);
        assert_eq!(Norm::from_numbers(both.to_numbers()), both);
        assert_eq!(Loss::from_numbers([f64::NAN, 0.0]), Loss::INFINITE);
    }

    impl PartialOrd for Loss {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            (self.0.exponent, self.0.sum).partial_cmp(&(other.0.exponent, other.0.sum))
        }
    }

    #[test]
    fn differences_of_huge_numbers_and_of_none() {
        let loss = Loss::of_difference(f64::MAX, -f64::MAX);
        assert!(loss.0.sum.is_finite() && loss.norm().is_infinite());
        assert_eq!(
            loss.relative_to(Norm::of(&[f64::MAX])),
            2.0f64.next_up().max(loss.relative_to(Norm::of(&[f64::MAX])))
        );
        assert!(loss.relative_to(Norm::of(&[f64::MAX])) < 2.0 + 1e-13);
        assert_eq!(Loss::of_difference(f64::NAN, 1.0), Loss::INFINITE);
        assert_eq!(Loss::NONE.relative_to(Norm::ZERO), 0.0);
        assert_eq!(small_over_nothing(), f64::INFINITY);
    }

    fn small_over_nothing() -> f64 {
        Loss::of_difference(1.0, 0.5).relative_to(Norm::ZERO)
    }
}
