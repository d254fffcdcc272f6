//! A plan under measurement, with its arrays and its times so far.

use ferrier::{Array, Comm, Draft, Event, Plan, Real, StepTime};

use crate::failure::{Failure, Outcome};
use crate::noise::Noise;
use crate::parts::Number;
use crate::session;
use crate::timing::{median, timed};
use crate::view::{View, rounded};

/// What came out for one plan. The same on every rank, but for `events`.
#[derive(Default)]
pub struct Timed {
    /// Seconds of each forward transform, the slowest rank's.
    pub forward: Vec<f64>,
    /// Seconds of each backward transform.
    pub backward: Vec<f64>,
    /// The steps of the forward transform nearest to the median: time of the
    /// slowest rank, bytes of all ranks.
    pub steps: Vec<StepTime>,
    /// What each rank did in it (on rank 0).
    pub events: Vec<Vec<Event>>,
    /// How long it took, in milliseconds.
    pub typical_ms: f64,
    /// Largest relative error of a round trip; NaN where not all modes were kept.
    pub error_l2: f64,
    /// Relative error of the spectrum.
    pub error_forward: f64,
    /// Of the rank that needs most.
    pub memory: u64,
    /// Bytes that crossed between ranks in one forward transform, encoded or not.
    pub wire: u64,
    /// How they were encoded.
    pub codec: String,
    /// What the error of the spectrum and of a round trip can be at most; `None` where nothing is lost.
    pub bounds: Option<[f64; 2]>,
    /// The former, with the worst that rounding can do.
    pub error_bound: f64,
    /// How ranks exchanged data, as the planner chose.
    pub exchange: String,
    /// What transformed the lines.
    pub kernel: String,
    /// What reshapes go by.
    pub overlap: ferrier::Overlap,
    /// Whose experience the plan was made from, if any's.
    pub wisdom: Option<ferrier::wisdom::Known>,
    /// How long planning took, memory not counted, in milliseconds.
    pub planning_ms: f64,
    /// What a user should know about the plan.
    pub notes: Vec<String>,
}

/// The arrays of a rank: one, or three where the transform is not in place.
pub struct Arrays<T: Real> {
    pub input: Array<T>,
    /// The spectrum, and what comes back.
    apart: Option<[Array<T>; 2]>,
}

impl<T: Real + Number> Arrays<T> {
    fn new(plan: &Plan<T>, noise: &Noise, in_place: bool) -> ferrier::Result<Self> {
        let mut arrays = match in_place {
            true => Arrays { input: plan.make_in_place()?, apart: None },
            false => {
                Arrays { input: plan.make_input()?, apart: Some([plan.make_output()?, plan.make_input()?]) }
            }
        };
        arrays.fill(noise);
        Ok(arrays)
    }

    fn fill(&mut self, noise: &Noise) {
        if self.input.is_real() {
            self.input.fill_real(|b, index| T::rounded(noise.at(b, index).re));
        } else {
            self.input.fill_complex(|b, index| rounded(noise.at(b, index)));
        }
    }

    /// In place, the input is gone after every transform.
    fn refill(&mut self, noise: &Noise) {
        if self.apart.is_none() {
            self.fill(noise);
        }
    }

    fn forward(&mut self, plan: &mut Plan<T>) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, _]) => plan.forward(&self.input, spectrum),
            None => plan.forward_in_place(&mut self.input),
        }
    }

    fn backward(&mut self, plan: &mut Plan<T>) -> ferrier::Result<()> {
        match &mut self.apart {
            Some([spectrum, back]) => plan.backward(&*spectrum, back),
            None => plan.backward_in_place(&mut self.input),
        }
    }

    fn spectrum(&self) -> &Array<T> {
        self.apart.as_ref().map_or(&self.input, |[spectrum, _]| spectrum)
    }

    fn back(&self) -> &Array<T> {
        self.apart.as_ref().map_or(&self.input, |[_, back]| back)
    }
}

/// A plan, its arrays, its times.
pub struct Contender<T: Real> {
    plan: Plan<T>,
    pub arrays: Arrays<T>,
    batch: usize,
    /// Does all of the input come back?
    whole: bool,
    /// Of every repetition.
    profiles: Vec<(Vec<StepTime>, Vec<Event>)>,
    timed: Timed,
}

impl<T: Real + Number + Into<f64>> Contender<T> {
    /// Takes memory. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(
        comm: &Comm,
        (draft, planning_ms): (Draft<T>, f64),
        noise: &Noise,
        (in_place, whole): (bool, bool),
    ) -> Outcome<Self> {
        let wisdom = draft.wisdom().cloned();
        let plan = draft.build()?;
        let arrays = session::agree(comm, Arrays::new(&plan, noise, in_place).map_err(Into::into))?;
        let recipe = plan.recipe();
        let timed = Timed {
            memory: comm.max(&[plan.memory().total() as f64])?[0] as u64,
            codec: recipe.codec().into(),
            exchange: recipe.exchange().into(),
            kernel: recipe.kernel().into(),
            overlap: recipe.overlap.clone(),
            wisdom,
            planning_ms,
            notes: plan.notes().to_vec(),
            // What was dropped does not come back.
            error_l2: if whole { 0.0 } else { f64::NAN },
            ..Timed::default()
        };
        let batch = recipe.batch;
        Ok(Contender { plan, arrays, batch, whole, profiles: Vec::new(), timed })
    }

    /// Runs both directions, untimed at first; `error` judges the spectrum.
    /// Seconds of a forward and a backward transform. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn warm_up(
        &mut self,
        comm: &Comm,
        noise: &Noise,
        error: impl FnOnce(&View<'_, T>) -> ferrier::Result<f64>,
    ) -> ferrier::Result<[f64; 2]> {
        let Contender { plan, arrays, timed: own, .. } = self;
        arrays.forward(plan)?;
        let order = plan.output_layout().order();
        let view = View::of_spectrum(arrays.spectrum(), plan.output_box(), order, self.batch);
        let view = View { rows: plan.recipe().long.map(|_| plan.recipe().shape[1]), ..view };
        own.error_forward = error(&view)?;
        own.wire = comm.sum(&[plan.wire_bytes() as f64])?[0] as u64;
        let there = plan.certificate().unwrap_or_default();
        arrays.backward(plan)?;
        let back = plan.certificate().unwrap_or_default();
        own.error_bound = there.bound();
        // What the spectrum has lost comes back, of a halved one up to twice its squares.
        let round = (std::f64::consts::SQRT_2 * there.bound() + back.bound()) * (1.0 + there.bound());
        own.bounds = (there.loss + back.loss > 0.0).then_some([there.bound(), round]);
        arrays.refill(noise);
        let once = timed(comm, || arrays.forward(plan))?;
        Ok([once, timed(comm, || arrays.backward(plan))?])
    }

    /// One timed repetition of both directions. Collective.
    ///
    /// # Errors
    /// Those of the library.
    pub fn repetition(&mut self, comm: &Comm, noise: &Noise, quick: bool) -> ferrier::Result<()> {
        let Contender { plan, arrays, timed: own, .. } = self;
        arrays.refill(noise);
        if quick {
            arrays.forward(plan)?;
            arrays.refill(noise);
        }
        own.forward.push(timed(comm, || arrays.forward(plan))?);
        self.profiles.push((plan.profile(), plan.events()));
        own.backward.push(timed(comm, || arrays.backward(plan))?);
        if !self.whole {
            return Ok(());
        }
        let (distance, norm) = View::of_input(arrays.back(), self.batch).distance(noise, comm.threads());
        let sums = comm.sum(&[distance, norm])?;
        let error = (sums[0] / sums[1]).sqrt();
        // Not `max`, which would lose a NaN.
        if error.is_nan() || error > own.error_l2 {
            own.error_l2 = error;
        }
        Ok(())
    }

    /// What came out. Collective.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn end(mut self, comm: &Comm) -> Outcome<Timed> {
        let seconds = &self.timed.forward;
        let typical = median(seconds);
        let distance = |at: &usize| (seconds[*at] - typical).abs();
        let nearest = (0..seconds.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest else { return Ok(self.timed) };
        let (steps, events) = &self.profiles[nearest];
        self.timed.typical_ms = seconds[nearest] * 1e3;
        self.timed.steps = joined(comm, steps)?;
        let own = serde_json::to_vec(events).map_err(Failure::new)?;
        let all = comm.all_gather(&own)?;
        if comm.rank() == 0 {
            let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).map_err(Failure::new);
            self.timed.events = all.iter().map(read).collect::<Outcome<_>>()?;
        }
        Ok(self.timed)
    }
}

/// A profile over all ranks. Collective.
///
/// # Errors
/// Where a rank has failed or left.
pub fn joined(comm: &Comm, own: &[StepTime]) -> ferrier::Result<Vec<StepTime>> {
    let ms = comm.max(&own.iter().map(|step| step.ms).collect::<Vec<_>>())?;
    let bytes = comm.sum(&own.iter().map(|step| step.bytes as f64).collect::<Vec<_>>())?;
    let flops = comm.sum(&own.iter().map(|step| step.flops).collect::<Vec<_>>())?;
    let joined = own.iter().zip(ms.iter().zip(bytes.iter().zip(&flops)));
    Ok(joined
        .map(|(step, (&ms, (&bytes, &flops)))| StepTime {
            name: step.name.clone(),
            ms,
            bytes: bytes as u64,
            flops,
        })
        .collect())
}
