//! Operators that multiply each mode by a function of its wave numbers.

use num_complex::Complex;

use super::wave_numbers::WaveNumbers;
use crate::{Formula, ModeRun, Modes, Operator, Real, Result, Tables};

/// Multiplies each mode by a function of the sum of one table entry per axis,
/// such as the square of the wave vector.
struct SumFactor<T, F> {
    tables: [Vec<T>; 3],
    factor: F,
    /// The formula for a GPU.
    code: &'static str,
    constant: T,
    /// Which sum of entries has the largest factor.
    largest: Largest,
}

/// The sum of entries whose factor is the largest.
enum Largest {
    /// The smallest one.
    Least,
    /// The smallest one that is not 0.
    LeastPositive,
    /// The largest one.
    Most,
}

impl<T: Real, F: Fn(T) -> T + Sync> SumFactor<T, F> {
    /// That sum; a smaller one where it would take long to find.
    fn largest(&self) -> T {
        let ends = self.tables.each_ref().map(|table| {
            let values = table.iter().map(|x| x.widened());
            let positive = values.clone().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
            [values.clone().fold(f64::INFINITY, f64::min), positive, values.fold(0.0, f64::max)]
        });
        let least: f64 = ends.iter().map(|[least, ..]| least).sum();
        let sum = match self.largest {
            Largest::Most => ends.iter().map(|[.., most]| most).sum(),
            // All axes but one at 0.
            Largest::LeastPositive if least == 0.0 => {
                ends.iter().map(|[_, positive, _]| *positive).fold(f64::INFINITY, f64::min)
            }
            _ => least,
        };
        T::rounded(sum)
    }
}

/// A norm of factors in `T`, which are rounded.
fn rounded_up<T: Real>(norm: f64) -> Option<f64> {
    Some(norm * (1.0 + 16.0 * T::PRECISION.epsilon())).filter(|norm| norm.is_finite())
}

impl<T: Real, F: Fn(T) -> T + Sync> Operator<T> for SumFactor<T, F> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let ([a, b, c], along) = at(&self.tables, &run);
            // Summed in the same order for every axis of the run, so that bits do not depend on it.
            match run.axis() {
                0 => run.scale_by(along, |k| (self.factor)(k + b + c)),
                1 => run.scale_by(along, |k| (self.factor)(a + k + c)),
                _ => run.scale_by(along, |k| (self.factor)(a + b + k)),
            }
        }
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        Some(formula(self.code, Tables::Real(slices(&self.tables)), self.constant))
    }

    fn norm(&self) -> Option<f64> {
        rounded_up::<T>((self.factor)(self.largest()).widened().abs())
    }
}

fn formula<'a, T: Real>(code: &'a str, tables: Tables<'a, T>, constant: T) -> Formula<'a, T> {
    let zero = T::zero();
    Formula { code, tables, constants: [constant, zero, zero, zero] }
}

fn slices<R>(tables: &[Vec<R>; 3]) -> [&[R]; 3] {
    std::array::from_fn(|axis| &tables[axis][..])
}

/// The GPU formula of products of one table entry per axis.
const PRODUCT_FORMULA: &str = "return z * (a * b * c);";

/// Multiplies each mode by the product of one real table entry per axis.
struct RealProduct<T> {
    tables: [Vec<T>; 3],
}

impl<T: Real> Operator<T> for RealProduct<T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let ([a, b, c], along) = at(&self.tables, &run);
            match run.axis() {
                0 => run.scale_by(along, |k| k * b * c),
                1 => run.scale_by(along, |k| a * k * c),
                _ => run.scale_by(along, |k| a * b * k),
            }
        }
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        Some(formula(PRODUCT_FORMULA, Tables::Real(slices(&self.tables)), T::zero()))
    }

    fn norm(&self) -> Option<f64> {
        let most = |table: &Vec<T>| table.iter().map(|x| x.widened().abs()).fold(0.0, f64::max);
        rounded_up::<T>(self.tables.iter().map(most).product())
    }
}

/// Multiplies each mode by the product of one complex table entry per axis.
struct ComplexProduct<T> {
    tables: [Vec<Complex<T>>; 3],
}

impl<T: Real> Operator<T> for ComplexProduct<T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let ([a, b, c], along) = at(&self.tables, &run);
            let axis = run.axis();
            let modes = run.complex().iter_mut().zip(along);
            match axis {
                0 => modes.for_each(|(mode, &here)| *mode = *mode * (here * b * c)),
                1 => modes.for_each(|(mode, &here)| *mode = *mode * (a * here * c)),
                _ => modes.for_each(|(mode, &here)| *mode = *mode * (a * b * here)),
            }
        }
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        Some(formula(PRODUCT_FORMULA, Tables::Complex(slices(&self.tables)), T::zero()))
    }

    fn norm(&self) -> Option<f64> {
        let size = |x: &Complex<T>| x.re.widened().hypot(x.im.widened());
        let most = |table: &Vec<Complex<T>>| table.iter().map(size).fold(0.0, f64::max);
        rounded_up::<T>(self.tables.iter().map(most).product())
    }
}

/// Multiplies each mode by i times its wave number along one axis.
struct Derivative<T> {
    axis: usize,
    waves: Vec<T>,
}

impl<T: Real> Operator<T> for Derivative<T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let (first, along) = (run.first()[self.axis], run.axis() == self.axis);
            let turn = |z: Complex<T>, k: T| Complex::new(-(z.im * k), z.re * k);
            let modes = run.complex();
            match along {
                true => modes.iter_mut().zip(&self.waves[first..]).for_each(|(z, &k)| *z = turn(*z, k)),
                false => modes.iter_mut().for_each(|z| *z = turn(*z, self.waves[first])),
            }
        }
    }

    fn formula(&self) -> Option<Formula<'_, T>> {
        // Empty tables read as zeros.
        let mut tables: [&[T]; 3] = [&[]; 3];
        tables[self.axis] = &self.waves;
        let code = "REAL k = a + b + c; return {-(z.y * k), z.x * k};";
        Some(formula(code, Tables::Real(tables), T::zero()))
    }

    fn norm(&self) -> Option<f64> {
        rounded_up::<T>(self.waves.iter().map(|k| k.widened().abs()).fold(0.0, f64::max))
    }
}

/// The table entries of the first mode of a run, and the entries along the axis of the run for all its modes.
#[inline]
pub(super) fn at<'t, R: Copy, T: Real>(tables: &'t [Vec<R>; 3], run: &ModeRun<'_, T>) -> ([R; 3], &'t [R]) {
    let (first, axis) = (run.first(), run.axis());
    (std::array::from_fn(|a| tables[a][first[a]]), &tables[axis][first[axis]..][..run.len()])
}

fn squares<T: Real>(waves: &WaveNumbers) -> [Vec<T>; 3] {
    waves.tables(|axis| waves.table(axis, |k| T::rounded(k * k)), T::zero(), |one, other| one + other)
}

/// The Laplacian: multiplies each mode by -k^2. For axes of every kind.
pub fn laplacian<T: Real>(waves: &WaveNumbers) -> impl Operator<T> + use<T> {
    let code = "return z * -(a + b + c);";
    let (factor, largest) = (|square: T| -square, Largest::Most);
    SumFactor { tables: squares(waves), factor, code, constant: T::zero(), largest }
}

/// The inverse of the Laplacian: solves laplace(u) = f. The mode with k = 0
/// becomes zero, which gives the solution with mean zero (for periodic and
/// Neumann boundaries, where a solution exists only if f has mean zero).
pub fn inverse_laplacian<T: Real>(waves: &WaveNumbers) -> impl Operator<T> + use<T> {
    let factor = |square: T| if square == T::zero() { T::zero() } else { -(T::one() / square) };
    let code = "REAL square = a + b + c; return z * (square == 0 ? REAL(0) : -(1 / square));";
    SumFactor { tables: squares(waves), factor, code, constant: T::zero(), largest: Largest::LeastPositive }
}

/// Solves -laplace(u) + shift u = f, for a positive shift: divides each mode by k^2 + shift.
pub fn helmholtz<T: Real>(waves: &WaveNumbers, shift: f64) -> impl Operator<T> + use<T> {
    let shift = T::rounded(shift);
    let code = "return z * (1 / (a + b + c + p[0]));";
    let factor = move |square: T| T::one() / (square + shift);
    SumFactor { tables: squares(waves), factor, code, constant: shift, largest: Largest::Least }
}

/// A sharp filter: modes with |k| above `largest` become zero.
pub fn low_pass<T: Real>(waves: &WaveNumbers, largest: f64) -> impl Operator<T> + use<T> {
    // Enlarged by a few ulps, so that modes on the sphere are kept whatever the rounding.
    let square = T::rounded(largest * largest) * (T::one() + T::rounded(8.0 * T::PRECISION.epsilon()));
    let code = "return z * (a + b + c <= p[0] ? REAL(1) : REAL(0));";
    let factor = move |k: T| if k <= square { T::one() } else { T::zero() };
    SumFactor { tables: squares(waves), factor, code, constant: square, largest: Largest::Least }
}

/// A smooth filter: convolution with a Gaussian of standard deviation `sigma`.
pub fn gaussian<T: Real>(waves: &WaveNumbers, sigma: f64) -> impl Operator<T> + use<T> {
    let bell = |k: f64| T::rounded((-0.5 * (k * sigma).powi(2)).exp());
    RealProduct { tables: waves.tables(|axis| waves.table(axis, bell), T::one(), |one, other| one * other) }
}

/// The 2/3 rule: along each axis, modes above a third of its points become zero,
/// so that the product of two filtered fields has no aliases among the modes that are kept.
pub fn two_thirds<T: Real>(waves: &WaveNumbers) -> impl Operator<T> + use<T> {
    let table = |axis: usize| {
        let most = waves.points(axis) as f64 / 3.0;
        let keep = |k: f64| waves.unit(axis) == 0.0 || (k / waves.unit(axis)).abs().round() < most;
        waves.table(axis, |k| if keep(k) { T::one() } else { T::zero() })
    };
    RealProduct { tables: waves.tables(table, T::one(), |one, other| one * other) }
}

/// A shift: u(x) becomes u(x - by), for any distance, not only multiples of the
/// grid spacing. For complex and real axes.
///
/// # Errors
/// [`Error::Problem`](crate::Error::Problem) for other kinds of axes.
pub fn shift<T: Real>(waves: &WaveNumbers, by: [f64; 3]) -> Result<impl Operator<T> + use<T>> {
    let table = |axis: usize| -> Result<Vec<Complex<T>>> {
        waves.periodic(axis, "a shift")?;
        let phase = |(i, k): (usize, f64)| {
            let (sin, cos) = (k * by[axis]).sin_cos();
            let sin = if waves.is_nyquist(axis, i) { 0.0 } else { sin };
            Complex::new(T::rounded(cos), T::rounded(-sin))
        };
        Ok(waves.table(axis, |k| k).into_iter().enumerate().map(phase).collect())
    };
    let phases = [table(0)?, table(1)?, table(2)?];
    let tables = waves.tables(
        |axis| phases[axis].clone(),
        Complex::new(T::one(), T::zero()),
        |one, other| one * other,
    );
    Ok(ComplexProduct { tables })
}

/// The first derivative along an axis; see [`WaveNumbers`] for the Nyquist mode.
///
/// # Errors
/// [`Error::Problem`](crate::Error::Problem) for an axis that is neither complex nor real.
pub fn derivative<T: Real>(waves: &WaveNumbers, axis: usize) -> Result<impl Operator<T> + use<T>> {
    Ok(Derivative { axis: waves.place(axis), waves: waves.odd(axis)? })
}
