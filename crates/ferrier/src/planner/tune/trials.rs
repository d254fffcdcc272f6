//! Trials: rank 0 searches, and all ranks run the choices that it names.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::context::{TuneContext, completed};
use super::cost_model::CostModel;
use super::names::TILE_TUNABLES;
use super::options::{Options, Outcome, find};
use super::tunables::ChoiceSpace;
use crate::exec::{Array, Cpu, DataMut, Modes, Operator, Workspace};
use crate::planner::agree::StartChoice;
use crate::planner::draft::Draft;
use crate::planner::measure_speeds;
use crate::planner::target::Target;
use crate::{Call, Choice, Comm, Error, EventKind, Plan, Problem, Real, Result, Scale, design};
use ferrier_search::{
    Comparison, CoordinateDescent, Evaluator, Limits, Method, Point, Progress, SearchResult, Session, median,
};

/// A shorter run is repeated and the mean is taken, since clocks and barriers have a limited resolution.
const SHORT: f64 = 2e-3;
/// The most repetitions of a short run.
const REPEATS: f64 = 200.0;
/// The part of time and trials that is reserved for the search over single reshapes.
const REFINE: f64 = 0.25;

/// What rank 0 sends to the other ranks.
#[derive(Debug, Serialize, Deserialize)]
enum Command {
    /// Run a choice.
    Run { choice: Box<Choice>, runs: usize },
    /// Run two choices in turn.
    Compare { choices: Box<[Choice; 2]>, comparison: Comparison },
    /// The search is over.
    Done(Box<Outcome>),
}

/// Runs choices for a problem and returns the fastest. Fields that `given` sets are not changed. `watch` is called
/// for each trial, on rank 0. Collective; the outcome is the same on every rank. Allocates about as much as two plans
/// and their arrays.
///
/// # Errors
/// Those of the problem and of the choice; [`Error::Memory`] if the default does not fit into memory.
pub fn tune<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    options: &Options,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome> {
    let method = find(&options.method)?;
    let problem = &crate::planner::agree::<T>(comm, "cpu", problem.clone(), given, crate::Effort::Estimate)?;
    // On every rank: an error then occurs on all, and no rank waits for commands.
    let default = design(problem, given, T::PRECISION, comm.size())?;
    // A small part of the search, but not more than a machine takes.
    let budget = (options.limits.seconds / 10.0).min(options.limits.trials as f64 / 50.0).min(1.0);
    let speeds = match problem.reproducible {
        true => None,
        false => Some(measure_speeds(comm, Duration::from_secs_f64(budget))?),
    };
    let decision = Cpu::decide::<T>(comm, problem, StartChoice::open(given.clone()))?;
    let start = completed(comm, given, [&Cpu::design::<T>(problem, &decision, comm)?.recipe, &default]);
    let mut trials = Trials::<T>::new(comm, problem, skips_passes(problem, given, options));
    if comm.rank() != 0 {
        return trials.run_commands();
    }
    let context = TuneContext::new(comm, problem, given, start, speeds.as_ref());
    let model = CostModel { context, precision: T::PRECISION, default };
    let outcome = search(&mut trials, &model, given, options, method, watch)?;
    let outcome = Outcome { speeds, ..outcome };
    trials.send(&Command::Done(Box::new(outcome.clone())))?;
    Ok(outcome)
}

/// Are passes that no searched parameter touches left out of trials? Their time, measured once, is added. Data are
/// zeros then, because what remains is no transform; codecs would notice.
fn skips_passes(problem: &Problem, given: &Choice, options: &Options) -> bool {
    let plain =
        given.codec.as_deref().is_none_or(|name| name == crate::codec::RAW) && problem.tolerance.is_none();
    let of_reshapes = &TILE_TUNABLES[..TILE_TUNABLES.len() - 1];
    let only = !options.only.is_empty() && options.only.iter().all(|name| of_reshapes.contains(name));
    only && plain && !problem.operators
}

/// The search of rank 0.
fn search<T: Real>(
    trials: &mut Trials<T>,
    model: &CostModel<'_>,
    given: &Choice,
    options: &Options,
    method: &Method,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome> {
    let choices = ChoiceSpace::new(&model.context, given, &options.only);
    let search = method.searcher(options.seed);
    let tiles = choices.space().parameters().iter().any(|parameter| parameter.name() == "tile");
    let two_stages = tiles && method.refines && options.refine && model.default.reshapes() > 0;
    let mut evaluator = TrialEvaluator { trials, choices: &choices, model, two_stages };
    let mut found = Session::new(choices.space(), &mut evaluator, options.limits, watch).run(&*search)?;
    let mut choice = choices.choice(&found.point);
    if two_stages && model.is_tiled(&choice) {
        choice = refine(trials, model, choice, options, &mut found, watch)?;
    }
    let mut rivals = Vec::new();
    for rival in &options.rivals {
        rivals.push(match model.identity(rival) {
            Ok(_) => {
                let comparison = Comparison { rounds: 9, more: 0, patience: None };
                let choices = Box::new([choice.clone(), rival.clone()]);
                let times = trials.measure(Command::Compare { choices, comparison })?;
                Some(times.each_ref().map(|times| median(times) * 1e3))
            }
            Err(_) => None,
        });
    }
    Ok(Outcome {
        choice,
        default_ms: found.default_seconds * 1e3,
        best_ms: found.best_seconds * 1e3,
        measured: found.measured,
        seconds: found.seconds,
        method: options.method.clone(),
        trials: found.trials,
        speeds: None,
        rivals,
    })
}

/// Searches the tilings of single reshapes and directions around a choice, within the remaining time and trials.
fn refine<T: Real>(
    trials: &mut Trials<T>,
    model: &CostModel<'_>,
    start: Choice,
    options: &Options,
    found: &mut SearchResult,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Choice> {
    let limits = Limits {
        seconds: options.limits.seconds - found.seconds,
        trials: options.limits.trials.saturating_sub(found.measured),
        ..options.limits
    };
    // The first trial is the start itself.
    if limits.trials < 3 || limits.seconds < 20.0 * found.best_seconds {
        return Ok(start);
    }
    let choices = ChoiceSpace::per_reshape(&model.context, &start, model.default.reshapes());
    let mut evaluator = TrialEvaluator { trials, choices: &choices, model, two_stages: false };
    let (trials, seconds) = (found.measured, found.seconds);
    let mut further = |progress: &Progress<'_>| {
        let (trials, seconds) = (trials + progress.trials, seconds + progress.seconds);
        watch(&Progress { trials, seconds, ..*progress });
    };
    let finer =
        Session::new(choices.space(), &mut evaluator, limits, &mut further).run(&CoordinateDescent)?;
    found.best_seconds *= finer.best_seconds / finer.default_seconds;
    found.measured += finer.measured;
    found.seconds += finer.seconds;
    found.trials.extend(finer.trials.into_iter().skip(1));
    Ok(choices.choice(&finer.point))
}

/// Runs the points of a session on all ranks.
struct TrialEvaluator<'a, T: Real> {
    trials: &'a mut Trials<T>,
    choices: &'a ChoiceSpace,
    model: &'a CostModel<'a>,
    /// Does [`refine`] follow if the best choice has tiles?
    two_stages: bool,
}

impl<T: Real> Evaluator for TrialEvaluator<'_, T> {
    type Error = Error;

    fn measure(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>> {
        let choice = Box::new(self.choices.choice(point));
        let [times, _] = self.trials.measure(Command::Run { choice, runs })?;
        Ok(times)
    }

    fn compare(&mut self, best: &Point, other: &Point, comparison: &Comparison) -> Result<[Vec<f64>; 2]> {
        let choices = Box::new([best, other].map(|point| self.choices.choice(point)));
        self.trials.measure(Command::Compare { choices, comparison: *comparison })
    }

    fn reserve(&self, best: &Point) -> f64 {
        let refined = self.two_stages && self.model.is_tiled(&self.choices.choice(best));
        if refined { REFINE } else { 0.0 }
    }

    fn identity(&self, point: &Point) -> std::result::Result<String, String> {
        self.model.identity(&self.choices.choice(point))
    }

    fn predict(&self, point: &Point) -> f64 {
        self.model.predict(&self.choices.choice(point))
    }
}

/// The plans that a rank measures.
struct Trials<T: Real> {
    comm: Comm,
    problem: Problem,
    /// `None` for transports that do not expose all memory: plans allocate what they expose.
    shared: Option<SharedMemory<T>>,
    /// Are passes left out that no reshape touches?
    skips: bool,
    /// Seconds of those of a plan, by their names.
    untouched: BTreeMap<String, f64>,
    /// The plans that ran last. The best choice so far is in every comparison, and is not planned again.
    candidates: Vec<Candidate<T>>,
}

/// Memory that all plans use.
struct SharedMemory<T: Real> {
    arrays: Option<[Array<T>; 2]>,
    work: Workspace<T>,
    bytes: usize,
}

/// A plan under trial.
struct Candidate<T: Real> {
    choice: Choice,
    plan: Plan<T>,
    /// `None` if it uses the shared memory.
    arrays: Option<[Array<T>; 2]>,
    /// Seconds of its first transform.
    first: f64,
    /// Transforms of a run.
    repeats: usize,
    /// Names of the passes that are left out.
    untouched: Option<String>,
}

impl<T: Real> Trials<T> {
    fn new(comm: &Comm, problem: &Problem, skips: bool) -> Self {
        // A round trip must not change the scale: repeated, the values would become infinite or denormal.
        let problem = problem.clone().scale_forward(Scale::Unscaled).scale_backward(Scale::Full);
        let work = Workspace::new(0).ok().filter(|_| comm.transport().exposes_all_memory());
        let shared = work.map(|work| SharedMemory { arrays: None, work, bytes: 0 });
        let (untouched, candidates) = (BTreeMap::new(), Vec::new());
        Trials { comm: comm.clone(), problem, shared, skips, untouched, candidates }
    }

    fn send(&self, command: &Command) -> Result<()> {
        let text = serde_json::to_vec(command).map_err(Error::other)?;
        self.comm.all_gather(&text).map(drop)
    }

    /// Sends a command and runs it, on rank 0.
    fn measure(&mut self, command: Command) -> Result<[Vec<f64>; 2]> {
        self.send(&command)?;
        self.run(command)
    }

    /// Runs the commands of rank 0 until the search is over.
    fn run_commands(&mut self) -> Result<Outcome> {
        loop {
            let all = self.comm.all_gather(&[])?;
            match serde_json::from_slice(&all[0]).map_err(Error::other)? {
                Command::Done(outcome) => return Ok(*outcome),
                command => drop(self.run(command)?),
            }
        }
    }

    /// Seconds on the slowest rank, for each choice; empty if one does not fit into memory. The same on every rank.
    fn run(&mut self, command: Command) -> Result<[Vec<f64>; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        match command {
            Command::Run { choice, runs } => {
                let Some([index]) = self.prepare([&*choice])? else { return Ok(times) };
                for _ in 0..runs {
                    times[0].push(self.seconds(index)?);
                }
            }
            Command::Compare { choices, comparison } => {
                let Some(indices) = self.prepare(choices.each_ref())? else { return Ok(times) };
                while comparison.continues(&times) {
                    // The first of a round may have an advantage, so the order alternates.
                    let round = times[0].len();
                    for side in [round % 2, 1 - round % 2] {
                        let first = self.candidates[indices[side]].first;
                        // The first transform is slower than the others, but by less than a factor of two.
                        let hopeless = |patience| first > 2.0 * patience * median(&times[0]);
                        let skip =
                            side == 1 && times[1].is_empty() && comparison.patience.is_some_and(hopeless);
                        let time = if skip { first } else { self.seconds(indices[side])? };
                        times[side].push(time);
                        self.candidates[indices[side]].plan.park();
                    }
                }
            }
            Command::Done(_) => {}
        }
        Ok(times)
    }

    /// Plans these choices, except those that ran last; returns their indices in `candidates`. `None`, on every rank,
    /// if one does not fit into the memory of a rank.
    fn prepare<const N: usize>(&mut self, choices: [&Choice; N]) -> Result<Option<[usize; N]>> {
        // Frees the memory of other plans first.
        self.candidates.retain(|candidate| choices.contains(&&candidate.choice));
        let mut indices = [0; N];
        for (index, choice) in indices.iter_mut().zip(choices) {
            let known = self.candidates.iter().position(|candidate| candidate.choice == *choice);
            *index = known.unwrap_or(self.candidates.len());
            if known.is_none() && !self.add(choice)? {
                return Ok(None);
            }
        }
        Ok(Some(indices))
    }

    /// Plans a choice and runs it once; false, on every rank, if it does not fit into the memory of a rank.
    fn add(&mut self, choice: &Choice) -> Result<bool> {
        let draft = Draft::<T>::on(&self.comm, &self.problem, choice.clone(), &())?;
        let (plan, arrays) = match &mut self.shared {
            None => {
                let plan = draft.build()?;
                let arrays = make_arrays(&plan, self.skips)?;
                (plan, Some(arrays))
            }
            Some(shared) => {
                let bytes = draft.memory().total();
                let mut fits = true;
                if bytes > shared.bytes {
                    match Workspace::new(bytes) {
                        Ok(work) => (shared.work, shared.bytes) = (work, bytes),
                        Err(_) => fits = false,
                    }
                }
                if self.comm.max(&[f64::from(u8::from(!fits))])?[0] > 0.0 {
                    return Ok(false);
                }
                let plan = draft.build_without_workspace()?;
                if shared.arrays.is_none() {
                    let fail = |error: &Error| self.comm.transport().fail(&error.to_string());
                    shared.arrays = Some(make_arrays(&plan, self.skips).inspect_err(fail)?);
                }
                (plan, None)
            }
        };
        let index = self.candidates.len();
        let (choice, untouched) = (choice.clone(), None);
        self.candidates.push(Candidate { choice, plan, arrays, first: 0.0, repeats: 1, untouched });
        let first = self.seconds(index)?;
        if self.skips {
            // The first transform is slower than the others.
            self.seconds(index)?;
            self.leave_out(index)?;
        }
        let candidate = &mut self.candidates[index];
        candidate.first = first;
        candidate.repeats = (SHORT / first.max(1e-9)).clamp(1.0, REPEATS).ceil() as usize;
        candidate.plan.park();
        Ok(true)
    }

    /// Lets a plan leave out the passes that no reshape touches, after a call that had them.
    fn leave_out(&mut self, index: usize) -> Result<()> {
        let Candidate { plan, untouched, .. } = &mut self.candidates[index];
        let passes = plan.events();
        let passes = || {
            passes
                .iter()
                .filter(|event| matches!(event.kind, EventKind::Transform | EventKind::Copy) && !event.wired)
        };
        let names = passes().map(|event| event.name.as_str()).collect::<Vec<_>>().join(", ");
        let own = passes().map(|event| event.ms() / 1e3).sum::<f64>();
        let seconds = self.comm.max(&[own])?[0];
        let least = self.untouched.entry(names.clone()).or_insert(seconds);
        *least = least.min(seconds);
        *untouched = Some(names);
        plan.skip_passes(true);
        Ok(())
    }

    /// Seconds of a transform on the slowest rank: half of a forward and a backward one, or of a round trip if the
    /// problem has operators; the mean of the transforms of a run.
    fn seconds(&mut self, index: usize) -> Result<f64> {
        let Candidate { plan, arrays, repeats, .. } = &mut self.candidates[index];
        let (arrays, mut work) = match (arrays, &mut self.shared) {
            (Some(arrays), _) => (arrays, None),
            (None, Some(SharedMemory { arrays: Some(arrays), work, .. })) => (arrays, Some(work)),
            _ => return Err(Error::other("a trial without arrays")),
        };
        let [input, output] = arrays;
        self.comm.barrier()?;
        let start = Instant::now();
        for _ in 0..*repeats {
            if self.problem.operators {
                call(plan, &mut work).operator(&Identity).apply(input, output)?;
            } else {
                call(plan, &mut work).forward(input, output)?;
                call(plan, &mut work).backward(output, input)?;
            }
        }
        let own = start.elapsed().as_secs_f64() / (2 * *repeats) as f64;
        let left_out = self.candidates[index].untouched.as_ref().and_then(|names| self.untouched.get(names));
        Ok(self.comm.max(&[own])?[0] + left_out.copied().unwrap_or(0.0))
    }
}

fn call<'a, T: Real>(plan: &'a mut Plan<T>, work: &'a mut Option<&mut Workspace<T>>) -> Call<'a, T> {
    match work {
        Some(work) => plan.call().workspace(work),
        None => plan.call(),
    }
}

/// The operator that changes nothing.
struct Identity;

impl<T: Real> Operator<T> for Identity {
    fn apply(&self, _: &mut Modes<'_, T>) {}
}

/// Arrays for the input and the output of a plan; the input has pseudo-random values, or zeros.
fn make_arrays<T: Real>(plan: &Plan<T>, zeros: bool) -> Result<[Array<T>; 2]> {
    let mut input = plan.make_input()?;
    let mut state = 1u32;
    for scalar in input.scalars_mut().iter_mut().take(if zeros { 0 } else { usize::MAX }) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *scalar = T::rounded(f64::from(state >> 8) / f64::from(1 << 23) - 1.0);
    }
    let output = if plan.recipe().operators { plan.make_input()? } else { plan.make_output()? };
    Ok([input, output])
}
