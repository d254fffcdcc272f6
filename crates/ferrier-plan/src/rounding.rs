//! Error bounds of rounding and of lossy codecs, derived from the steps of a recipe.

use std::f64::consts::SQRT_2;

use crate::kind::Kind;
use crate::recipe::{Recipe, Step};

impl Recipe {
    /// Factor from the relative loss of each reshape to the relative error of the result, in the worse of both
    /// directions. Dropped modes may make the result smaller, which this factor does not include.
    pub fn loss_weight(&self) -> f64 {
        let of = |backward: bool| {
            let mut steps: Vec<&Step> = self.steps.iter().collect();
            if !backward {
                steps.reverse();
            }
            // From the last step to the first.
            let (mut growth, mut sum) = (1.0, 0.0);
            for step in steps {
                match step {
                    Step::Transform { kind, .. } => growth *= self.growth(*kind, backward),
                    Step::Reshape { from, to } if from.boxes() == to.boxes() => {}
                    Step::Reshape { .. } => sum += growth,
                }
            }
            sum
        };
        f64::max(of(false), of(true)).max(1.0)
    }

    /// Upper bound of the growth of an error relative to the growth of the result. A complex transform scales all
    /// norms alike. The halved spectrum of real data has between half and all of the sum of squares. Cosine and
    /// sine transforms that are not orthogonal count some points or modes twice.
    fn growth(&self, kind: Kind, backward: bool) -> f64 {
        match kind {
            Kind::Identity | Kind::Complex => 1.0,
            Kind::Real => SQRT_2,
            _ if self.ortho[usize::from(backward)] => 1.0,
            _ => 2.0,
        }
    }

    /// Sizes of all axes; see [`Kind::size`].
    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.kinds.iter().zip(self.shape).map(|(kind, n)| kind.size(n))
    }

    /// log2 of the product of all sizes.
    fn log2_points(&self) -> f64 {
        self.sizes().map(|n| (n as f64).log2()).sum()
    }

    /// The smallest tolerance that can be promised: rounding may reach it.
    pub fn rounding_limit(&self) -> f64 {
        10.0 * self.precision.epsilon() * self.log2_points()
    }

    /// The share of a tolerance that is reserved for rounding: its upper bound, so that the bound of the
    /// certificate stays within the tolerance, unless that would leave almost nothing for the codec.
    pub fn rounding_promised(&self, tolerance: f64) -> f64 {
        let worst = self.rounding_worst();
        if worst <= 0.75 * tolerance { worst } else { worst.min(self.rounding_limit()) }
    }

    /// Upper bound of the relative rounding error of a transform, derived from the butterfly stages of its axes.
    pub fn rounding_worst(&self) -> f64 {
        let sum: f64 = self.sizes().flat_map(butterfly_stages).map(|p| (2.0 * p as f64).powf(1.5)).sum();
        let growth = |backward: bool| self.kinds.iter().map(|kind| self.growth(*kind, backward)).product();
        // One rounding more for the scale factor.
        (1.06 * sum + 1.0) * f64::max(growth(false), growth(true)) * self.precision.epsilon()
    }

    /// Typical relative rounding error: errors of the stages are independent.
    pub fn rounding_typical(&self) -> f64 {
        0.6 * self.precision.epsilon() * self.log2_points().max(1.0).sqrt()
    }
}

/// The smallest prime that kernels transform by convolution instead of a butterfly.
const FIRST_CONVOLVED: usize = 17;

/// The radices of the stages of a transform of `n` points: its prime factors, those that need a convolution
/// multiplied together.
fn butterfly_stages(n: usize) -> impl Iterator<Item = usize> {
    let rest: usize = factors(n).filter(|p| *p >= FIRST_CONVOLVED).product();
    factors(n).filter(|p| *p < FIRST_CONVOLVED).chain((rest > 1).then_some(rest))
}

/// The prime factors of `n` with multiplicity.
fn factors(mut n: usize) -> impl Iterator<Item = usize> {
    let mut p = 2;
    std::iter::from_fn(move || {
        while p * p <= n && !n.is_multiple_of(p) {
            p += 1;
        }
        match n {
            0 | 1 => None,
            _ if p * p > n => Some(std::mem::replace(&mut n, 1)),
            _ => {
                n /= p;
                Some(p)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prime_factors_and_stages() {
        for (n, expected) in
            [(1, vec![]), (2, vec![2]), (12, vec![2, 2, 3]), (49, vec![7, 7]), (97, vec![97]), (0, vec![])]
        {
            assert_eq!(factors(n).collect::<Vec<_>>(), expected, "{n}");
        }
        for (n, expected) in [(1, vec![]), (1001, vec![7, 11, 13]), (2 * 17 * 19, vec![2, 323])] {
            assert_eq!(butterfly_stages(n).collect::<Vec<_>>(), expected, "{n}");
        }
    }
}
