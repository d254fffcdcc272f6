//! `-laplace(u) + shift * u = f`, on a periodic box.

use crate::spectral::{self, WaveNumbers};
use crate::{Array, Certificate, Data, DataMut, Error, Kind, Operator, Plan, Real, Result};

/// What the two transforms of a solution may have lost, and what they sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Of the transform of the right-hand side.
    pub forward: Certificate,
    /// Of the transform back.
    pub backward: Certificate,
    /// What this rank sent to others in both, in bytes.
    pub wire_bytes: u64,
}

/// Solves `-laplace(u) + shift * u = f` on a periodic box.
///
/// What crosses between ranks is encoded as the plan's codec or tolerance
/// says; [`error_bound`](Self::error_bound) tells what that does to `u`.
pub struct Helmholtz<T: Real> {
    plan: Plan<T>,
    spectrum: Array<T>,
    operator: Box<dyn Operator<T> + Send>,
    shift: f64,
}

impl<T: Real> Helmholtz<T> {
    /// A solver on a box with sides of these `lengths`; the shape, the layouts
    /// and what may be lost on the way are those of `plan`. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Problem`] where an axis of the plan is not transformed or not
    /// periodic, where its scales do not cancel, where a length or the shift is
    /// not a positive number; [`Error::Memory`].
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
        // An axis of length 1 may be left alone, which changes nothing.
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
    /// The modes are divided between two whole transforms and not inside of
    /// [`Plan::apply`], because each transform certifies what it lost and an
    /// operator in between does not.
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

    /// Of the last transform.
    fn certified(&self) -> Result<(Certificate, u64)> {
        let none = || Error::other("a transform left no certificate");
        Ok((self.plan.certificate().ok_or_else(none)?, self.plan.wire_bytes()))
    }

    /// How far `u` may be from the exact solution on this grid, over its norm,
    /// given the norms of `f` and `u`. An error of the spectrum of `f` comes
    /// out at most `1 / shift` times as large; that of real data counts
    /// `sqrt 2` more, because each number of its half stands for two.
    pub fn error_bound(&self, cost: &Cost, norm_f: f64, norm_u: f64) -> f64 {
        let halves = if self.plan.recipe().is_real() { std::f64::consts::SQRT_2 } else { 1.0 };
        halves * cost.forward.bound() * norm_f / (self.shift * norm_u) + cost.backward.bound()
    }

    /// The plan.
    pub fn plan(&self) -> &Plan<T> {
        &self.plan
    }
}
