//! Runs the calls of a transform.

use ferrier::{Result, Scalars};

use super::cache::{Cached, Key};
use super::calls::Call;

/// A transform of an array.
pub struct Job {
    pub calls: Vec<Call>,
    /// The direction that was asked for.
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

/// Where the scalars of an array lie: the address of the first, and how many there are up to the last, with the gaps.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub start: usize,
    pub scalars: usize,
}

impl Job {
    /// From `input`, or in place where there is none.
    ///
    /// # Safety
    /// So many scalars lie there, aligned; the two arrays do not overlap, and no other thread accesses the elements that
    /// are written, or writes those that are read, meanwhile.
    pub unsafe fn run<T: Cached>(&self, input: Option<Span>, output: Span) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe {
            if self.to_real && self.calls.len() > 1 {
                return self.run_to_real::<T>(input.expect("these transforms are not done in place"), output);
            }
            let mut input = input;
            for (i, call) in self.calls.iter().enumerate() {
                let last = i + 1 == self.calls.len();
                self.call::<T>(call, input.take(), output, self.factor_of(last))?;
            }
        }
        Ok(())
    }

    /// The calls in reverse, through an array of spectra.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_to_real<T: Cached>(&self, input: Span, output: Span) -> Result<()> {
        let (real, complex) = self.calls.split_first().expect("there is a call");
        let mut work = vec![T::zero(); input.scalars];
        let spectra = Span { start: work.as_mut_ptr() as usize, scalars: work.len() };
        let mut input = Some(input);
        // SAFETY: this function's contract; `work` lives until the last call is done.
        unsafe {
            for call in complex.iter().rev() {
                self.call::<T>(call, input.take(), spectra, 1.0)?;
            }
            self.call::<T>(real, Some(spectra), output, self.factor_of(true))
        }
    }

    /// Plans of orthogonal cosines and sines divide by the roots of their sizes: the last call makes up for it.
    pub fn factor_of(&self, last: bool) -> f64 {
        match (last, self.ortho) {
            (false, _) => 1.0,
            (true, false) => self.factor,
            (true, true) => self.factor * self.calls.iter().map(Call::size).product::<f64>().sqrt(),
        }
    }

    /// What decides the plan of a call, and the direction of that plan.
    pub fn key(&self, call: &Call) -> (Key, bool) {
        let forward = if call.is_real() { !self.to_real } else { call.real_input || self.forward };
        // A plan's `forward` takes real values: the other direction is one with the other sign.
        let positive = (call.is_real() || call.real_input) && (forward != self.forward);
        let mut call = call.clone();
        if !forward {
            call.strides.swap(0, 1);
        }
        let (complex, ortho, workers) = (self.complex, self.ortho, self.workers);
        (Key { call, positive, complex, ortho, workers }, forward)
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn call<T: Cached>(
        &self,
        call: &Call,
        input: Option<Span>,
        output: Span,
        factor: f64,
    ) -> Result<()> {
        let (key, forward) = self.key(call);
        // SAFETY: this function's contract.
        let input =
            input.map(|span| unsafe { std::slice::from_raw_parts(span.start as *const T, span.scalars) });
        // SAFETY: as above.
        let output = unsafe { std::slice::from_raw_parts_mut(output.start as *mut T, output.scalars) };
        T::with_plan(&key, |plan| {
            let call = plan.call().scale(factor);
            let output = &mut Scalars(output);
            match (input, forward) {
                (Some(input), true) => call.forward(&Scalars(input), output),
                (Some(input), false) => call.backward(&Scalars(input), output),
                (None, true) => call.forward_in_place(output),
                (None, false) => call.backward_in_place(output),
            }
        })
    }
}
