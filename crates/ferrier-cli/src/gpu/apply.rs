//! `ferrier bench --apply --device cuda`: what an operator costs on a GPU.

use std::f64::consts::TAU;

use ferrier::cuda::{Event, Plan};
use ferrier::spectral::WaveNumbers;
use ferrier::{Comm, Data, Planner, Real};

use crate::applying::{Report, Work, difference, fill};
use crate::failure::Outcome;
use crate::parts::Number;
use crate::session;

/// What every rank does. Collective.
///
/// # Errors
/// Those of the library; a result that is wrong.
pub fn apply<T: Real + Number>(comm: &Comm, work: &Work) -> Outcome<Report> {
    let gpu = super::of_rank(work.device, comm)?;
    let draft = Planner::new(&work.problem).choice(work.choice.clone()).device(&gpu).draft::<T>(comm);
    let mut plan = session::agree(comm, draft.map_err(Into::into))?.build()?;
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
        session::agree(comm, arrays().map_err(Into::into))?;
    fill(&mut one, &recipe);
    input.upload(&one)?;
    let waves = WaveNumbers::new(&recipe, [TAU; 3])?;
    let operator = work.member.operator::<T>(&waves)?;
    let marks = [Event::new(&gpu)?, Event::new(&gpu)?];
    let laps = work.laps(|| {
        let apply = timed(comm, &mut plan, &marks, |plan| plan.apply(&input, &mut fused, &*operator))?;
        let separate = timed(comm, &mut plan, &marks, |plan| {
            plan.forward_with(&input, &mut spectrum, &*operator)?;
            plan.backward(&spectrum, &mut back)
        })?;
        let pair = timed(comm, &mut plan, &marks, |plan| {
            plan.forward(&input, &mut spectrum)?;
            plan.backward(&spectrum, &mut back)
        })?;
        Ok([apply, pair, separate])
    })?;
    // The spectrum of the last turn, with the operator as the CPU runs it.
    spectrum.download(&mut modes)?;
    modes.apply(&*operator, comm.threads());
    spectrum.upload(&modes)?;
    plan.backward(&spectrum, &mut back)?;
    back.download(&mut other)?;
    fused.download(&mut one)?;
    let points: f64 = recipe.shape.iter().map(|&n| n as f64).product();
    let most = 8.0 * recipe.precision.epsilon() * points.log2().max(1.0);
    let difference = difference(comm, one.numbers(), other.numbers(), most)?;
    Ok(work.report(comm, &recipe, &laps, difference).on(gpu.name()))
}

/// Seconds, by the GPU's events, of the slowest rank. Collective.
fn timed<T: Real>(
    comm: &Comm,
    plan: &mut Plan<T>,
    marks: &[Event; 2],
    work: impl FnOnce(&mut Plan<T>) -> ferrier::Result<()>,
) -> ferrier::Result<f64> {
    plan.synchronize()?;
    comm.barrier()?;
    plan.record(&marks[0])?;
    work(plan)?;
    plan.record(&marks[1])?;
    plan.synchronize()?;
    Ok(comm.max(&[marks[1].ms_since(&marks[0])? / 1e3])?[0])
}
