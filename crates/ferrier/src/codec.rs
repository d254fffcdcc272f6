//! Codecs: values to fewer bytes and back, and the choice of one for a tolerance.
//!
//! Their crate, `ferrier-codec`, does not depend on ranks or plans.

use std::any::Any;
use std::sync::Arc;

pub use ferrier_codec::{CODECS, CodecEntry};
use ferrier_codec::{Codec, Norm, cheapest_fixed_rate, codec};

use crate::{Error, Precision, Problem, Real, Recipe, Result};
use ferrier_plan::Tolerance;

pub use ferrier_plan::RAW;

pub(crate) use ferrier_plan::messages::CHUNK_SCALARS;

/// A codec for scalars of type `T`, and the norm of such scalars.
pub(crate) struct CodecInstance<T> {
    pub codec: Arc<dyn Codec<T>>,
    pub norm: fn(&[T]) -> Norm,
}

impl<T: Real> CodecInstance<T> {
    /// # Errors
    /// [`Error::Choice`] where there is no such codec.
    pub fn new(name: &str) -> Result<CodecInstance<T>> {
        let wrong = |error: ferrier_codec::Error| Error::choice("codec", error.to_string());
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
            _ => unreachable!("`T::PRECISION` determines `T`"),
        }
    }
}

/// Whether the codec called `name` is lossy.
pub(crate) fn is_lossy(name: &str) -> bool {
    let first = name.split_once(':').map_or(name, |(first, _)| first);
    CODECS.iter().any(|entry| entry.name == first && !entry.lossless)
}

/// Checks a name; `raw` for a codec that copies scalars of this precision.
fn checked(name: &str, precision: Precision) -> Result<String> {
    match precision {
        Precision::F32 => CodecInstance::<f32>::new(name).map(drop)?,
        Precision::F64 => CodecInstance::<f64>::new(name).map(drop)?,
    }
    Ok(if precision == Precision::F32 && name == "f32" { RAW } else { name }.into())
}

/// The codec of a plan with this recipe: the given one, or the one with the fewest bytes that keeps the tolerance of the
/// problem.
///
/// # Errors
/// [`Error::Choice`] for a codec that does not exist, [`Error::Problem`] for a
/// tolerance below the rounding errors of the transform.
pub fn decide(problem: &Problem, given: Option<&str>, recipe: &Recipe) -> Result<String> {
    decide_among(problem, given, recipe, false)
}

/// As [`decide`]; `fixed`: among codecs whose messages have a fixed length.
pub(crate) fn decide_among(
    problem: &Problem,
    given: Option<&str>,
    recipe: &Recipe,
    fixed: bool,
) -> Result<String> {
    let budget = problem.tolerance.map(|tolerance| budget(tolerance, recipe)).transpose()?;
    match (given, budget) {
        (Some(name), _) => checked(name, recipe.precision),
        (None, None) => Ok(RAW.into()),
        (None, Some(budget)) => Ok(cheapest(budget, recipe, fixed)),
    }
}

/// The error budget of the codecs of all reshapes together.
fn budget(Tolerance(tolerance): Tolerance, recipe: &Recipe) -> Result<f64> {
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return Err(Error::problem(
            "tolerance",
            format!("a tolerance lies between 0 and 1, got {tolerance:e}"),
        ));
    }
    let least = recipe.rounding_limit();
    if tolerance < least {
        return Err(Error::problem(
            "tolerance",
            format!(
                "a tolerance of {tolerance:e} cannot be kept: rounding in {} alone may reach 10 epsilon log2 N = \
             {least:.1e}",
                recipe.precision.name()
            ),
        ));
    }
    Ok(tolerance - recipe.rounding_promised(tolerance))
}

/// The codec with the fewest bytes whose losses in all reshapes stay inside the budget.
fn cheapest(budget: f64, recipe: &Recipe, fixed: bool) -> String {
    // Losses are relative to the encoded values, the certificate to the exact result: these norms differ by
    // the losses in between. For a sum S of losses the certificate is S / (1 - 2 S).
    let slack = 1.0 + 2.0 * budget + 4.0 * recipe.rounding_worst();
    // There and back errors add up, and those of a halved spectrum count twice.
    let transforms = match (recipe.operators, recipe.is_real()) {
        (false, _) => 1.0,
        (true, false) => 2.0,
        (true, true) => 2.0 * std::f64::consts::SQRT_2,
    };
    let share = budget / slack * (1.0 - 1e-6) / recipe.loss_weight() / transforms;
    if !(share > 0.0 && share < 1.0) {
        return RAW.into();
    }
    if fixed {
        return match recipe.precision {
            Precision::F32 => cheapest_fixed_rate::<f32>(share, CHUNK_SCALARS).name,
            Precision::F64 => cheapest_fixed_rate::<f64>(share, CHUNK_SCALARS).name,
        };
    }
    // Rounded down to three decimals.
    let exponent = share.log10().floor() as i32;
    let digits = (share / 10f64.powi(exponent) * 1e3).floor().max(1.0) as u32;
    let name = format!("within:{}.{:03}e{exponent}", digits / 1000, digits % 1000);
    let bytes = match recipe.precision {
        Precision::F32 => most_bytes::<f32>(&name),
        Precision::F64 => most_bytes::<f64>(&name),
    };
    if bytes < CHUNK_SCALARS * recipe.precision.bytes() { name } else { RAW.into() }
}

/// The most bytes of a chunk encoded with the codec called `name`; `usize::MAX` if there is no such codec.
fn most_bytes<T: Real>(name: &str) -> usize {
    CodecInstance::<T>::new(name).map_or(usize::MAX, |instance| instance.codec.max_bytes(CHUNK_SCALARS))
}
