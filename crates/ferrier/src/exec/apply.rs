//! Operators on spectra: there, a pointwise function, and back.

use super::{BACKWARD, FORWARD, Operator, Plan, ROUND, Workspace};
use crate::{Data, DataMut, Error, Real, Result};

/// The trips of a plan for operators.
const ROUND_IN_PLACE: usize = ROUND + 1;
const OPERATED: usize = ROUND + 2;

impl<T: Real> Plan<T> {
    /// `input`, forward, each mode through `operator`, and back to `output`,
    /// which lies like the input. Collective; allocates nothing; leaves the
    /// input as it was.
    ///
    /// The spectrum never leaves the caches: the last axis is transformed, the
    /// operator applied and the axis transformed back in one pass over memory,
    /// wherever that axis is whole. So it costs less than
    /// [`forward`](Self::forward) and [`backward`](Self::backward), and the
    /// output layout of the problem does not matter. The result is that of
    /// these two, with the operator between them, to the last bit.
    ///
    /// # Errors
    /// [`Error::Choice`] for a plan of a problem without
    /// [`operators`](crate::Problem::operators); else as [`forward`](Self::forward).
    pub fn apply<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
        F: Operator<T>,
    {
        self.has_operators()?;
        self.out_of_place(ROUND, input, output, None, Some(operator))
    }

    /// [`apply`](Self::apply) with the caller's workspace instead of the plan's.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and where the workspace is too small.
    pub fn apply_using<I, O, F>(
        &mut self,
        input: &I,
        output: &mut O,
        operator: &F,
        workspace: &mut Workspace<T>,
    ) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
        F: Operator<T>,
    {
        self.has_operators()?;
        self.out_of_place(ROUND, input, output, Some(workspace), Some(operator))
    }

    /// [`apply`](Self::apply) to an array of [`make_in_place`](Self::make_in_place).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_in_place<A, F>(&mut self, array: &mut A, operator: &F) -> Result<()>
    where
        A: DataMut<T> + ?Sized,
        F: Operator<T>,
    {
        self.has_operators()?;
        self.in_place(ROUND_IN_PLACE, array, None, Some(operator))
    }

    /// [`forward`](Self::forward), with each mode through `operator` before it
    /// is stored. Collective; allocates nothing.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn forward_with<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
        F: Operator<T>,
    {
        self.has_operators()?;
        self.out_of_place(OPERATED + FORWARD, input, output, None, Some(operator))
    }

    /// [`backward`](Self::backward), with each mode through `operator` when it
    /// has been loaded; the spectrum stays as it was. Collective; allocates nothing.
    ///
    /// So several fields can be made from one spectrum, or one from several
    /// (an operator may look into other arrays).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn backward_with<I, O, F>(&mut self, input: &I, output: &mut O, operator: &F) -> Result<()>
    where
        I: Data<T> + ?Sized,
        O: DataMut<T> + ?Sized,
        F: Operator<T>,
    {
        self.has_operators()?;
        self.out_of_place(OPERATED + BACKWARD, input, output, None, Some(operator))
    }

    /// The same answer on every rank.
    fn has_operators(&self) -> Result<()> {
        match self.recipe.operators {
            true => Ok(()),
            false => Err(Error::choice(
                "operators",
                "this plan takes no operators: make it from a problem with `operators(true)`",
            )),
        }
    }
}
