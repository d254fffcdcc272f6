//! Wave numbers: the frequencies of the indices of a spectrum.

use std::f64::consts::{PI, TAU};

use crate::{Error, Keep, Kind, Real, Recipe, Result};
use ferrier_plan::modes::Columns;

/// The wave numbers of a spectrum, axis by axis.
///
/// On an axis of length L with n points, index i of a complex spectrum has
/// the wave number 2 pi m / L, where m is `n * numpy.fft.fftfreq(n)[i]`; of a
/// real one 2 pi i / L. Cosines of types 1 and 2 have pi i / L, sines of
/// these types pi (i + 1) / L, both of types 3 and 4 pi (i + 1/2) / L. An axis
/// that is not transformed has wave number 0. Truncated spectra
/// ([`Problem::keep`](crate::Problem::keep)) have the wave numbers of the kept
/// modes. The columns of a sphere
/// ([`Problem::keep_sphere`](crate::Problem::keep_sphere)) are indexed along axis
/// 1 of the spectrum; each has a wave number of axis 1 and one of axis 2.
///
/// For cosines and sines L is the distance between the boundaries: n grid
/// spacings, but n - 1 for cosines of type 1, whose outer points are on the
/// boundaries, and n + 1 for sines of type 1, whose outer points are one spacing
/// inside.
///
/// **Nyquist.** For even n the mode n/2 represents both signs (and so does the
/// mode -m/2 if an even number m of the lowest modes is kept). Even functions of
/// the wave number (Laplacian, filters) use its wave number; odd ones (first
/// derivatives) use zero, because the derivative of a real field is real; a
/// shift uses the real part of its factor.
#[derive(Clone, Debug, PartialEq)]
pub struct WaveNumbers {
    /// Wave number of each index; of each column of a sphere.
    numbers: [Vec<f64>; 3],
    /// Does an index represent both signs?
    nyquist: [Vec<bool>; 3],
    /// The smallest nonzero wave number of each axis.
    unit: [f64; 3],
    /// Points of each axis before the transform.
    shape: [usize; 3],
    kinds: [Kind; 3],
    /// The columns of a sphere.
    columns: Option<Columns>,
}

impl WaveNumbers {
    /// The wave numbers of the spectra of a plan with this recipe, for a box with
    /// sides of these lengths.
    ///
    /// # Errors
    /// [`Error::Problem`] if a length is not positive or the recipe is that of a
    /// long 1-D transform, whose two axes have no separate wave numbers.
    pub fn new(recipe: &Recipe, lengths: [f64; 3]) -> Result<WaveNumbers> {
        if let Some(length) = lengths.iter().find(|&&length| !(length > 0.0 && length.is_finite())) {
            return Err(Error::problem(
                "lengths",
                format!("the sides of the box must be positive, got {length}"),
            ));
        }
        if recipe.long.is_some() {
            let text = "the two axes of a long transform have no separate wave numbers: see Problem::mode";
            return Err(Error::problem("plan", text));
        }
        let columns = recipe.columns();
        let places = columns.as_ref().map(|columns| columns.mode_indices(&recipe.modes(1)));
        let axis = |axis: usize| {
            let all = Axis::new(recipe, axis, lengths[axis]);
            match &places {
                Some(places) if axis > 0 => all.picked(places.iter().map(|place| place[axis - 1])),
                _ => all,
            }
        };
        let [a, b, c] = [axis(0), axis(1), axis(2)];
        Ok(WaveNumbers {
            nyquist: [a.nyquist, b.nyquist, c.nyquist],
            unit: [a.unit, b.unit, c.unit],
            numbers: [a.numbers, b.numbers, c.numbers],
            shape: recipe.shape,
            kinds: recipe.kinds,
            columns,
        })
    }

    /// The axis of the spectrum along which the wave numbers of an axis vary: the
    /// axis itself, but axis 1 for axes 1 and 2 of a sphere.
    pub fn place(&self, axis: usize) -> usize {
        if self.columns.is_some() { axis.min(1) } else { axis }
    }

    /// The wave number of an axis at an index along its [`place`](Self::place).
    pub fn at(&self, axis: usize, index: usize) -> f64 {
        self.numbers[axis][index]
    }

    /// The wave vector of an index.
    pub fn vector(&self, index: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.at(axis, index[self.place(axis)]))
    }

    /// Does an index along the [`place`](Self::place) of an axis represent both signs of its wave number?
    pub fn is_nyquist(&self, axis: usize, index: usize) -> bool {
        self.nyquist[axis].get(index) == Some(&true)
    }

    /// Is there a mode at this index? (All columns of a sphere are stored with the length of the longest.)
    pub fn is_held(&self, index: [usize; 3]) -> bool {
        let Some(columns) = &self.columns else { return true };
        columns.along.runs[index[1]].iter().any(|run| (run.at..run.at + run.len).contains(&index[0]))
    }

    /// The smallest nonzero wave number of an axis; zero if there is none.
    pub fn unit(&self, axis: usize) -> f64 {
        self.unit[axis]
    }

    /// Points of an axis before the transform.
    pub(super) fn points(&self, axis: usize) -> usize {
        self.shape[axis]
    }

    /// Does the spectrum have only half of the modes along an axis?
    pub(super) fn is_halved(&self, axis: usize) -> bool {
        self.kinds[axis] == Kind::Real
    }

    /// Fails if `what` needs a periodic axis and this one is not.
    pub(super) fn periodic(&self, axis: usize, what: &str) -> Result<()> {
        let kind = self.kinds[axis];
        if matches!(kind, Kind::Identity | Kind::Complex | Kind::Real) {
            return Ok(());
        }
        Err(Error::problem(
            "kinds",
            format!("{what} needs periodic axes: axis {axis} must be complex or real, it is {kind:?}"),
        ))
    }

    /// A function of the wave numbers of an axis, as a table.
    pub(super) fn table<R>(&self, axis: usize, value: impl Fn(f64) -> R) -> Vec<R> {
        self.numbers[axis].iter().map(|&k| value(k)).collect()
    }

    /// A table for each axis of the spectrum, from one for each axis of the wave
    /// vector. Those of columns are joined.
    pub(super) fn tables<R: Copy>(
        &self,
        table: impl Fn(usize) -> Vec<R>,
        neutral: R,
        join: impl Fn(R, R) -> R,
    ) -> [Vec<R>; 3] {
        let [a, b, c] = [table(0), table(1), table(2)];
        match self.columns {
            None => [a, b, c],
            Some(_) => {
                [a, b.into_iter().zip(c).map(|(one, other)| join(one, other)).collect(), vec![neutral]]
            }
        }
    }

    /// The wave numbers of an axis in first derivatives: zero at Nyquist modes.
    pub(super) fn odd<T: Real>(&self, axis: usize) -> Result<Vec<T>> {
        self.periodic(axis, "a derivative")?;
        let number = |(i, &k): (usize, &f64)| T::rounded(if self.is_nyquist(axis, i) { 0.0 } else { k });
        Ok(self.numbers[axis].iter().enumerate().map(number).collect())
    }
}

struct Axis {
    numbers: Vec<f64>,
    nyquist: Vec<bool>,
    unit: f64,
}

impl Axis {
    /// Those of some modes.
    fn picked(self, modes: impl Iterator<Item = usize>) -> Axis {
        let (numbers, nyquist) = modes.map(|mode| (self.numbers[mode], self.nyquist[mode])).unzip();
        Axis { numbers, nyquist, ..self }
    }

    fn new(recipe: &Recipe, axis: usize, length: f64) -> Axis {
        let (kind, n) = (recipe.kinds[axis], recipe.shape[axis]);
        let modes: Vec<usize> =
            recipe.modes(axis).iter().flat_map(|run| run.line..run.line + run.len).collect();
        let (unit, first) = match kind {
            Kind::Complex | Kind::Real => (TAU / length, 0.0),
            Kind::Dct1 | Kind::Dct2 => (PI / length, 0.0),
            Kind::Dst1 | Kind::Dst2 => (PI / length, 1.0),
            Kind::Dct3 | Kind::Dct4 | Kind::Dst3 | Kind::Dst4 => (PI / length, 0.5),
            _ => (0.0, 0.0),
        };
        let wave = |&m: &usize| match kind {
            Kind::Complex if 2 * m >= n => unit * (m as f64 - n as f64),
            _ => unit * (m as f64 + first),
        };
        let is_nyquist = |&m: &usize| match (kind, recipe.keep[axis]) {
            (Kind::Complex, Keep::Lowest(kept)) if kept.is_multiple_of(2) => m == n - kept / 2,
            (Kind::Complex | Kind::Real, _) => 2 * m == n,
            _ => false,
        };
        let nyquist = modes.iter().map(is_nyquist).collect();
        Axis { numbers: modes.iter().map(wave).collect(), nyquist, unit }
    }
}
