//! Runs the calls of a transform.

use ferrier::{Data, DataMut, Real, Result};

use super::cache::{Cached, Key};
use super::calls::Call;

/// A transform of a dense array.
pub struct Job {
    pub calls: Vec<Call>,
    /// The direction of the plans.
    pub forward: bool,
    /// Complex to real: the calls in reverse, of which the last makes real values.
    pub to_real: bool,
    /// The factor of the result.
    pub factor: f64,
    /// Do cosines and sines act on complex values?
    pub complex: bool,
    /// Are cosines and sines orthogonal?
    pub ortho: bool,
    pub workers: usize,
}

/// Scalars of an array that may be real or complex.
struct Scalars<'a, T>(&'a [T]);
struct ScalarsMut<'a, T>(&'a mut [T]);

impl<T: Real> Data<T> for Scalars<'_, T> {
    fn scalars(&self) -> &[T] {
        self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Real> Data<T> for ScalarsMut<'_, T> {
    fn scalars(&self) -> &[T] {
        self.0
    }
    fn is_real(&self) -> Option<bool> {
        None
    }
}

impl<T: Real> DataMut<T> for ScalarsMut<'_, T> {
    fn scalars_mut(&mut self) -> &mut [T] {
        self.0
    }
}

impl Job {
    /// From `input`, or in place where there is none.
    pub fn run<T: Cached>(&self, input: Option<&[T]>, output: &mut [T]) -> Result<()> {
        if self.calls.is_empty() {
            if let Some(input) = input {
                output.copy_from_slice(input);
            }
            return Ok(());
        }
        if self.to_real {
            return self.run_to_real(input.expect("these transforms are not done in place"), output);
        }
        let mut input = input;
        for (i, call) in self.calls.iter().enumerate() {
            let last = i + 1 == self.calls.len();
            self.call(call, input.take(), output, self.factor_of(last))?;
        }
        Ok(())
    }

    fn run_to_real<T: Cached>(&self, input: &[T], output: &mut [T]) -> Result<()> {
        let (real, complex) = self.calls.split_first().expect("there is a call");
        if complex.is_empty() {
            return self.call(real, Some(input), output, self.factor_of(true));
        }
        let mut work = vec![T::zero(); input.len()];
        let mut input = Some(input);
        for call in complex.iter().rev() {
            self.call(call, input.take(), &mut work, 1.0)?;
        }
        self.call(real, Some(&work), output, self.factor_of(true))
    }

    /// Plans of orthogonal cosines and sines divide by the roots of their sizes: the last call makes up for it.
    fn factor_of(&self, last: bool) -> f64 {
        match (last, self.ortho) {
            (false, _) => 1.0,
            (true, false) => self.factor,
            (true, true) => self.factor * self.calls.iter().map(Call::size).product::<f64>().sqrt(),
        }
    }

    fn call<T: Cached>(&self, call: &Call, input: Option<&[T]>, output: &mut [T], factor: f64) -> Result<()> {
        let (complex, ortho, workers) = (self.complex, self.ortho, self.workers);
        let key = Key { call: call.clone(), complex, ortho, workers };
        T::cache().with(&key, |plan| {
            let call = plan.call().scale(factor);
            let output = &mut ScalarsMut(output);
            match (input, self.forward) {
                (Some(input), true) => call.forward(&Scalars(input), output),
                (Some(input), false) => call.backward(&Scalars(input), output),
                (None, true) => call.forward_in_place(output),
                (None, false) => call.backward_in_place(output),
            }
        })
    }
}
