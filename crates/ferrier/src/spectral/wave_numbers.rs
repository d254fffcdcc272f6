//! Wave numbers: what the indices of a spectrum stand for.

use std::f64::consts::{PI, TAU};

use crate::{Error, Keep, Kind, Real, Recipe, Result};
use ferrier_plan::modes::Columns;

/// The wave numbers of a spectrum, axis by axis.
///
/// On an axis of length L with n points, index i of a complex spectrum has
/// the wave number 2 pi m / L, where m is `n * numpy.fft.fftfreq(n)[i]`; of a
/// real one 2 pi i / L. Cosines of types 1 and 2 have pi i / L, sines of
/// these types pi (i + 1) / L, both of types 3 and 4 pi (i + 1/2) / L. An axis
/// that is not transformed has wave number 0. Of kept modes
/// ([`Problem::keep`](crate::Problem::keep)) each has its own. The columns of a
/// sphere ([`Problem::keep_sphere`](crate::Problem::keep_sphere)) lie along axis 1
/// of the spectrum; each has a wave number of axis 1 and one of axis 2.
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
pub struct WaveNumbers {
    /// Wave number of each index; by columns, where there are some.
    numbers: [Vec<f64>; 3],
    /// Does an index stand for both signs?
    nyquist: [Vec<bool>; 3],
    /// The smallest wave number of each axis that is not zero.
    unit: [f64; 3],
    /// Points of each axis before the transform.
    shape: [usize; 3],
    kinds: [Kind; 3],
    /// Of a sphere.
    columns: Option<Columns>,
}

impl WaveNumbers {
    /// The wave numbers of what a plan of this recipe makes of a box with
    /// sides of these lengths.
    ///
    /// # Errors
    /// [`Error::Problem`] for a length that is not positive, and for a long
    /// 1-D transform, whose two axes have no wave numbers of their own.
    pub fn new(recipe: &Recipe, lengths: [f64; 3]) -> Result<WaveNumbers> {
        if let Some(length) = lengths.iter().find(|&&length| !(length > 0.0 && length.is_finite())) {
            return Err(Error::problem(
                "lengths",
                format!("the sides of the box must be positive, got {length}"),
            ));
        }
        if recipe.long.is_some() {
            let text =
                "the two axes of a long transform have no wave numbers of their own: see Problem::mode";
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

    /// The axis of the spectrum along which the wave numbers of an axis lie:
    /// itself, but columns of a sphere lie along axis 1 for axes 1 and 2.
    pub fn place(&self, axis: usize) -> usize {
        if self.columns.is_some() { axis.min(1) } else { axis }
    }

    /// The wave number of an axis that belongs to an index along its [`place`](Self::place).
    pub fn at(&self, axis: usize, index: usize) -> f64 {
        self.numbers[axis][index]
    }

    /// The wave vector of an index.
    pub fn vector(&self, index: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|axis| self.at(axis, index[self.place(axis)]))
    }

    /// Does an index along an axis's [`place`](Self::place) stand for both signs of its wave number?
    pub fn is_nyquist(&self, axis: usize, index: usize) -> bool {
        self.nyquist[axis].get(index) == Some(&true)
    }

    /// Is there a mode at this index? (Columns of a sphere are as long as the longest.)
    pub fn is_held(&self, index: [usize; 3]) -> bool {
        let Some(columns) = &self.columns else { return true };
        columns.along.runs[index[1]].iter().any(|run| (run.at..run.at + run.len).contains(&index[0]))
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
    /// vector: those of columns are put together.
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

    /// The wave numbers of an axis for a first derivative.
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
        let both_signs = |&m: &usize| match (kind, recipe.keep[axis]) {
            (Kind::Complex, Keep::Lowest(kept)) if kept.is_multiple_of(2) => m == n - kept / 2,
            (Kind::Complex | Kind::Real, _) => 2 * m == n,
            _ => false,
        };
        let nyquist = modes.iter().map(both_signs).collect();
        Axis { numbers: modes.iter().map(wave).collect(), nyquist, unit }
    }
}
