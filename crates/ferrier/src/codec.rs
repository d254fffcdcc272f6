//! Codecs: numbers to fewer bytes and back, and which one keeps a tolerance.
//!
//! They live in a crate of their own, which knows nothing of ranks or plans.

use std::any::Any;
use std::f64::consts::SQRT_2;
use std::sync::Arc;

pub use ferrier_codec::{CODECS, Codec, Encoded, Isa, Loss, Member, Norm, Number, Pick, codec, pick};

use crate::problem::Tolerance;
use crate::recipe::{Recipe, Step};
use crate::{Error, Kind, Precision, Problem, Real, Result};

/// The codec that leaves numbers as they are.
pub const RAW: &str = "raw";

/// Numbers of a chunk: enough that headers do not matter, few enough that a
/// chunk and its bytes stay in the first caches.
pub(crate) const CHUNK: usize = 4096;

/// A codec and what else is needed of the numbers it takes.
pub(crate) struct CodecInstance<T> {
    pub codec: Arc<dyn Codec<T>>,
    pub norm: fn(&[T]) -> Norm,
}

impl<T: Real> CodecInstance<T> {
    /// # Errors
    /// [`Error::Choice`] where there is no such codec.
    pub fn new(name: &str) -> Result<CodecInstance<T>> {
        let wrong = |error: ferrier_codec::Error| Error::Choice(error.to_string());
        let made: (Box<dyn Any>, Box<dyn Any>) = match T::PRECISION {
            Precision::F32 => (
                Box::new(Arc::<dyn Codec<f32>>::from(codec::<f32>(name).map_err(wrong)?)),
                Box::new(Norm::of::<f32> as fn(&[f32]) -> Norm),
            ),
            Precision::F64 => (
                Box::new(Arc::<dyn Codec<f64>>::from(codec::<f64>(name).map_err(wrong)?)),
                Box::new(Norm::of::<f64> as fn(&[f64]) -> Norm),
            ),
        };
        match (made.0.downcast::<Arc<dyn Codec<T>>>(), made.1.downcast::<fn(&[T]) -> Norm>()) {
            (Ok(codec), Ok(norm)) => Ok(CodecInstance { codec: *codec, norm: *norm }),
            _ => unreachable!("a precision is its type"),
        }
    }
}

/// May something be lost with this codec?
pub(crate) fn is_lossy(name: &str) -> bool {
    let first = name.split_once(':').map_or(name, |(first, _)| first);
    CODECS.iter().any(|member| member.name == first && !member.lossless)
}

/// Checks a name; `raw` for whatever leaves numbers of this precision as they are.
fn checked(name: &str, precision: Precision) -> Result<String> {
    match precision {
        Precision::F32 => CodecInstance::<f32>::new(name).map(drop)?,
        Precision::F64 => CodecInstance::<f64>::new(name).map(drop)?,
    }
    Ok(if precision == Precision::F32 && name == "f32" { RAW } else { name }.into())
}

/// The codec of a recipe whose steps are known.
///
/// # Errors
/// [`Error::Choice`] for a codec that does not exist, [`Error::Problem`] for a
/// tolerance that no transform can keep.
pub(crate) fn decide(problem: &Problem, given: Option<&str>, recipe: &Recipe) -> Result<String> {
    let budget = problem.tolerance.map(|tolerance| budget(tolerance, recipe)).transpose()?;
    match (given, budget) {
        (Some(name), _) => checked(name, recipe.precision),
        (None, None) => Ok(RAW.into()),
        (None, Some(budget)) => Ok(cheapest(budget, recipe)),
    }
}

/// What the codecs of all reshapes together may lose.
fn budget(Tolerance(tolerance): Tolerance, recipe: &Recipe) -> Result<f64> {
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return Err(Error::Problem(format!("a tolerance lies between 0 and 1, got {tolerance:e}")));
    }
    let least = recipe.rounding_limit();
    if tolerance < least {
        return Err(Error::Problem(format!(
            "a tolerance of {tolerance:e} cannot be kept: rounding in {} alone may reach 10 epsilon log2 N = \
             {least:.1e}",
            recipe.precision.name()
        )));
    }
    Ok(tolerance - recipe.rounding_promised(tolerance))
}

/// The codec with the fewest bytes whose losses in all reshapes stay inside the budget.
fn cheapest(budget: f64, recipe: &Recipe) -> String {
    // Losses are relative to what is encoded, the certificate to the exact result: these norms differ by
    // what is lost in between. With a sum S of losses it says S / (1 - 2 S).
    let slack = 1.0 + 2.0 * budget + 4.0 * recipe.rounding_worst();
    let share = budget / slack * (1.0 - 1e-6) / weights(recipe);
    if !(share > 0.0 && share < 1.0) {
        return RAW.into();
    }
    // Rounded down to three digits behind the point.
    let exponent = share.log10().floor() as i32;
    let digits = (share / 10f64.powi(exponent) * 1e3).floor().max(1.0) as u32;
    let name = format!("within:{}.{:03}e{exponent}", digits / 1000, digits % 1000);
    let most = |bytes: Option<usize>| bytes.unwrap_or(usize::MAX);
    let bytes = match recipe.precision {
        Precision::F32 => most(CodecInstance::<f32>::new(&name).ok().map(|coat| coat.codec.max_bytes(CHUNK))),
        Precision::F64 => most(CodecInstance::<f64>::new(&name).ok().map(|coat| coat.codec.max_bytes(CHUNK))),
    };
    if bytes < CHUNK * recipe.precision.bytes() { name } else { RAW.into() }
}

/// By how much relative losses of all reshapes add up in the result, in the
/// worse of both directions. Where modes are dropped the result may be smaller
/// still; nobody knows by how much.
fn weights(recipe: &Recipe) -> f64 {
    let of = |backward: bool| {
        let mut steps: Vec<&Step> = recipe.steps.iter().collect();
        if !backward {
            steps.reverse();
        }
        // From the last step to the first.
        let (mut spread, mut sum) = (1.0, 0.0);
        for step in steps {
            match step {
                Step::Transform { kind, .. } => spread *= recipe.spread(*kind, backward),
                Step::Reshape { from, to } if from.boxes() == to.boxes() => {}
                Step::Reshape { .. } => sum += spread,
            }
        }
        sum
    };
    f64::max(of(false), of(true)).max(1.0)
}

impl Recipe {
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
    fn rounding_limit(&self) -> f64 {
        10.0 * self.precision.epsilon() * self.log2_points()
    }

    /// What of a tolerance is left to rounding: all that it may do, so that the certificate's bound stays
    /// within the tolerance, unless that would leave next to nothing to the codecs.
    pub(crate) fn rounding_promised(&self, tolerance: f64) -> f64 {
        let worst = self.rounding_worst();
        if worst <= 0.75 * tolerance { worst } else { worst.min(self.rounding_limit()) }
    }

    /// An upper bound of what rounding adds to the relative error of a
    /// transform, by the stages of its axes.
    pub(crate) fn rounding_worst(&self) -> f64 {
        let sum: f64 = self.sizes().flat_map(stages).map(|p| (2.0 * p as f64).powf(1.5)).sum();
        let spread = |backward: bool| self.kinds.iter().map(|kind| self.spread(*kind, backward)).product();
        // One more for the scale.
        (1.06 * sum + 1.0) * f64::max(spread(false), spread(true)) * self.precision.epsilon()
    }

    /// What rounding usually adds: errors of the stages are independent.
    pub(crate) fn rounding_typical(&self) -> f64 {
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
