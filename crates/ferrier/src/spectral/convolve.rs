//! Convolution and correlation: products of spectra.

use num_complex::Complex;

use crate::exec::Rows;
use crate::{
    Array, Comm, Data, DataMut, Draft, Error, Kind, LayoutSpec, Modes, Operator, Plan, Planner, Problem,
    Real, Result, Step,
};

/// Convolution of fields with a fixed kernel: the sum over y of
/// kernel(x - y) field(y), periodic on the shape of the problem.
///
/// For a *linear* convolution of arrays with a and b points along an axis, give
/// the problem at least a + b - 1 points there ([`linear_shape`]) and pad both
/// arrays with zeros.
///
/// ```
/// use ferrier::{Problem, spectral::Convolution};
/// ferrier::ranks(2).run(|comm| {
///     let mut smooth = Convolution::<f64>::new(&comm, &Problem::r2c([1, 1, 8]))?;
///     let mut kernel = smooth.plan().make_input()?;
///     // The mean of a point and its left neighbour.
///     kernel.fill_real(|_, [_, _, i]| if i < 2 { 0.5 } else { 0.0 });
///     smooth.kernel(&kernel)?;
///     let mut field = smooth.plan().make_input()?;
///     field.fill_real(|_, [_, _, i]| i as f64);
///     let mut out = smooth.plan().make_input()?;
///     smooth.convolve(&field, &mut out)?;
///     if let Some(at) = out.index(0, [0, 0, 3]) {
///         assert!((out.real()[at] - 2.5).abs() < 1e-14);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Debug)]
pub struct Convolution<T: Real> {
    plan: Plan<T>,
    kernel: Array<T>,
}

impl<T: Real> Convolution<T> {
    /// A convolution of fields of this problem; the output layout of the problem
    /// is ignored. The kernel is zero at first. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`Planner::draft`].
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        let problem = problem.clone().output(LayoutSpec::unconstrained()).operators(true);
        Self::with(Planner::new(&problem).draft(comm)?)
    }

    /// A convolution from a draft whose problem has operators and the output
    /// [`LayoutSpec::unconstrained`]. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`Draft::build`]; [`Error::Choice`] for another output.
    pub fn with(draft: Draft<T>) -> Result<Self> {
        let plan = draft.build()?;
        check(&plan)?;
        let kernel = plan.make_output()?;
        Ok(Convolution { plan, kernel })
    }

    /// The plan; it makes arrays for fields and kernels.
    pub fn plan(&mut self) -> &mut Plan<T> {
        &mut self.plan
    }

    /// Sets the kernel. It has the layout of a field; its origin is index 0
    /// along each axis. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Plan::forward`].
    pub fn kernel<I: Data<T> + ?Sized>(&mut self, kernel: &I) -> Result<()> {
        self.plan.forward(kernel, &mut self.kernel)
    }

    /// The convolution of a field with the kernel. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Call::apply`](crate::Call::apply).
    pub fn convolve<I, O>(&mut self, field: &I, out: &mut O) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        let times = SpectrumProduct { spectrum: &self.kernel, conjugate: false, scale: unscaled(&self.plan) };
        self.plan.call().operator(&times).apply(field, out)
    }

    /// The correlation of a field with the kernel: the sum over y of
    /// conj(kernel(y)) field(x + y). Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Call::apply`](crate::Call::apply).
    pub fn correlate<I, O>(&mut self, field: &I, out: &mut O) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        let times = SpectrumProduct { spectrum: &self.kernel, conjugate: true, scale: unscaled(&self.plan) };
        self.plan.call().operator(&times).apply(field, out)
    }
}

/// Checks that all axes are periodic and that no reshape follows the last transform.
fn check<T: Real>(plan: &Plan<T>) -> Result<()> {
    let periodic = |kind: &Kind| matches!(kind, Kind::Identity | Kind::Complex | Kind::Real);
    if let Some(kind) = plan.recipe().kinds.iter().find(|kind| !periodic(kind)) {
        return Err(Error::problem(
            "kinds",
            format!("a convolution needs complex or real axes, got {}", kind.name()),
        ));
    }
    let steps = &plan.recipe().steps;
    let last =
        steps.iter().rposition(|step| matches!(step, Step::Transform { .. })).map_or(0, |last| last + 1);
    let moves = |step: &Step| matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes());
    match steps[last..].iter().any(moves) {
        false => Ok(()),
        true => Err(Error::choice("output", "a product of spectra needs a problem with the output `best`")),
    }
}

/// The factor that cancels the scales of two forward transforms and one backward.
fn unscaled<T: Real>(plan: &Plan<T>) -> T {
    let recipe = plan.recipe();
    let points: f64 = (0..3).map(|axis| recipe.kinds[axis].size(recipe.shape[axis]) as f64).product();
    T::rounded(1.0 / (recipe.scale_forward * recipe.scale_forward * recipe.scale_backward * points))
}

/// Multiplies each mode by the mode of another spectrum, or by its conjugate.
struct SpectrumProduct<'a, T: Real> {
    spectrum: &'a Array<T>,
    conjugate: bool,
    scale: T,
}

impl<T: Real> Operator<T> for SpectrumProduct<'_, T> {
    fn apply(&self, modes: &mut Modes<'_, T>) {
        for mut run in modes.runs() {
            let rows = Rows::new(self.spectrum, run.batch(), run.first(), run.axis());
            for (i, mode) in run.complex().iter_mut().enumerate() {
                let other = rows.get(i);
                let im = if self.conjugate { -other.im } else { other.im };
                *mode = *mode * Complex::new(other.re * self.scale, im * self.scale);
            }
        }
    }
}

/// A shape that holds the linear convolution of two arrays: at least
/// a + b - 1 points along each axis, rounded up to a length whose prime factors
/// are 2, 3 and 5.
pub fn linear_shape(a: [usize; 3], b: [usize; 3]) -> [usize; 3] {
    std::array::from_fn(|axis| smooth((a[axis] + b[axis]).saturating_sub(1).max(1)))
}

/// The first length from `least` on whose prime factors are 2, 3 and 5.
pub(super) fn smooth(least: usize) -> usize {
    let is_smooth = |mut n: usize| {
        for prime in [2, 3, 5] {
            while n.is_multiple_of(prime) {
                n /= prime;
            }
        }
        n == 1
    };
    (least..).find(|&n| is_smooth(n)).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    #[test]
    fn lengths_are_rounded_up_to_factors_2_3_5() {
        assert_eq!(super::linear_shape([1, 4, 100], [1, 4, 21]), [1, 8, 120]);
        assert_eq!(super::linear_shape([1, 7, 121], [1, 1, 1]), [1, 8, 125]);
    }
}
