//! A plan on a GPU, between arrays in main memory.

use ferrier::cuda::{DeviceArray, Event, Plan};
use ferrier::{Array, Choice, Comm, DeviceSpec, Operator, Planner, Problem, Real};

use super::device::{of_rank, timed};
use crate::agree::{agree_result, same_error};
use crate::failure::Outcome;

/// A plan on this rank's GPU with arrays there.
pub struct HostedGpuPlan<T: Real> {
    /// The plan.
    pub plan: Plan<T>,
    input: DeviceArray<T>,
    output: DeviceArray<T>,
    back: DeviceArray<T>,
    events: [Event; 2],
}

impl<T: Real> HostedGpuPlan<T> {
    /// Plans for the GPU of each rank. Collective.
    ///
    /// # Errors
    /// Those of the planner; no GPU, or too little memory of it.
    pub fn new(comm: &Comm, problem: &Problem, choice: Choice, device: DeviceSpec) -> Outcome<Self> {
        let gpu = of_rank(device, comm)?;
        let draft = Planner::new(problem).choice(choice).device(&gpu).draft::<T>(comm);
        let plan = same_error(comm, draft)?.build()?;
        let arrays = || -> ferrier::Result<_> {
            let arrays = (plan.make_input()?, plan.make_output()?, plan.make_input()?);
            Ok((arrays, [Event::new(plan.gpu())?, Event::new(plan.gpu())?]))
        };
        let ((input, output, back), events) = agree_result(comm, arrays())?;
        Ok(HostedGpuPlan { plan, input, output, back, events })
    }

    /// Transforms forward; returns when the result is in main memory. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn forward(&mut self, from: &Array<T>, to: &mut Array<T>) -> ferrier::Result<()> {
        self.input.upload(from)?;
        self.plan.forward(&self.input, &mut self.output)?;
        self.output.download(to)
    }

    /// Transforms backward. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn backward(&mut self, from: &Array<T>, to: &mut Array<T>) -> ferrier::Result<()> {
        self.output.upload(from)?;
        self.plan.backward(&self.output, &mut self.back)?;
        self.back.download(to)
    }

    /// Transforms forward, applies an operator and transforms back. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn apply(
        &mut self,
        operator: &impl Operator<T>,
        from: &Array<T>,
        to: &mut Array<T>,
    ) -> ferrier::Result<()> {
        self.input.upload(from)?;
        self.plan.call().operator(operator).apply(&self.input, &mut self.back)?;
        self.back.download(to)
    }

    /// Seconds of a forward transform of what the last one had, on the slowest rank, by events of the GPU. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn timed_forward(&mut self, comm: &Comm) -> ferrier::Result<f64> {
        let HostedGpuPlan { plan, input, output, events, .. } = self;
        timed(comm, plan, events, |plan| plan.forward(&*input, output))
    }

    /// The same backward.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn timed_backward(&mut self, comm: &Comm) -> ferrier::Result<f64> {
        let HostedGpuPlan { plan, output, back, events, .. } = self;
        timed(comm, plan, events, |plan| plan.backward(&*output, back))
    }

    /// The same of [`apply`](Self::apply).
    ///
    /// # Errors
    /// Those of the plan.
    pub fn timed_apply(&mut self, comm: &Comm, operator: &impl Operator<T>) -> ferrier::Result<f64> {
        let HostedGpuPlan { plan, input, back, events, .. } = self;
        timed(comm, plan, events, |plan| plan.call().operator(operator).apply(&*input, back))
    }
}
