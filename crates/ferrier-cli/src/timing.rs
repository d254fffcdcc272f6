//! The timed part of `ferrier bench`: what every rank does.

use std::time::{Duration, Instant};

use ferrier::{Array, Comm, Plan, Planner, Problem, Real, StepTime};
use indicatif::ProgressBar;

use crate::failure::Outcome;
use crate::noise::Noise;
use crate::parts::Number;
use crate::peers::{Member, Peer, Task};
use crate::reference::{Reference, Wanted};
use crate::session::{self, launched::Launched};
use crate::setup;
use crate::view::{View, rounded};

/// A transform below this is run once untimed before each time it is timed,
/// so that caches and sleeping threads are in the same state for everybody.
const QUICK: f64 = 0.02;
/// Time for threads that still spin to go to sleep before another's turn.
const SETTLE: Duration = Duration::from_millis(2);
/// What all timed repetitions should take, about.
const WANTED_SECONDS: f64 = 1.0;

/// What is to be timed.
pub struct Work<'a> {
    /// The transform.
    pub problem: Problem,
    /// What the planner is told.
    pub choice: ferrier::Choice,
    /// How many ranks take part.
    pub ranks: usize,
    /// The transform again, as peers are told.
    pub task: Task,
    /// Repetitions, where the user said how many.
    pub repeat: Option<usize>,
    /// One array instead of three.
    pub in_place: bool,
    /// Who else is timed.
    pub peers: Vec<&'static Member>,
    /// The launch that peers of several processes run on.
    pub launched: Option<&'a Launched>,
    /// Says what is going on, on a terminal.
    pub bar: &'a ProgressBar,
}

/// What came out. The same on every rank, but for `peers` (rank 0 only).
#[derive(Default)]
pub struct Measured {
    /// Seconds of each forward transform, the slowest rank's.
    pub forward: Vec<f64>,
    /// Seconds of each backward transform.
    pub backward: Vec<f64>,
    /// The steps of the forward transform nearest to the median: time of the
    /// slowest rank, bytes of all ranks.
    pub steps: Vec<StepTime>,
    /// Largest relative error of a round trip.
    pub error_l2: f64,
    /// Relative error of the spectrum.
    pub error_forward: f64,
    /// Of the rank that needs most.
    pub memory: u64,
    /// Bytes that ranks take from others in one forward transform.
    pub wire: u64,
    /// How ranks exchanged data, as the planner chose.
    pub exchange: String,
    /// What transformed the lines.
    pub kernel: String,
    /// How many nodes the ranks are on.
    pub nodes: usize,
    /// What a user should know about the plan.
    pub notes: Vec<String>,
    /// Threads of each rank.
    pub threads: usize,
    /// `threads` or `mpi`.
    pub transport: String,
    /// The peers, in the order in which they were asked for (on rank 0).
    pub peers: Vec<PeerMeasured>,
}

/// What came out for a peer: its better way.
pub struct PeerMeasured {
    /// Its name and version.
    pub name: &'static str,
    /// As the library tells it.
    pub version: String,
    /// In place or out of place.
    pub way: &'static str,
    /// Seconds of each transform.
    pub seconds: Vec<f64>,
    /// Relative error of its spectrum, measured as ours.
    pub error: f64,
}

/// The arrays of a rank: one, or three where the transform is not in place.
struct Arrays<T: Real> {
    input: Array<T>,
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

/// What a rank does, from plan to last repetition. Collective.
///
/// # Errors
/// Those of the library, and a peer that is not there.
pub fn measure<T: Real + Number + Into<f64>>(comm: &Comm, work: &Work<'_>) -> Outcome<Measured> {
    let task = &work.task;
    let say = |message: String| {
        if comm.rank() == 0 {
            work.bar.set_message(message);
        }
    };
    say("planning".into());
    let draft = Planner::new(&work.problem).choice(work.choice.clone()).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let boxes =
        [&draft.recipe().input, &draft.recipe().output].map(|layout| layout.boxes()[comm.rank()].volume());
    let numbers =
        [boxes[0] * if task.real { 1 } else { 2 }, boxes[1] * 2].map(|n| n * task.batch * size_of::<T>());
    // Ours: input, spectrum, what comes back, or one for all. A peer's: input, spectrum, in place.
    let ours = if work.in_place { numbers[1] } else { 2 * numbers[0] + numbers[1] };
    let theirs = work.peers.len() * (numbers[0] + 2 * numbers[1]);
    setup::check_room(comm, draft.memory().total() + ours + theirs)?;
    let mut plan = draft.build()?;
    let noise = Noise::new(task.shape, 1);
    let arrays = Arrays::new(&plan, &noise, work.in_place);
    let mut arrays = session::agree(comm, arrays.map_err(Into::into))?;
    let references = references(comm, work, &arrays.input)?;

    say("warming up".into());
    arrays.forward(&mut plan)?;
    let spectrum =
        View::of_spectrum(arrays.spectrum(), plan.output_box(), plan.output_layout().order(), task.batch);
    let error_forward = forward_error(comm, &references, &spectrum)?;
    arrays.backward(&mut plan)?;
    arrays.refill(&noise);
    let once = timed(comm, || arrays.forward(&mut plan))?;
    let pair = once + timed(comm, || arrays.backward(&mut plan))?;

    let mut peers = Vec::new();
    for member in &work.peers {
        say(format!("planning {}", member.name));
        let plan = || Peer::new::<T>(member, task, work.launched, |b, index| rounded(noise.at(b, index)));
        if member.is_together() {
            peers.push(Turns::new::<T>(session::agree(comm, plan())?, Some(comm), task, &references)?);
        } else if comm.rank() == 0 {
            peers.push(Turns::new::<T>(plan()?, None, task, &references)?);
        }
    }
    comm.barrier()?;

    let mut measured = Measured {
        error_forward,
        memory: comm.max(&[plan.memory().total() as f64])?[0] as u64,
        wire: plan.recipe().wire_bytes(),
        exchange: plan.recipe().exchange().into(),
        kernel: plan.recipe().kernel().into(),
        nodes: comm.node_count(),
        notes: plan.notes().to_vec(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        ..Measured::default()
    };
    let repeat = work.repeat.unwrap_or_else(|| (WANTED_SECONDS / pair).ceil().clamp(5.0, 500.0) as usize);
    let quick = once < QUICK;
    let mut profiles = Vec::with_capacity(repeat);
    for turn in 0..repeat {
        say(format!("repetition {} of {repeat}", turn + 1));
        arrays.refill(&noise);
        if quick {
            arrays.forward(&mut plan)?;
            arrays.refill(&noise);
        }
        measured.forward.push(timed(comm, || arrays.forward(&mut plan))?);
        profiles.push(plan.profile());
        measured.backward.push(timed(comm, || arrays.backward(&mut plan))?);
        let view = View::of_input(arrays.back(), task.batch);
        let error = relative(comm, view.distance(&noise, comm.threads()))?;
        // Not `max`, which would lose a NaN.
        if error.is_nan() || error > measured.error_l2 {
            measured.error_l2 = error;
        }
        peers.iter_mut().try_for_each(|turns| turns.run::<T>(task, quick))?;
        if !work.peers.is_empty() {
            comm.barrier()?;
            std::thread::sleep(SETTLE);
        }
    }
    measured.steps = steps(comm, &measured.forward, &profiles)?;
    measured.peers = peers.into_iter().map(Turns::better).collect();
    Ok(measured)
}

/// Seconds that `work` takes on the slowest rank. Collective.
///
/// # Errors
/// Those of `work`.
pub fn timed(comm: &Comm, work: impl FnOnce() -> ferrier::Result<()>) -> ferrier::Result<f64> {
    comm.barrier()?;
    let start = Instant::now();
    work()?;
    Ok(comm.max(&[start.elapsed().as_secs_f64()])?[0])
}

/// The true spectrum of the first and the last array of the batch, at some frequencies.
fn references<T: Real + Number + Into<f64>>(
    comm: &Comm,
    work: &Work<'_>,
    input: &Array<T>,
) -> ferrier::Result<Vec<(usize, Reference)>> {
    let task = &work.task;
    let wanted = Wanted { shape: task.shape, spectrum: task.spectrum(), axes: &task.axes };
    let view = View::of_input(input, task.batch);
    let mut arrays = vec![0, task.batch - 1];
    arrays.dedup();
    arrays.into_iter().map(|b| Ok((b, Reference::new(comm, &wanted, &view.of_batch(b))?))).collect()
}

fn forward_error<T: Real + Number>(
    comm: &Comm,
    references: &[(usize, Reference)],
    spectrum: &View<'_, T>,
) -> ferrier::Result<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    for (b, reference) in references {
        let part = reference.distance(|index| spectrum.at(*b, index));
        distance += part.0;
        norm += part.1;
    }
    // Every rank has the whole norm but only its own part of the distance.
    Ok((comm.sum(&[distance])?[0] / norm).sqrt())
}

fn relative(comm: &Comm, (distance, norm): (f64, f64)) -> ferrier::Result<f64> {
    let sums = comm.sum(&[distance, norm])?;
    Ok((sums[0] / sums[1]).sqrt())
}

/// The profile of the run nearest to the median, over all ranks.
fn steps(comm: &Comm, seconds: &[f64], profiles: &[Vec<StepTime>]) -> ferrier::Result<Vec<StepTime>> {
    let typical = median(seconds);
    let distance = |at: &usize| (seconds[*at] - typical).abs();
    let Some(nearest) = (0..seconds.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))) else {
        return Ok(Vec::new());
    };
    let own = &profiles[nearest];
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

/// The middle one; of an even number, the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// A peer and its times so far, for each of its ways.
struct Turns<'a> {
    peer: Peer,
    /// The ranks that run it together, where one does not do so alone.
    comm: Option<&'a Comm>,
    seconds: Vec<Vec<f64>>,
    errors: Vec<f64>,
}

impl<'a> Turns<'a> {
    /// Runs each way once, to warm up and to see that it is the same transform.
    fn new<T: Real + Number>(
        mut peer: Peer,
        comm: Option<&'a Comm>,
        task: &Task,
        references: &[(usize, Reference)],
    ) -> ferrier::Result<Self> {
        let ways = peer.variants();
        let mut errors = Vec::new();
        for way in 0..ways {
            peer.prepare::<T>(way, task);
            peer.run(way);
            let (mut distance, mut norm) = (0.0, 0.0);
            for (b, reference) in references {
                let part = reference.distance(|index| {
                    let value = peer.result::<T>(way, *b, index)?;
                    Some(num_complex::Complex::new(value.re.widened(), value.im.widened()))
                });
                distance += part.0;
                norm += part.1;
            }
            // As with ours: each has the whole norm, and its part of the distance.
            let distance = match comm {
                Some(comm) => comm.sum(&[distance])?[0],
                None => distance,
            };
            errors.push((distance / norm).sqrt());
        }
        Ok(Turns { peer, comm, seconds: vec![Vec::new(); ways], errors })
    }

    fn run<T: Number>(&mut self, task: &Task, quick: bool) -> ferrier::Result<()> {
        for way in 0..self.peer.variants() {
            self.peer.prepare::<T>(way, task);
            std::thread::sleep(SETTLE);
            if quick {
                self.peer.run(way);
                self.peer.prepare::<T>(way, task);
            }
            let seconds = match self.comm {
                Some(comm) => timed(comm, || {
                    self.peer.run(way);
                    Ok(())
                })?,
                None => {
                    let start = Instant::now();
                    self.peer.run(way);
                    start.elapsed().as_secs_f64()
                }
            };
            self.seconds[way].push(seconds);
        }
        Ok(())
    }

    /// The way with the lower median.
    fn better(self) -> PeerMeasured {
        let best = (0..self.seconds.len())
            .min_by(|&a, &b| median(&self.seconds[a]).total_cmp(&median(&self.seconds[b])))
            .unwrap_or(0);
        PeerMeasured {
            name: self.peer.name,
            way: self.peer.variant_name(best),
            seconds: self.seconds[best].clone(),
            error: self.errors.iter().copied().fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a }),
            version: self.peer.version,
        }
    }
}
