//! A plan under measurement, with its arrays and its times so far.

use ferrier::cost::Machine;
use ferrier::{ArrayOf, Backend, Comm, Cpu, Draft, Event, Input, Output, Plan, Real, StepTime};

use super::breakdown::RankEvents;
use super::options::ContestOptions;
use super::results::{CandidateResult, typical_steps, worse};
use crate::agree::agree_result;
use crate::failure::{Failure, Outcome};
use crate::noise::Noise;
use crate::timing::{median, timed};
use crate::view::View;

/// The arrays of a rank: one for transforms in place, else three.
pub struct Arrays<T: Real, B: Backend = Cpu> {
    /// The input; in place, the only array.
    pub input: ArrayOf<T, B>,
    /// The spectrum and the result of the backward transform.
    apart: Option<[ArrayOf<T, B>; 2]>,
}

impl<T: Real, B: Backend> Arrays<T, B>
where
    ArrayOf<T, B>: Input<T, B> + Output<T, B>,
{
    /// Allocates the arrays of a plan. Collective.
    ///
    /// # Errors
    /// Too little memory.
    pub fn new(plan: &Plan<T, B>, in_place: bool) -> ferrier::Result<Self> {
        let (input, apart) = match in_place {
            true => (plan.make_in_place()?, None),
            false => (plan.make_input()?, Some([plan.make_output()?, plan.make_input()?])),
        };
        Ok(Arrays { input, apart })
    }

    /// Transforms the input. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn forward(&mut self, plan: &mut Plan<T, B>) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, _]) => plan.forward(&self.input, spectrum),
            None => plan.call().forward_in_place(&mut self.input),
        }
    }

    /// Transforms the spectrum back. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn backward(&mut self, plan: &mut Plan<T, B>) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, back]) => plan.backward(&*spectrum, back),
            None => plan.call().backward_in_place(&mut self.input),
        }
    }

    /// The spectrum, after [`forward`](Self::forward).
    pub fn spectrum(&self) -> &ArrayOf<T, B> {
        self.apart.as_ref().map_or(&self.input, |[spectrum, _]| spectrum)
    }

    /// The result of [`backward`](Self::backward).
    pub fn back(&self) -> &ArrayOf<T, B> {
        self.apart.as_ref().map_or(&self.input, |[_, back]| back)
    }
}

impl<T: Real> Arrays<T> {
    /// A transform in place overwrites its input.
    fn refill(&mut self, noise: &Noise) {
        if self.apart.is_none() {
            noise.fill(&mut self.input);
        }
    }
}

/// The events of a transform on this rank, and its milliseconds.
pub type Traced = (Vec<Event>, f64);

/// A plan with its arrays and times.
pub struct Candidate<T: Real> {
    plan: Plan<T>,
    pub arrays: Arrays<T>,
    batch: usize,
    /// Round trips restore the input.
    whole: bool,
    /// Steps of every repetition; events and time of both directions.
    profiles: Vec<(Vec<StepTime>, [Traced; 2])>,
    result: CandidateResult,
}

impl<T: Real> Candidate<T> {
    /// Builds the plan and allocates its arrays. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(
        comm: &Comm,
        (draft, planning_ms): (Draft<T>, f64),
        noise: &Noise,
        ContestOptions { in_place, whole, predict, .. }: &ContestOptions<'_>,
    ) -> Outcome<Self> {
        let (in_place, whole) = (*in_place, *whole);
        let wisdom = draft.wisdom().cloned();
        let origin = draft.machine().map(Machine::origin);
        let prediction = draft.prediction(in_place).zip(origin).filter(|_| *predict);
        let plan = draft.build()?;
        let mut arrays = agree_result(comm, Arrays::new(&plan, in_place))?;
        noise.fill(&mut arrays.input);
        let recipe = plan.recipe();
        let result = CandidateResult {
            memory: comm.max(&[plan.memory().total() as f64])?[0] as u64,
            codec: recipe.codec.clone(),
            exchange: recipe.exchange.clone(),
            kernel: recipe.kernel.clone(),
            overlap: recipe.overlap.clone(),
            wisdom,
            prediction,
            planning_ms,
            notes: plan.notes().to_vec(),
            error_l2: if whole { 0.0 } else { f64::NAN },
            ..CandidateResult::default()
        };
        let batch = recipe.batch;
        Ok(Candidate { plan, arrays, batch, whole, profiles: Vec::new(), result })
    }

    /// Runs both directions untimed, then timed; `error` gives the error of the spectrum.
    /// Returns the seconds of a forward and a backward transform. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn warm_up(
        &mut self,
        comm: &Comm,
        noise: &Noise,
        error: impl FnOnce(&View<'_, T>) -> ferrier::Result<f64>,
    ) -> ferrier::Result<[f64; 2]> {
        let Candidate { plan, arrays, result: own, .. } = self;
        arrays.forward(plan)?;
        let order = plan.output_layout().order();
        let view = View::of_spectrum(arrays.spectrum(), plan.output_box(), order, self.batch);
        let view = View { rows: plan.recipe().long.map(|_| plan.recipe().shape[1]), ..view };
        own.error_forward = error(&view)?;
        own.wire_bytes = comm.sum(&[plan.wire_bytes() as f64])?[0] as u64;
        let forward = plan.certificate().unwrap_or_default();
        arrays.backward(plan)?;
        let backward = plan.certificate().unwrap_or_default();
        own.error_bound = forward.bound();
        // The backward transform keeps the loss of the spectrum; of a halved one, up to twice its squares.
        let round = (std::f64::consts::SQRT_2 * forward.bound() + backward.bound()) * (1.0 + forward.bound());
        own.bounds = (forward.loss + backward.loss > 0.0).then_some([forward.bound(), round]);
        arrays.refill(noise);
        let once = timed(comm, || arrays.forward(plan))?;
        Ok([once, timed(comm, || arrays.backward(plan))?])
    }

    /// One timed repetition of both directions. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn repetition(&mut self, comm: &Comm, noise: &Noise, quick: bool) -> ferrier::Result<()> {
        let Candidate { plan, arrays, result: own, .. } = self;
        arrays.refill(noise);
        if quick {
            arrays.forward(plan)?;
            // In place the transform back restores the input, and leaves it in the caches of the threads that transform it:
            // one thread that refills it would take it from them.
            if arrays.apart.is_none() {
                arrays.backward(plan)?;
            }
        }
        own.forward.push(timed(comm, || arrays.forward(plan))?);
        let (steps, there) = (plan.profile(), (plan.events(), plan.elapsed_ms()));
        own.backward.push(timed(comm, || arrays.backward(plan))?);
        self.profiles.push((steps, [there, (plan.events(), plan.elapsed_ms())]));
        if !self.whole {
            return Ok(());
        }
        let (distance, norm) = View::of_input(arrays.back(), self.batch).distance(noise, comm.threads());
        let sums = comm.sum(&[distance, norm])?;
        let error = (sums[0] / sums[1]).sqrt();
        own.error_l2 = worse(own.error_l2, error);
        Ok(())
    }

    /// The measurements. Collective.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn finish(mut self, comm: &Comm) -> Outcome<CandidateResult> {
        let seconds = &self.result.forward;
        let typical = median(seconds);
        let distance = |at: &usize| (seconds[*at] - typical).abs();
        let nearest = (0..seconds.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest else { return Ok(self.result) };
        let (_, traced) = &self.profiles[nearest];
        self.result.typical_ms = seconds[nearest] * 1e3;
        self.result.steps = typical_steps(comm, self.profiles.iter().map(|(steps, _)| steps))?;
        self.result.add_prediction();
        for (own, into) in traced.iter().zip(&mut self.result.traced) {
            *into = gather_events(comm, own)?;
        }
        Ok(self.result)
    }
}

/// The events and the time of all ranks, on rank 0. Collective.
///
/// # Errors
/// A rank failed or left.
pub fn gather_events(comm: &Comm, own: &Traced) -> Outcome<RankEvents> {
    let all = comm.all_gather(&serde_json::to_vec(own).map_err(Failure::new)?)?;
    if comm.rank() != 0 {
        return Ok(RankEvents::default());
    }
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).map_err(Failure::new);
    let (events, total_ms) = all.iter().map(read).collect::<Outcome<Vec<Traced>>>()?.into_iter().unzip();
    Ok(RankEvents { events, total_ms })
}
