//! Sums of squares that neither overflow nor underflow, rounded up or down.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::float::{Float, NARROW_ROWS};
use crate::isa::{Isa, Runner};
use crate::stats::{ChunkStats, Weights, chunk_stats, sum_of_differences, sum_of_squares};

/// `sum * 4^exponent`; `sum` is 0, infinite, or in [1, 4).
#[derive(Clone, Copy, Debug, PartialEq)]
struct ScaledSum {
    sum: f64,
    exponent: i32,
}

/// The direction in which a sum is rounded.
#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Down,
    Up,
}

impl ScaledSum {
    const ZERO: ScaledSum = ScaledSum { sum: 0.0, exponent: 0 };

    /// `sum * 4^exponent`, exactly.
    fn new(sum: f64, exponent: i32) -> Self {
        if sum == 0.0 {
            return ScaledSum::ZERO;
        }
        if !sum.is_finite() {
            return ScaledSum { sum: f64::INFINITY, exponent: 0 };
        }
        if sum < f64::MIN_POSITIVE {
            return ScaledSum::new(sum * f64::power(128), exponent - 64);
        }
        let halves = (sum.to_bits() >> 52) as i32 - 1023;
        let quarters = halves.div_euclid(2);
        // In two steps: 4^quarters may be out of range though the result is not.
        let sum = sum * f64::power(-quarters) * f64::power(-quarters);
        ScaledSum { sum, exponent: exponent.saturating_add(quarters) }
    }

    fn plus(self, other: Self, rounding: Rounding) -> Self {
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
        ScaledSum::new(if rounding == Rounding::Up { sum.next_up() } else { sum.next_down() }, large.exponent)
    }

    /// The square root of `self / other`, up to a few roundings.
    fn root_over(self, other: Self) -> f64 {
        let ratio = (self.sum / other.sum).sqrt();
        let exponent = self.exponent.saturating_sub(other.exponent).clamp(-4000, 4000);
        // In two steps, so that only the result overflows or underflows.
        ratio * f64::power(exponent / 2) * f64::power(exponent - exponent / 2)
    }
}

/// Rounds up by a few units in the last place.
fn up(x: f64) -> f64 {
    // NaN stays NaN. Callers handle exact zeros, which this would make positive.
    (0..4).fold(x, |x, _| x.next_up())
}

/// The loss of encoding: the sum of the squared differences between the values
/// and the decoded values, rounded up.
///
/// Holds any finite data without overflow or underflow. A chunk with values
/// that are not finite has an infinite loss if its codec is lossy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss(ScaledSum);

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss(ScaledSum::ZERO);
    /// No bound: some values were not finite.
    pub const INFINITE: Loss = Loss(ScaledSum { sum: f64::INFINITY, exponent: 0 });

    /// A sum over `rows` rows, in units of 4^exponent; [`Float::narrow_rows`] rows at a time may be summed in `T`.
    pub(crate) fn rounded_up<T: Float>(sum: f64, rows: usize, exponent: i32) -> Self {
        // As in `slack`: half an epsilon for each addition, the square and the roundings here, doubled.
        let narrow = (NARROW_ROWS + 4) as f64 * 0.5f64.powi(T::MANTISSA as i32);
        Loss(ScaledSum::new(sum * (1.0 + slack(rows) + narrow), exponent))
    }

    /// The squared difference of two values, for any exponents.
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
        Loss(ScaledSum::new((unit * unit) * (1.0 + slack(1)), exponent - lift - scale))
    }

    /// The loss of `decoded` against `values`, value by value: for chunks whose
    /// squares overflow or underflow.
    pub(crate) fn value_by_value<T: Float>(values: &[T], decoded: &[T]) -> Self {
        values.iter().zip(decoded).map(|(a, b)| Loss::of_difference(a.widened(), b.widened())).sum()
    }

    /// The loss of `decoded` against finite `values`, with magnitudes of at most 2^`exponent`.
    pub(crate) fn between<T: Float>(values: &[T], decoded: &[T], exponent: i32, runner: Runner) -> Self {
        if exponent.abs() > 900 {
            return Loss::value_by_value(values, decoded);
        }
        match sum_of_differences(values, decoded, f64::power(-exponent), runner) {
            (_, false) => Loss::NONE,
            // The squares may have underflowed.
            (sum, _) if sum < 1e-270 => Loss::value_by_value(values, decoded),
            (sum, _) => Loss::rounded_up::<f64>(sum, values.len() / 16, exponent),
        }
    }

    /// The L2 norm of the loss, rounded up (infinite if beyond the range of f64).
    pub fn norm(self) -> f64 {
        if self == Loss::NONE { 0.0 } else { up(self.0.root_over(ScaledSum { sum: 1.0, exponent: 0 })) }
    }

    /// The norm of the loss over that of the values, rounded up. 0 if there is no loss.
    pub fn relative_to(self, norm: Norm) -> f64 {
        if self == Loss::NONE {
            0.0
        } else if norm.low.sum == 0.0 {
            f64::INFINITY
        } else {
            // An infinite loss of infinite values is unbounded too.
            let ratio = self.0.root_over(norm.low);
            if ratio.is_nan() { f64::INFINITY } else { up(ratio) }
        }
    }

    /// Two scalars that represent it in messages, where losses of ranks are added.
    pub fn to_array(self) -> [f64; 2] {
        [self.0.sum, self.0.exponent as f64]
    }

    /// The inverse of [`to_array`](Loss::to_array); infinite for invalid scalars.
    pub fn from_array([sum, exponent]: [f64; 2]) -> Self {
        let good = sum >= 0.0 && exponent.abs() < 1e6;
        if good { Loss(ScaledSum::new(sum, exponent as i32)) } else { Loss::INFINITE }
    }
}

impl Add for Loss {
    type Output = Loss;
    fn add(self, other: Loss) -> Loss {
        Loss(self.0.plus(other.0, Rounding::Up))
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

/// The sum of squares of values: a lower and an upper bound, without overflow or underflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    low: ScaledSum,
    high: ScaledSum,
}

impl Norm {
    /// The norm of no values.
    pub const ZERO: Norm = Norm { low: ScaledSum::ZERO, high: ScaledSum::ZERO };
    /// The norm of values some of which are not finite.
    pub const INFINITE: Norm = Norm { low: Loss::INFINITE.0, high: Loss::INFINITE.0 };

    /// The norm of `values`; infinite if any of them is not finite. Does not allocate.
    pub fn of<T: Float>(values: &[T]) -> Self {
        let runner = Isa::best().runner();
        Norm::with_stats(values, &chunk_stats(values, runner), runner)
    }

    pub(crate) fn with_stats<T: Float>(values: &[T], chunk_stats: &ChunkStats<T>, runner: Runner) -> Self {
        let top = &chunk_stats.top;
        if chunk_stats.special {
            return Norm::INFINITE;
        }
        if top.word == crate::float::Word::ZERO {
            return Norm::ZERO;
        }
        let weights = Weights { lift: top.lift(), weight: f64::power(-top.exponent()) };
        let sum = sum_of_squares(values, weights, runner);
        let (slack, exponent) = (slack(values.len() / 16), top.exponent() - top.lifted());
        Norm {
            low: ScaledSum::new(sum * (1.0 - slack), exponent),
            high: ScaledSum::new(sum * (1.0 + slack), exponent),
        }
    }

    /// The L2 norm, rounded down.
    pub fn at_least(self) -> f64 {
        let one = ScaledSum { sum: 1.0, exponent: 0 };
        (0..4).fold(self.low.root_over(one), |x, _| if x > 0.0 { x.next_down() } else { x })
    }

    /// The L2 norm, rounded up.
    pub fn at_most(self) -> f64 {
        Loss(self.high).norm()
    }

    /// Four scalars that represent it in messages, where norms of ranks are added.
    pub fn to_array(self) -> [f64; 4] {
        [self.low.sum, self.low.exponent as f64, self.high.sum, self.high.exponent as f64]
    }

    /// The inverse of [`to_array`](Norm::to_array).
    pub fn from_array([low, low_exponent, high, high_exponent]: [f64; 4]) -> Self {
        let squares = |sum, exponent| Loss::from_array([sum, exponent]).0;
        Norm { low: squares(low, low_exponent), high: squares(high, high_exponent) }
    }
}

impl Add for Norm {
    type Output = Norm;
    fn add(self, other: Norm) -> Norm {
        Norm { low: self.low.plus(other.low, Rounding::Down), high: self.high.plus(other.high, Rounding::Up) }
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
/// epsilon for each addition, the square, the weight and the sum of the lanes, doubled.
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
            let loss = Loss::value_by_value(&values, &[0.0, 0.0]);
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
        assert_eq!(Loss::from_array(large.to_array()), large);
        assert_eq!(Norm::from_array(both.to_array()), both);
        assert_eq!(Loss::from_array([f64::NAN, 0.0]), Loss::INFINITE);
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
