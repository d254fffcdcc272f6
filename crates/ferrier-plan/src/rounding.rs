//! What rounding and lost bits do to a result: bounds from the steps of a recipe.

use std::f64::consts::SQRT_2;

use crate::Kind;
use crate::recipe::{Recipe, Step};

impl Recipe {
    /// By how much relative losses of all reshapes add up in the result, in the
    /// worse of both directions. Where modes are dropped the result may be smaller
    /// still; nobody knows by how much.
    pub fn loss_weight(&self) -> f64 {
        let of = |backward: bool| {
            let mut steps: Vec<&Step> = self.steps.iter().collect();
            if !backward {
                steps.reverse();
            }
            // From the last step to the first.
            let (mut spread, mut sum) = (1.0, 0.0);
            for step in steps {
                match step {
                    Step::Transform { kind, .. } => spread *= self.spread(*kind, backward),
                    Step::Reshape { from, to } if from.boxes() == to.boxes() => {}
                    Step::Reshape { .. } => sum += spread,
                }
            }
            sum
        };
        f64::max(of(false), of(true)).max(1.0)
    }

    /// By how much more a transform of this kind may let an error grow than
    /// its result. Complex ones let all norms grow alike. The spectrum of real
    /// data has between half and all of the squares; cosines and sines that are
    /// not orthogonal count some of their points or modes twice.
    fn spread(&self, kind: Kind, backward: bool) -> f64 {
        match kind {
            Kind::Identity | Kind::Complex => 1.0,
            Kind::Real => SQRT_2,
            _ if self.ortho[usize::from(backward)] => 1.0,
            _ => 2.0,
        }
    }

    /// Lengths of the Fourier transforms behind all axes.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.kinds.iter().zip(self.shape).map(|(kind, n)| kind.size(n))
    }

    /// log2 of the number of points that are transformed together.
    fn log2_points(&self) -> f64 {
        self.sizes().map(|n| (n as f64).log2()).sum()
    }

    /// Below this no tolerance makes sense: what rounding may reach.
    pub fn rounding_limit(&self) -> f64 {
        10.0 * self.precision.epsilon() * self.log2_points()
    }

    /// What of a tolerance is left to rounding: all that it may do, so that the certificate's bound stays
    /// within the tolerance, unless that would leave next to nothing to the codecs.
    pub fn rounding_promised(&self, tolerance: f64) -> f64 {
        let worst = self.rounding_worst();
        if worst <= 0.75 * tolerance { worst } else { worst.min(self.rounding_limit()) }
    }

    /// An upper bound of what rounding adds to the relative error of a
    /// transform, by the stages of its axes.
    pub fn rounding_worst(&self) -> f64 {
        let sum: f64 = self.sizes().flat_map(stages).map(|p| (2.0 * p as f64).powf(1.5)).sum();
        let spread = |backward: bool| self.kinds.iter().map(|kind| self.spread(*kind, backward)).product();
        // One more for the scale.
        (1.06 * sum + 1.0) * f64::max(spread(false), spread(true)) * self.precision.epsilon()
    }

    /// What rounding usually adds: errors of the stages are independent.
    pub fn rounding_typical(&self) -> f64 {
        0.6 * self.precision.epsilon() * self.log2_points().max(1.0).sqrt()
    }
}

/// The smallest prime that kernels have no butterfly of.
const CONVOLVED: usize = 17;

/// The stages of a transform of `n` points: its prime factors, but those that go by convolution together.
fn stages(n: usize) -> impl Iterator<Item = usize> {
    let rest: usize = factors(n).filter(|p| *p >= CONVOLVED).product();
    factors(n).filter(|p| *p < CONVOLVED).chain((rest > 1).then_some(rest))
}

/// The prime factors of `n`, each as often as it divides it.
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
    fn prime_factors() {
        for (n, expected) in
            [(1, vec![]), (2, vec![2]), (12, vec![2, 2, 3]), (49, vec![7, 7]), (97, vec![97]), (0, vec![])]
        {
            assert_eq!(factors(n).collect::<Vec<_>>(), expected, "{n}");
        }
        for (n, expected) in [(1, vec![]), (1001, vec![7, 11, 13]), (2 * 17 * 19, vec![2, 323])] {
            assert_eq!(stages(n).collect::<Vec<_>>(), expected, "{n}");
        }
    }
}
