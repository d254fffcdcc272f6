//! The timed part of `ferrier bench`: what every rank does.

use std::time::Instant;

use ferrier::{Array, Choice, Comm, Planner, Problem, Real};
use indicatif::ProgressBar;

use crate::contender::{Contender, Timed};
use crate::failure::Outcome;
use crate::noise::Noise;
use crate::parts::Number;
use crate::peers::{Member, Peer, Task};
use crate::reference::{Reference, Wanted};
use crate::session::{self, launched::Launched};
use crate::setup;
use crate::turns::{PeerMeasured, SETTLE, Turns};
use crate::view::{View, rounded};

/// A transform below this is run once untimed before each time it is timed,
/// so that caches and sleeping threads are in the same state for everybody.
const QUICK: f64 = 0.02;
/// What all timed repetitions of a plan should take, about.
const WANTED_SECONDS: f64 = 1.0;

/// What is to be timed.
pub struct Work<'a> {
    /// The transform.
    pub problem: Problem,
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
    /// Does all of the input come back?
    pub whole: bool,
    /// Says what is going on, on a terminal.
    pub bar: &'a ProgressBar,
}

impl Work<'_> {
    /// Says what is going on, on rank 0.
    pub fn say(&self, comm: &Comm, message: String) {
        if comm.rank() == 0 {
            self.bar.set_message(message);
        }
    }
}

/// What came out. The same on every rank, but for `peers` (rank 0 only).
#[derive(Default)]
pub struct Measured {
    /// For each choice.
    pub timed: Vec<Timed>,
    /// How many nodes the ranks are on.
    pub nodes: usize,
    /// Threads of each rank.
    pub threads: usize,
    /// `threads` or `mpi`.
    pub transport: String,
    /// The peers, in the order in which they were asked for (on rank 0).
    pub peers: Vec<PeerMeasured>,
    /// The GPU that it ran on.
    pub gpu: Option<String>,
}

/// What a rank does, from plans to last repetition; all choices in turn. Collective.
///
/// # Errors
/// Those of the library, and a peer that is not there.
pub fn measure<T: Real + Number + Into<f64>>(
    comm: &Comm,
    work: &Work<'_>,
    choices: &[Choice],
) -> Outcome<Measured> {
    let task = &work.task;
    // One long axis is a matrix to us, and one axis to others: the same values in the same order.
    let noise = Noise::new(work.problem.lengths(), 1);
    let mut contenders = contenders::<T>(comm, work, choices, &noise)?;
    let Some(first) = contenders.first() else { return Ok(Measured::default()) };
    let references = references(comm, work, &first.arrays.input)?;
    work.say(comm, "warming up".into());
    let (mut once, mut pair) = (f64::INFINITY, 0.0_f64);
    for contender in &mut contenders {
        let error = |view: &View<'_, T>| forward_error(comm, &references, &work.problem, view);
        let [forward, backward] = contender.warm_up(comm, &noise, error)?;
        (once, pair) = (once.min(forward), pair.max(forward + backward));
    }
    let mut peers = Vec::new();
    for member in &work.peers {
        work.say(comm, format!("planning {}", member.name));
        let line = Noise::new(task.shape, 1);
        let plan = || Peer::new::<T>(member, task, work.launched, |b, index| rounded(line.at(b, index)));
        if member.is_together() {
            peers.push(Turns::new::<T>(session::agree(comm, plan())?, Some(comm), task, &references)?);
        } else if comm.rank() == 0 {
            peers.push(Turns::new::<T>(plan()?, None, task, &references)?);
        }
    }
    comm.barrier()?;

    let repeat = work.repeat.unwrap_or_else(|| {
        (WANTED_SECONDS / pair).ceil().clamp(5.0, if work.peers.is_empty() { 500.0 } else { 100.0 }) as usize
    });
    let quick = once < QUICK;
    for turn in 0..repeat {
        work.say(comm, format!("repetition {} of {repeat}", turn + 1));
        contenders.iter_mut().try_for_each(|contender| contender.repetition(comm, &noise, quick))?;
        peers.iter_mut().try_for_each(|turns| turns.run::<T>(task, quick))?;
        if !work.peers.is_empty() {
            comm.barrier()?;
            std::thread::sleep(SETTLE);
        }
    }
    Ok(Measured {
        timed: contenders.into_iter().map(|contender| contender.end(comm)).collect::<Outcome<_>>()?,
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name().into(),
        peers: peers.into_iter().map(Turns::better).collect(),
        gpu: None,
    })
}

/// Plans and arrays for all choices. Collective.
fn contenders<T: Real + Number + Into<f64>>(
    comm: &Comm,
    work: &Work<'_>,
    choices: &[Choice],
    noise: &Noise,
) -> Outcome<Vec<Contender<T>>> {
    work.say(comm, "planning".into());
    let task = &work.task;
    let mut list = Vec::new();
    for choice in choices {
        let choice = crate::overlap::with_messages(comm, choice)?;
        let start = Instant::now();
        let draft = Planner::new(&work.problem).choice(choice).draft::<T>(comm);
        let draft = session::agree(comm, draft.map_err(Into::into))?;
        let planning_ms = start.elapsed().as_secs_f64() * 1e3;
        let boxes = [&draft.recipe().input, &draft.recipe().output]
            .map(|layout| layout.boxes()[comm.rank()].volume());
        let width = |real: bool| if real { 1 } else { 2 };
        let numbers =
            [boxes[0] * width(work.problem.is_real()), boxes[1] * width(work.problem.has_real_spectrum())]
                .map(|n| n * task.batch * size_of::<T>());
        // Ours: input, spectrum, what comes back, or one for all. A peer's: input, spectrum, in place.
        let ours = if work.in_place { numbers[0].max(numbers[1]) } else { 2 * numbers[0] + numbers[1] };
        let theirs = work.peers.len() * (numbers[0] + 2 * numbers[1]);
        setup::check_room(comm, choices.len() * (draft.memory().total() + ours) + theirs)?;
        let how = (work.in_place, work.whole);
        list.push(Contender::new(comm, (draft, planning_ms), noise, how)?);
    }
    Ok(list)
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

/// The true spectrum of the first and the last array of the batch, at some frequencies. Collective.
///
/// # Errors
/// Where a rank has failed or left.
pub fn references<T: Real + Number + Into<f64>>(
    comm: &Comm,
    work: &Work<'_>,
    input: &Array<T>,
) -> ferrier::Result<Vec<(usize, Reference)>> {
    let task = &work.task;
    let view = View::of_input(input, task.batch);
    // A long axis lies in rows.
    let lengths = work.problem.lengths();
    let (wanted, view) = match lengths == task.shape {
        true => (Wanted::of(&work.problem), view),
        false => (Wanted::fourier(task.shape, task.spectrum(), &task.axes), view.in_line(lengths[2])),
    };
    let mut arrays = vec![0, task.batch - 1];
    arrays.dedup();
    arrays.into_iter().map(|b| Ok((b, Reference::new(comm, &wanted, &view.of_batch(b))?))).collect()
}

fn forward_error<T: Real + Number>(
    comm: &Comm,
    references: &[(usize, Reference)],
    problem: &ferrier::Problem,
    spectrum: &View<'_, T>,
) -> ferrier::Result<f64> {
    let (mut distance, mut norm) = (0.0, 0.0);
    let columns = problem.columns();
    // Modes in the corners of the box around a sphere are not kept: nobody has them.
    let inside = |index: [usize; 3]| match columns.is_empty() {
        true => Some(index),
        false => {
            let column = columns.iter().position(|column| *column == [index[1], index[2]])?;
            Some([index[0], column, 0]).filter(|_| problem.is_inside(index))
        }
    };
    for (b, reference) in references {
        let part = reference.distance(|index| spectrum.at(*b, inside(index)?));
        distance += part.0;
        norm += part.1;
    }
    // Every rank has the whole norm but only its own part of the distance.
    Ok((comm.sum(&[distance])?[0] / norm).sqrt())
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
