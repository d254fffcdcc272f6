//! Plans on any device, between arrays in main memory.

use ferrier::{
    Array, Box3, Certificate, Choice, Comm, DeviceSpec, Layout, Operator, Plan, Planner, Problem, Real,
    Recipe,
};

use crate::agree::{check_memory, local_volumes, same_error};
use crate::failure::Outcome;
#[cfg(feature = "cuda")]
use crate::gpu::HostedGpuPlan;
use crate::timing::timed;

/// A plan on the processor, or on the GPU of each rank.
pub enum HostedPlan<T: Real> {
    /// On the processor.
    Cpu(Box<Plan<T>>),
    /// On a GPU.
    #[cfg(feature = "cuda")]
    Gpu(Box<HostedGpuPlan<T>>),
}

/// Calls a method of the plan of either device.
macro_rules! of_plan {
    ($hosted:expr, $plan:ident => $value:expr) => {
        match $hosted {
            HostedPlan::Cpu($plan) => $value,
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => {
                let $plan = &hosted.plan;
                $value
            }
        }
    };
}

impl<T: Real> HostedPlan<T> {
    /// Makes a plan where there is memory for it and so many arrays in main memory. Collective.
    ///
    /// # Errors
    /// Those of the planner; too little memory; no such device.
    pub fn new(
        comm: &Comm,
        problem: &Problem,
        choice: Choice,
        device: DeviceSpec,
        arrays: usize,
    ) -> Outcome<Self> {
        match device {
            DeviceSpec::Cpu => {
                let draft = same_error(comm, Planner::new(problem).choice(choice).draft::<T>(comm))?;
                let needed = draft.memory().total() + arrays * array_bytes::<T>(comm, draft.recipe());
                check_memory(comm, needed)?;
                Ok(HostedPlan::Cpu(Box::new(draft.build()?)))
            }
            #[cfg(feature = "cuda")]
            device => {
                let plan = HostedGpuPlan::new(comm, problem, choice, device)?;
                check_memory(comm, arrays * array_bytes::<T>(comm, plan.plan.recipe()))?;
                Ok(HostedPlan::Gpu(Box::new(plan)))
            }
            #[cfg(not(feature = "cuda"))]
            device => crate::failure::fail(format!(
                "--device {device}: this program was built without the feature `cuda`"
            )),
        }
    }

    /// The plan, if it is on the processor.
    pub fn on_cpu(&mut self) -> Option<&mut Plan<T>> {
        match self {
            HostedPlan::Cpu(plan) => Some(plan),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(_) => None,
        }
    }

    /// What it does.
    pub fn recipe(&self) -> &Recipe {
        of_plan!(self, plan => plan.recipe())
    }

    /// Substitutions that it makes.
    pub fn notes(&self) -> &[String] {
        of_plan!(self, plan => plan.notes())
    }

    /// The layout of the input.
    pub fn input_layout(&self) -> &Layout {
        of_plan!(self, plan => plan.input_layout())
    }

    /// The layout of the output.
    pub fn output_layout(&self) -> &Layout {
        of_plan!(self, plan => plan.output_layout())
    }

    /// This rank's box of the output.
    pub fn output_box(&self) -> Box3 {
        of_plan!(self, plan => plan.output_box())
    }

    /// The certificate of the last transform.
    pub fn certificate(&self) -> Option<Certificate> {
        of_plan!(self, plan => plan.certificate())
    }

    /// Bytes that this rank sent in the last transform.
    pub fn wire_bytes(&self) -> u64 {
        of_plan!(self, plan => plan.wire_bytes())
    }

    /// An array in main memory for the input.
    ///
    /// # Errors
    /// Too little memory.
    pub fn make_input(&self) -> ferrier::Result<Array<T>> {
        match self {
            HostedPlan::Cpu(plan) => plan.make_input(),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.plan.make_host_input(),
        }
    }

    /// An array in main memory for the output.
    ///
    /// # Errors
    /// Too little memory.
    pub fn make_output(&self) -> ferrier::Result<Array<T>> {
        match self {
            HostedPlan::Cpu(plan) => plan.make_output(),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.plan.make_host_output(),
        }
    }

    /// Transforms forward. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn forward(&mut self, from: &Array<T>, to: &mut Array<T>) -> ferrier::Result<()> {
        match self {
            HostedPlan::Cpu(plan) => plan.forward(from, to),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.forward(from, to),
        }
    }

    /// Transforms backward. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn backward(&mut self, from: &Array<T>, to: &mut Array<T>) -> ferrier::Result<()> {
        match self {
            HostedPlan::Cpu(plan) => plan.backward(from, to),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.backward(from, to),
        }
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
        match self {
            HostedPlan::Cpu(plan) => plan.call().operator(operator).apply(from, to),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.apply(operator, from, to),
        }
    }

    /// Seconds of a forward transform on the slowest rank; on a GPU between arrays in its memory. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn timed_forward(&mut self, comm: &Comm, from: &Array<T>, to: &mut Array<T>) -> ferrier::Result<f64> {
        match self {
            HostedPlan::Cpu(plan) => timed(comm, || plan.forward(from, to)),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.timed_forward(comm),
        }
    }

    /// As [`timed_forward`](Self::timed_forward), of [`apply`](Self::apply).
    ///
    /// # Errors
    /// Those of the plan.
    pub fn timed_apply(
        &mut self,
        comm: &Comm,
        operator: &impl Operator<T>,
        from: &Array<T>,
        to: &mut Array<T>,
    ) -> ferrier::Result<f64> {
        match self {
            HostedPlan::Cpu(plan) => timed(comm, || plan.call().operator(operator).apply(from, to)),
            #[cfg(feature = "cuda")]
            HostedPlan::Gpu(hosted) => hosted.timed_apply(comm, operator),
        }
    }
}

/// Bytes of the longer of this rank's two arrays.
fn array_bytes<T: Real>(comm: &Comm, recipe: &Recipe) -> usize {
    let volumes = local_volumes(comm, recipe);
    2 * size_of::<T>() * recipe.batch * volumes[0].max(volumes[1])
}
