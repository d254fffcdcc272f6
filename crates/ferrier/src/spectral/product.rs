//! Products of fields without aliasing: the 3/2 rule.

use super::convolve::smooth;
use crate::{Array, Comm, Data, Keep, Kind, LayoutSpec, Plan, Planner, Problem, Real, Result, Scale};

/// Products of fields that are given by their modes.
///
/// The product of two fields with modes up to m has modes up to 2m. On a grid
/// that resolves only the modes of the factors, the higher ones alias. The
/// factors are therefore evaluated on a grid 3/2 times as fine, on which only
/// modes that are dropped afterwards are aliased. Modes that are zero or
/// dropped are neither transformed nor sent.
///
/// Modes are amplitudes: the field is the sum of mode times wave on any grid.
/// Of an axis of n points the modes up to (n - 1)/2 are kept, in the order of
/// `numpy.fft.fftfreq`, without the Nyquist mode of an even n.
///
/// ```
/// use ferrier::{Problem, spectral::Products};
/// ferrier::ranks(2).run(|comm| {
///     let mut products = Products::<f64>::new(&comm, &Problem::c2c([1, 1, 7]).axes(&[2]))?;
///     let (mut a, mut b) = (products.make_modes()?, products.make_modes()?);
///     let mut c = products.make_modes()?;
///     // e^(2ix) (e^(ix) + e^(3ix)) = e^(3ix) + e^(5ix); the last one is dropped.
///     a.fill_complex(|_, [_, _, k]| f64::from(u8::from(k == 2)).into());
///     b.fill_complex(|_, [_, _, k]| f64::from(u8::from(k == 1 || k == 3)).into());
///     products.multiply(&a, &b, &mut c)?;
///     for k in 0..7 {
///         if let Some(at) = c.index(0, [0, 0, k]) {
///             let wanted = f64::from(u8::from(k == 3));
///             assert!((c.complex()[at] - wanted).norm() < 1e-15);
///         }
///     }
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Debug)]
pub struct Products<T: Real> {
    plan: Plan<T>,
    factors: [Array<T>; 2],
}

impl<T: Real> Products<T> {
    /// Products of fields of this problem, complex or real. The output layout
    /// and the scales of the problem are ignored; its input layout is that of
    /// the fine grid. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`Planner::draft`].
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        let (kinds, shape) = (problem.kinds(), problem.lengths());
        let kept = |axis: usize| (shape[axis].max(1) - 1) / 2 * 2 + 1;
        let periodic = |axis: usize| matches!(kinds[axis], Kind::Complex | Kind::Real);
        let keep = [0, 1, 2].map(|a| if periodic(a) { Keep::Lowest(kept(a)) } else { Keep::All });
        let fine = [0, 1, 2].map(|a| if periodic(a) { smooth(kept(a) * 3 / 2 + 1) } else { shape[a] });
        let mut problem = problem
            .clone()
            .keep(keep)
            .output(LayoutSpec::unconstrained())
            .scale_forward(Scale::Full)
            .scale_backward(Scale::Unscaled);
        problem.shape = fine;
        let plan = Planner::new(&problem).draft::<T>(comm)?.build()?;
        let factors = [plan.make_input()?, plan.make_input()?];
        Ok(Products { plan, factors })
    }

    /// The plan between modes and the fine grid.
    pub fn plan(&mut self) -> &mut Plan<T> {
        &mut self.plan
    }

    /// An array for the modes of a field. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn make_modes(&self) -> Result<Array<T>> {
        self.plan.make_output()
    }

    /// The product of two fields, from modes to modes. Collective; does not allocate.
    ///
    /// # Errors
    /// As [`Plan::forward`].
    pub fn multiply(&mut self, one: &Array<T>, other: &Array<T>, product: &mut Array<T>) -> Result<()> {
        let [a, b] = &mut self.factors;
        self.plan.backward(one, a)?;
        self.plan.backward(other, b)?;
        if a.is_real() {
            a.real_mut().iter_mut().zip(b.scalars()).for_each(|(a, b)| *a *= *b);
        } else {
            a.complex_mut().iter_mut().zip(b.complex()).for_each(|(a, b)| *a = *a * b);
        }
        self.plan.forward(a, product)
    }
}
