//! The plans that a contest compares, and the timed part of it.

use std::time::{Duration, Instant};

use ferrier::{Array, Choice, Comm, Overlap, Real, Tiling};

use super::candidate::Candidate;
use super::options::ContestOptions;
use super::peer_timer::PeerTimer;
use super::results::{ContestResult, VariantTuning};
use super::timed_blocks::{blocks, wait_until_idle};
use super::variants::{self, VariantEntry};
use crate::agree::{RankGroup, agree, check_memory, draft, local_volumes};
use crate::failure::Outcome;
use crate::in_precision;
use crate::noise::Noise;
use crate::reference::{Reference, ReferenceProblem, References, relative_error};
use crate::scalars::rounded;
use crate::tiling::{tuned_tiles, with_messages};
use crate::view::View;

/// A transform that takes less is run once untimed before each timing, so that caches and
/// sleeping threads are in the same state for Ferrier and its peers.
const QUICK: f64 = 0.02;
/// About the time of all timed repetitions of a plan.
const WANTED_SECONDS: f64 = 1.0;

/// The plans that a contest compares.
pub enum Comparison {
    /// One plan.
    One(Choice),
    /// One plan whose tiles are tuned in the first runs.
    Tuned(Choice),
    /// Several plans in turn; those that cannot run are left out, with a note.
    Several(Vec<Choice>),
    /// Several tilings, one after the other.
    Sweep(Choice, Vec<Tiling>, Vec<Overlap>),
    /// Variants of overlap in turn, tuned within a time.
    Variants(Choice, Vec<&'static VariantEntry>, Duration),
}

impl Comparison {
    /// Runs the contest. Collective.
    ///
    /// # Errors
    /// Those of the library; a missing peer.
    pub fn run(&self, comm: &Comm, options: &ContestOptions<'_>) -> Outcome<ContestResult> {
        in_precision!(options.peer_problem.precision, T => self.run_as::<T>(comm, options))
    }

    fn run_as<T: Real>(&self, comm: &Comm, options: &ContestOptions<'_>) -> Outcome<ContestResult> {
        match self {
            Comparison::One(choice) => measure::<T>(comm, options, std::slice::from_ref(choice)),
            Comparison::Tuned(given) => {
                options.say(comm, "tuning tiles".into());
                let (choice, seconds) = tuned_tiles::<T>(comm, &options.problem, given)?;
                let tunings = vec![VariantTuning { seconds, trials: 0 }];
                Ok(ContestResult { tunings, ..measure::<T>(comm, options, &[choice])? })
            }
            Comparison::Several(choices) => {
                let reasons = infeasible::<T>(comm, options, choices)?;
                let able = choices.iter().zip(&reasons).filter(|(_, reason)| reason.is_none());
                let able: Vec<Choice> = able.map(|(choice, _)| choice.clone()).collect();
                Ok(ContestResult { infeasible: reasons, ..measure::<T>(comm, options, &able)? })
            }
            Comparison::Variants(given, entries, budget) => {
                let (choices, tunings) = variants::choices::<T>(comm, options, given, entries, *budget)?;
                Ok(ContestResult { tunings, ..measure::<T>(comm, options, &choices)? })
            }
            Comparison::Sweep(given, _, overlaps) => {
                let mut all = ContestResult::default();
                for overlap in overlaps {
                    let choice = given.clone().overlap(overlap.clone());
                    let mut one = measure::<T>(comm, options, &[choice])?;
                    one.candidates.splice(0..0, all.candidates);
                    all = one;
                }
                Ok(all)
            }
        }
    }
}

/// Plans, warms up and times all choices in turn. Collective.
fn measure<T: Real>(comm: &Comm, options: &ContestOptions<'_>, choices: &[Choice]) -> Outcome<ContestResult> {
    let peer_problem = &options.peer_problem;
    // One long axis is a matrix for Ferrier and one axis for peers: the same values in the same order.
    let noise = Noise::new(options.problem.lengths(), 1);
    let mut candidates = candidates::<T>(comm, options, choices, &noise)?;
    let Some(first) = candidates.first() else { return Ok(ContestResult::default()) };
    let references = references(comm, options, &first.arrays.input)?;
    options.say(comm, "warming up".into());
    let (mut once, mut pair) = (f64::INFINITY, 0.0_f64);
    for candidate in &mut candidates {
        let error = |view: &View<'_, T>| forward_error(comm, &references, &options.problem, view);
        let [forward, backward] = candidate.warm_up(comm, &noise, error)?;
        (once, pair) = (once.min(forward), pair.max(forward + backward));
    }
    let mut peers = Vec::new();
    for entry in &options.peers {
        options.say(comm, format!("planning {}", entry.name));
        let line = Noise::new(peer_problem.shape, 1);
        let launch = options.launch.as_ref();
        let plan = || entry.load::<T>(peer_problem, launch, |b, index| rounded(line.at(b, index)));
        let start = Instant::now();
        // Other peers run on rank 0 alone.
        let planned = match entry.is_distributed() {
            true => Some((agree(comm, plan())?, Some(comm))),
            false if comm.rank() == 0 => Some((plan()?, None)),
            false => None,
        };
        let planning_ms = start.elapsed().as_secs_f64() * 1e3;
        let timer = planned.map(|(peer, ranks)| {
            PeerTimer::new::<T>(entry.name, (peer, planning_ms), ranks, peer_problem, &references)
        });
        peers.push(timer.transpose()?);
    }
    comm.barrier()?;

    let repeat = options.repeat.unwrap_or_else(|| {
        (WANTED_SECONDS / pair).ceil().clamp(5.0, if options.peers.is_empty() { 500.0 } else { 100.0 })
            as usize
    });
    let quick = once < QUICK;
    let contestants = candidates.len() + peers.len();
    let blocks = blocks(contestants, repeat);
    for (number, block) in blocks.iter().enumerate() {
        options.say(comm, format!("block {} of {}", number + 1, blocks.len()));
        if contestants > 1 && comm.rank() == 0 {
            wait_until_idle();
        }
        comm.barrier()?;
        if let Some(candidate) = candidates.get_mut(block.contestant) {
            (0..block.repetitions).try_for_each(|_| candidate.repetition(comm, &noise, quick))?;
        } else if let Some(timer) = &mut peers[block.contestant - candidates.len()] {
            timer.block::<T>(peer_problem, block.repetitions, quick)?;
        }
    }
    Ok(ContestResult {
        candidates: candidates.into_iter().map(|candidate| candidate.finish(comm)).collect::<Outcome<_>>()?,
        infeasible: Vec::new(),
        tunings: Vec::new(),
        group: RankGroup::new(comm),
        peers: peers.into_iter().flatten().map(PeerTimer::faster).collect(),
        copy_ms: None,
        gpu: None,
    })
}

/// For each choice the reason why there is no plan of it. The same on every rank. Collective.
fn infeasible<T: Real>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    choices: &[Choice],
) -> Outcome<Vec<Option<String>>> {
    let reason = |choice: &Choice| {
        let drafted =
            with_messages(comm, choice).and_then(|choice| draft::<T>(comm, &options.problem, choice));
        match drafted {
            Ok(_) => Ok(None),
            Err(failure) if failure.is_communication() => Err(failure),
            Err(failure) => Ok(Some(failure.message)),
        }
    };
    choices.iter().map(reason).collect()
}

/// Plans and arrays for all choices. Collective.
fn candidates<T: Real>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    choices: &[Choice],
    noise: &Noise,
) -> Outcome<Vec<Candidate<T>>> {
    options.say(comm, "planning".into());
    let peer_problem = &options.peer_problem;
    let mut list = Vec::new();
    for choice in choices {
        let choice = with_messages(comm, choice)?;
        let start = Instant::now();
        let draft = draft::<T>(comm, &options.problem, choice)?;
        let planning_ms = start.elapsed().as_secs_f64() * 1e3;
        let volumes = local_volumes(comm, draft.recipe());
        let width = |real: bool| if real { 1 } else { 2 };
        let bytes = [
            volumes[0] * width(options.problem.is_real()),
            volumes[1] * width(options.problem.has_real_spectrum()),
        ]
        .map(|n| n * peer_problem.batch * size_of::<T>());
        // Ferrier's arrays: input, spectrum, result, or one for all. A peer's: input, spectrum, in place.
        let ours = if options.in_place { bytes[0].max(bytes[1]) } else { 2 * bytes[0] + bytes[1] };
        let theirs = options.peers.len() * (bytes[0] + 2 * bytes[1]);
        check_memory(comm, choices.len() * (draft.memory().total() + ours) + theirs)?;
        list.push(Candidate::new(comm, (draft, planning_ms), noise, options)?);
    }
    Ok(list)
}

/// The exact spectrum of the first and the last array of the batch, at some frequencies. Collective.
///
/// # Errors
/// A rank failed or left.
pub fn references<T: Real>(
    comm: &Comm,
    options: &ContestOptions<'_>,
    input: &Array<T>,
) -> ferrier::Result<Vec<(usize, Reference)>> {
    let peer_problem = &options.peer_problem;
    let view = View::of_input(input, peer_problem.batch);
    let lengths = options.problem.lengths();
    let (wanted, view) = match lengths == peer_problem.shape {
        true => (ReferenceProblem::of(&options.problem), view),
        false => (
            ReferenceProblem::fourier(peer_problem.shape, peer_problem.spectrum(), &peer_problem.axes),
            view.as_line(lengths[2]),
        ),
    };
    let mut arrays = vec![0, peer_problem.batch - 1];
    arrays.dedup();
    arrays.into_iter().map(|b| Ok((b, Reference::new(comm, &wanted, &view.of_batch(b))?))).collect()
}

fn forward_error<T: Real>(
    comm: &Comm,
    references: &References,
    problem: &ferrier::Problem,
    spectrum: &View<'_, T>,
) -> ferrier::Result<f64> {
    let columns = problem.columns();
    // A sphere drops the modes in the corners of its bounding box.
    let kept = |index: [usize; 3]| match columns.is_empty() {
        true => Some(index),
        false => {
            let column = columns.iter().position(|column| *column == [index[1], index[2]])?;
            Some([index[0], column, 0]).filter(|_| problem.is_inside(index))
        }
    };
    relative_error(Some(comm), references, |b, index| spectrum.at(b, kept(index)?))
}
