//! `-laplace(u) + shift * u = f`, on a periodic box.

use std::fmt;

use crate::spectral::{self, WaveNumbers};
use crate::{Array, Certificate, Data, DataMut, Error, Kind, Operator, Plan, Real, Result};

/// Error bounds and traffic of the two transforms of a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Certificate of the transform of the right-hand side.
    pub forward: Certificate,
    /// Certificate of the backward transform.
    pub backward: Certificate,
    /// Bytes that this rank sent to others in both transforms.
    pub wire_bytes: u64,
}

/// Solves `-laplace(u) + shift * u = f` on a periodic box.
///
/// Messages between ranks are encoded with the plan's codec;
/// [`error_bound`](Self::error_bound) bounds the effect on `u`.
pub struct Helmholtz<T: Real> {
    plan: Plan<T>,
    spectrum: Array<T>,
    operator: Box<dyn Operator<T> + Send>,
    shift: f64,
}

impl<T: Real> fmt::Debug for Helmholtz<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helmholtz")
            .field("shift", &self.shift)
            .field("recipe", self.plan.recipe())
            .finish_non_exhaustive()
    }
}

impl<T: Real> Helmholtz<T> {
    /// A solver on a box with sides of these `lengths`, with the shape, the
    /// layouts and the tolerance of `plan`. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Problem`] if an axis of the plan is not transformed or not
    /// periodic, if its scales do not cancel, if a length or the shift is not a
    /// positive number; [`Error::Memory`].
    pub fn new(plan: Plan<T>, lengths: [f64; 3], shift: f64) -> Result<Self> {
        if !(shift > 0.0 && shift.is_finite()) {
            return Err(Error::problem("shift", format!("the shift must be positive, got {shift}")));
        }
        let recipe = plan.recipe();
        let periodic = |axis: usize| match recipe.kinds[axis] {
            Kind::Complex | Kind::Real => true,
            _ => recipe.shape[axis] == 1,
        };
        if let Some(axis) = (0..3).find(|&axis| !periodic(axis)) {
            let kind = recipe.kinds[axis];
            return Err(Error::problem(
                "kinds",
                format!(
                    "the equation is periodic along every axis: axis {axis} of the plan must be complex or real, it is {kind:?}"
                ),
            ));
        }
        // The transform of an axis of length 1 is the identity, so such an axis need not be transformed.
        let points = recipe.shape.iter().map(|&n| n as f64).product::<f64>();
        let both = recipe.scale_forward * recipe.scale_backward * points;
        if (both - 1.0).abs() > 1e-9 {
            return Err(Error::problem(
                "scale_forward",
                format!("the scales of a solver's plan must cancel, but a round trip multiplies by {both}"),
            ));
        }
        let operator = Box::new(spectral::helmholtz(&WaveNumbers::new(recipe, lengths)?, shift));
        let spectrum = plan.make_output()?;
        Ok(Helmholtz { plan, spectrum, operator, shift })
    }

    /// Solves for the right-hand side `f`. Collective.
    ///
    /// The modes are divided between two separate transforms, not in a fused
    /// operator, because each transform certifies its own error.
    ///
    /// # Errors
    /// Those of [`Plan::forward`] and [`Plan::backward`].
    pub fn solve<I, O>(&mut self, f: &I, u: &mut O) -> Result<Cost>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
    {
        self.plan.forward(f, &mut self.spectrum)?;
        let (forward, sent) = self.certified()?;
        self.spectrum.apply(&*self.operator, 1);
        self.plan.backward(&self.spectrum, u)?;
        let (backward, sent_back) = self.certified()?;
        Ok(Cost { forward, backward, wire_bytes: sent + sent_back })
    }

    /// Certificate and bytes sent of the last transform.
    fn certified(&self) -> Result<(Certificate, u64)> {
        let none = || Error::other("a transform left no certificate");
        Ok((self.plan.certificate().ok_or_else(none)?, self.plan.wire_bytes()))
    }

    /// A bound on the relative L2 error of `u` against the exact solution on
    /// this grid, given the norms of `f` and `u`. The solver amplifies an error
    /// of the spectrum of `f` by at most `1 / shift`; for real data there is a
    /// factor `sqrt 2`, because each mode of the half spectrum represents two.
    pub fn error_bound(&self, cost: &Cost, norm_f: f64, norm_u: f64) -> f64 {
        let halves = if self.plan.recipe().is_real() { std::f64::consts::SQRT_2 } else { 1.0 };
        halves * cost.forward.bound() * norm_f / (self.shift * norm_u) + cost.backward.bound()
    }

    /// The plan that was given.
    pub fn plan(&self) -> &Plan<T> {
        &self.plan
    }
}
