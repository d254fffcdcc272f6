//! Wave numbers: what the indices of a spectrum stand for.

use std::f64::consts::{PI, TAU};

use crate::{Error, Keep, Kind, Real, Recipe, Result};

/// The wave numbers of a spectrum, axis by axis.
///
/// On an axis of length L with n points, index i of a complex spectrum has
/// the wave number 2 pi m / L, where m is `n * numpy.fft.fftfreq(n)[i]`; of a
/// real one 2 pi i / L. Cosines of types 1 and 2 have pi i / L, sines of
/// these types pi (i + 1) / L, both of types 3 and 4 pi (i + 1/2) / L. An axis
/// that is not transformed has wave number 0. Of kept modes
/// ([`Problem::keep`](crate::Problem::keep)) each has its own.
///
/// For cosines and sines L is the distance between the walls: n times that of
/// two points, but (n - 1) times for cosines of type 1, whose outer points
/// are on the walls, and (n + 1) times for sines of type 1, whose outer points
/// are next to them.
///
/// **Nyquist.** For even n the mode n/2 stands for both signs (and so does the
/// lone mode -m/2 where an even number m of the lowest is kept). Even functions
/// of the wave number (Laplacian, filters) use it; odd ones (first
/// derivatives) take it as zero, because a real field must have a real
/// derivative, and a shift takes the real part of its factor there.
#[derive(Clone, Debug, PartialEq)]
pub struct Waves {
    /// Wave number of each index.
    numbers: [Vec<f64>; 3],
    /// Does an index stand for both signs?
    nyquist: [Option<usize>; 3],
    /// The smallest wave number of each axis that is not zero.
    unit: [f64; 3],
    /// Points of each axis before the transform.
    shape: [usize; 3],
    kinds: [Kind; 3],
}

impl Waves {
    /// The wave numbers of what a plan of this recipe makes of a box with
    /// sides of these lengths.
    ///
    /// # Errors
    /// [`Error::Problem`] for a length that is not positive, and for a long
    /// 1-D transform, whose two axes have no wave numbers of their own.
    pub fn new(recipe: &Recipe, lengths: [f64; 3]) -> Result<Waves> {
        if let Some(length) = lengths.iter().find(|&&length| !(length > 0.0 && length.is_finite())) {
            return Err(Error::Problem(format!("the sides of the box must be positive, got {length}")));
        }
        if recipe.long.is_some() {
            let text =
                "the two axes of a long transform have no wave numbers of their own: see Problem::mode";
            return Err(Error::Problem(text.into()));
        }
        let axis = |axis: usize| Axis::new(recipe, axis, lengths[axis]);
        let [a, b, c] = [axis(0), axis(1), axis(2)];
        Ok(Waves {
            nyquist: [a.nyquist, b.nyquist, c.nyquist],
            unit: [a.unit, b.unit, c.unit],
            numbers: [a.numbers, b.numbers, c.numbers],
            shape: recipe.shape,
            kinds: recipe.kinds,
        })
    }

    /// The wave number of an index.
    pub fn at(&self, axis: usize, index: usize) -> f64 {
        self.numbers[axis][index]
    }

    /// The wave vector of an index.
    pub fn vector(&self, index: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.at(axis, index[axis]))
    }

    /// Does an index stand for both signs of its wave number?
    pub fn is_nyquist(&self, axis: usize, index: usize) -> bool {
        self.nyquist[axis] == Some(index)
    }

    /// The smallest wave number of an axis that is not zero; zero for an axis without any.
    pub fn unit(&self, axis: usize) -> f64 {
        self.unit[axis]
    }

    /// Points of an axis before the transform.
    pub(super) fn points(&self, axis: usize) -> usize {
        self.shape[axis]
    }

    /// Is only half of the spectrum along an axis there?
    pub(super) fn is_halved(&self, axis: usize) -> bool {
        self.kinds[axis] == Kind::Real
    }

    /// `what` needs axes with both signs of wave numbers.
    pub(super) fn periodic(&self, axis: usize, what: &str) -> Result<()> {
        let kind = self.kinds[axis];
        if matches!(kind, Kind::None | Kind::Complex | Kind::Real) {
            return Ok(());
        }
        Err(Error::Problem(format!(
            "{what} needs periodic axes: axis {axis} must be complex or real, it is {kind:?}"
        )))
    }

    /// A function of the wave numbers of an axis, as a table.
    pub(super) fn table<R>(&self, axis: usize, value: impl Fn(f64) -> R) -> Vec<R> {
        self.numbers[axis].iter().map(|&k| value(k)).collect()
    }

    /// The wave numbers of an axis for a first derivative.
    pub(super) fn odd<T: Real>(&self, axis: usize) -> Result<Vec<T>> {
        self.periodic(axis, "a derivative")?;
        let number = |(i, &k): (usize, &f64)| T::rounded(if self.is_nyquist(axis, i) { 0.0 } else { k });
        Ok(self.numbers[axis].iter().enumerate().map(number).collect())
    }
}

struct Axis {
    numbers: Vec<f64>,
    nyquist: Option<usize>,
    unit: f64,
}

impl Axis {
    fn new(recipe: &Recipe, axis: usize, length: f64) -> Axis {
        let (kind, n) = (recipe.kinds[axis], recipe.shape[axis]);
        let modes: Vec<usize> =
            recipe.modes(axis).iter().flat_map(|run| run.line..run.line + run.len).collect();
        let (unit, first) = match kind {
            Kind::None => (0.0, 0.0),
            Kind::Complex | Kind::Real => (TAU / length, 0.0),
            Kind::Dct1 | Kind::Dct2 => (PI / length, 0.0),
            Kind::Dst1 | Kind::Dst2 => (PI / length, 1.0),
            Kind::Dct3 | Kind::Dct4 | Kind::Dst3 | Kind::Dst4 => (PI / length, 0.5),
        };
        let wave = |&m: &usize| match kind {
            Kind::Complex if 2 * m >= n => unit * (m as f64 - n as f64),
            _ => unit * (m as f64 + first),
        };
        let both_signs = |&m: &usize| match (kind, recipe.keep[axis]) {
            (Kind::Complex, Keep::Lowest(kept)) if kept.is_multiple_of(2) => m == n - kept / 2,
            (Kind::Complex | Kind::Real, _) => 2 * m == n,
            _ => false,
        };
        Axis { numbers: modes.iter().map(wave).collect(), nyquist: modes.iter().position(both_signs), unit }
    }
}
