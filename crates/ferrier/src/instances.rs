//! Instances of the generic plans for both precisions, compiled with this crate.
//!
//! Without them, every program that makes plans compiles most of this crate itself. Programs in profiles with
//! `opt-level` 0 or 1 use the instances of this crate instead, which halves the time of a debug build with many test
//! programs. With more optimisation rustc does not share instances, so release builds have none.

#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::{ArrayOf, Comm, Cpu, Input, Output, Planner, Real, Result, Target};

type Instance<B> = fn(Planner<B>, &Comm) -> Result<()>;

#[used]
static CPU: [Instance<Cpu>; 2] = [transforms::<f32, Cpu>, transforms::<f64, Cpu>];
#[cfg(feature = "cuda")]
#[used]
static CUDA: [Instance<Cuda>; 2] = [transforms::<f32, Cuda>, transforms::<f64, Cuda>];

fn transforms<T: Real, B: Target>(planner: Planner<B>, comm: &Comm) -> Result<()>
where
    ArrayOf<T, B>: Input<T, B> + Output<T, B>,
{
    let mut plan = planner.draft::<T>(comm)?.build()?;
    let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
    plan.forward(&input, &mut output)?;
    plan.backward(&output, &mut input)?;
    plan.call().forward_in_place(&mut input)?;
    plan.call().apply(&output, &mut input)
}
