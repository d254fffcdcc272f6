//! Operators on the spectrum, on a GPU.

use std::f64::consts::TAU;

use ferrier::cuda::Event;
use ferrier::spectral::WaveNumbers;
use ferrier::{Comm, Data, Planner, Real};

use super::device::{of_rank, timed};
use crate::agree::agree_result;
use crate::failure::Outcome;
use crate::in_precision;
use crate::noise::Noise;
use crate::operator_bench::{OperatorBench, OperatorReport, difference};

/// Times the operator on this rank's GPU. Collective.
///
/// # Errors
/// Those of the library; a wrong result.
pub fn operator_bench(comm: &Comm, options: &OperatorBench) -> Outcome<OperatorReport> {
    in_precision!(options.precision, T => measure::<T>(comm, options))
}

fn measure<T: Real>(comm: &Comm, options: &OperatorBench) -> Outcome<OperatorReport> {
    let gpu = of_rank(options.device, comm)?;
    let draft = Planner::new(&options.problem).choice(options.choice.clone()).device(&gpu).draft::<T>(comm);
    let mut plan = agree_result(comm, draft)?.build()?;
    let recipe = plan.recipe().clone();
    let arrays = || -> ferrier::Result<_> {
        let device = [plan.make_input()?, plan.make_input()?, plan.make_input()?];
        Ok((
            device,
            plan.make_output()?,
            [plan.make_host_input()?, plan.make_host_input()?],
            plan.make_host_output()?,
        ))
    };
    let ([mut input, mut fused, mut back], mut spectrum, [mut one, mut other], mut modes) =
        agree_result(comm, arrays())?;
    Noise::new(recipe.shape, 1).fill(&mut one);
    input.upload(&one)?;
    let waves = WaveNumbers::new(&recipe, [TAU; 3])?;
    let operator = options.operator.operator::<T>(&waves)?;
    let marks = [Event::new(&gpu)?, Event::new(&gpu)?];
    let repetitions = options.repeated(|| {
        let apply = timed(comm, &mut plan, &marks, |plan| {
            plan.call().operator(&&*operator).apply(&input, &mut fused)
        })?;
        let separate = timed(comm, &mut plan, &marks, |plan| {
            plan.call().operator(&&*operator).forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?;
        let pair = timed(comm, &mut plan, &marks, |plan| {
            plan.forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?;
        Ok([apply, pair, separate])
    })?;
    // The spectrum of the last repetition, with the operator as the CPU applies it.
    spectrum.download(&mut modes)?;
    modes.apply(&*operator, comm.threads());
    spectrum.upload(&modes)?;
    plan.backward(&spectrum, &mut back)?;
    back.download(&mut other)?;
    fused.download(&mut one)?;
    let points: f64 = recipe.shape.iter().map(|&n| n as f64).product();
    let most = 8.0 * recipe.precision.epsilon() * points.log2().max(1.0);
    let difference = difference(comm, one.scalars(), other.scalars(), most)?;
    Ok(options.report(comm, (&recipe, &[]), &repetitions, difference).on_gpu(gpu.name()))
}
