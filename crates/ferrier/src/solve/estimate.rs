//! Estimates of the discretisation error from solutions on two grids.

use num_complex::Complex;

use crate::{Array, Box3, Comm, Error, LayoutSpec, Planner, Problem, Real, Result};

/// The difference of two solutions of an equation on two grids, and the
/// estimated errors of each.
///
/// An estimate, not a bound: it assumes that the errors decrease with the grid
/// spacing at the asymptotic rate, which does not hold on grids that are too
/// coarse.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Discretisation {
    /// The L2 norm of the difference over that of the fine solution, on the
    /// points that common grids have.
    pub difference: f64,
    /// Spacing of the coarse grid over that of the fine one.
    pub ratio: f64,
}

impl Discretisation {
    /// The relative error on the coarse grid of a spectral method with a smooth
    /// solution: the errors decrease so fast that the fine solution can be
    /// taken as exact.
    pub fn coarse(&self) -> f64 {
        self.difference
    }

    /// The relative error on the coarse grid of a method of order `p`
    /// (Richardson extrapolation).
    pub fn coarse_of_order(&self, p: f64) -> f64 {
        self.difference / (1.0 - self.ratio.powf(-p))
    }

    /// The relative error on the fine grid of a method of order `p`.
    pub fn fine_of_order(&self, p: f64) -> f64 {
        self.difference / (self.ratio.powf(p) - 1.0)
    }
}

/// Estimates discretisation errors from the solutions on two grids over the
/// same box, one of which is finer in the same ratio along every axis (axes of
/// length 1 apart). They are compared on their common points: all points of the
/// coarse grid with 64 and 128 points along an axis, every fourth with 64 and
/// 80, which is cheaper. The layouts may differ; values are sent to the ranks
/// that need them. Only the first array of a batch is used. Collective; allocates.
///
/// The result is a good tolerance for a plan: a tolerance far below the
/// discretisation error costs bytes and gains no accuracy.
///
/// ```
/// use ferrier::solve::estimate_discretisation;
/// use ferrier::{Plan, Problem};
/// # use std::f64::consts::TAU;
///
/// ferrier::ranks(2).run(|comm| {
///     // The slope of sin x by central differences, a method of order 2.
///     let slope = |n: usize| {
///         let mut field = Plan::<f64>::new(&comm, &Problem::r2c([n, n, n]))?.make_input()?;
///         let h = TAU / n as f64;
///         field.fill_real(|_, [i, _, _]| ((h * (i as f64 + 1.0)).sin() - (h * (i as f64 - 1.0)).sin()) / (2.0 * h));
///         ferrier::Result::Ok(field)
///     };
///     let found = estimate_discretisation(&comm, &slope(16)?, &slope(32)?)?;
///     let truth = 1.0 - (TAU / 32.0).sin() / (TAU / 32.0);
///     assert!((found.fine_of_order(2.0) / truth - 1.0).abs() < 0.02);
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
///
/// # Errors
/// [`Error::Array`], the same on every rank, if the grids do not fit each other;
/// those of [`Planner::draft`].
pub fn estimate_discretisation<T: Real>(
    comm: &Comm,
    coarse: &Array<T>,
    fine: &Array<T>,
) -> Result<Discretisation> {
    let [shape, fine_shape] = [global_shape(comm, coarse)?, global_shape(comm, fine)?];
    let common = common_shape(shape, fine_shape)?;
    // The common points form a grid. The two fields are two layouts of it: a plan without transforms
    // moves the fine values to the ranks of the coarse ones.
    let mut plan = {
        let [input, output] =
            [(fine, fine_shape), (coarse, shape)].map(|(field, shape)| common_box(field, shape, common));
        let problem =
            Problem::c2c(common).axes(&[]).input(LayoutSpec::local(input)).output(LayoutSpec::local(output));
        Planner::new(&problem).without_wisdom().draft::<T>(comm)?.build()?
    };
    let at = |index: [usize; 3], shape: [usize; 3]| {
        std::array::from_fn(|axis| index[axis] * (shape[axis] / common[axis]))
    };
    let (mut here, mut there) = (plan.make_input()?, plan.make_output()?);
    here.fill_complex(|_, index| value(fine, at(index, fine_shape)));
    plan.forward(&here, &mut there)?;

    // Scaled, so that no square overflows or underflows.
    let largest = there.complex().iter().map(|x| size(x.re).max(size(x.im))).fold(0.0, f64::max);
    let largest = comm.max(&[largest])?[0];
    let unit = if largest > 0.0 && largest.is_finite() { 1.0 / largest } else { 1.0 };
    let (mut distance, mut norm) = (0.0, 0.0);
    each(&plan.output_box(), |index| {
        let (a, b) = (value(coarse, at(index, shape)), value(&there, index));
        for (a, b) in [(a.re, b.re), (a.im, b.im)] {
            let (a, b): (f64, f64) = (unit * a.widened(), unit * b.widened());
            distance += (a - b) * (a - b);
            norm += b * b;
        }
    });
    let sums = comm.sum(&[distance, norm])?;
    let difference = if sums[0] == 0.0 { 0.0 } else { (sums[0] / sums[1]).sqrt() };
    let ratio = (0..3).map(|axis| fine_shape[axis] as f64 / shape[axis] as f64).fold(1.0, f64::max);
    Ok(Discretisation { difference, ratio })
}

fn size<T: Real>(x: T) -> f64 {
    x.widened().abs()
}

/// This rank's box of a field.
fn local_box<T: Real>(field: &Array<T>) -> Box3 {
    let part = if field.is_real() { field.real_box() } else { field.local_box() };
    if part.is_empty() { Box3::EMPTY } else { part }
}

/// The value at a global index of this rank's box.
fn value<T: Real>(field: &Array<T>, index: [usize; 3]) -> Complex<T> {
    if field.is_real() {
        field
            .real_index(0, index)
            .map_or(Complex::default(), |at| Complex::new(field.real()[at], T::default()))
    } else {
        field.complex_index(0, index).map_or(Complex::default(), |at| field.complex()[at])
    }
}

fn each(part: &Box3, mut visit: impl FnMut([usize; 3])) {
    for i in part.lo[0]..part.hi[0] {
        for j in part.lo[1]..part.hi[1] {
            (part.lo[2]..part.hi[2]).for_each(|k| visit([i, j, k]));
        }
    }
}

/// The global shape of a field.
fn global_shape<T: Real>(comm: &Comm, field: &Array<T>) -> Result<[usize; 3]> {
    let ends = comm.max(&local_box(field).hi.map(|end| end as f64))?;
    Ok([ends[0] as usize, ends[1] as usize, ends[2] as usize])
}

/// This rank's box of the grid of common points.
fn common_box<T: Real>(field: &Array<T>, shape: [usize; 3], common: [usize; 3]) -> Box3 {
    let (own, step) = (local_box(field), |axis: usize| shape[axis] / common[axis]);
    let thin = Box3::new(
        std::array::from_fn(|axis| own.lo[axis].div_ceil(step(axis))),
        std::array::from_fn(|axis| own.hi[axis].div_ceil(step(axis))),
    );
    if thin.is_empty() { Box3::EMPTY } else { thin }
}

/// The shape of the grid of common points.
fn common_shape(coarse: [usize; 3], fine: [usize; 3]) -> Result<[usize; 3]> {
    let common: [usize; 3] = std::array::from_fn(|axis| common_divisor(coarse[axis], fine[axis]));
    let ratios = || {
        (0..3).filter(|&a| coarse[a] > 1 || fine[a] > 1).map(|a| (fine[a] / common[a], coarse[a] / common[a]))
    };
    let same = ratios().all(|ratio| Some(ratio) == ratios().next());
    if !same || ratios().next().is_none_or(|(fine, coarse)| fine <= coarse) {
        let text = |shape: [usize; 3]| shape.map(|n| n.to_string()).join("x");
        return Err(Error::array(
            "fine grid",
            None,
            format!("finer than the coarse grid {}, in the same ratio along every axis", text(coarse)),
            text(fine),
        ));
    }
    Ok(common)
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a.max(1) } else { common_divisor(b, a % b) }
}
