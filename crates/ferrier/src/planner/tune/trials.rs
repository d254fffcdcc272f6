//! Trials on real ranks: rank 0 searches, every rank runs what it orders.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::context::TuneContext;
use super::cost_model::CostModel;
use super::options::{Options, Outcome, find};
use super::tunables::ChoiceSpace;
use crate::exec::{Array, DataMut, Modes, Operator, Workspace};
use crate::planner::draft::Draft;
use crate::{Choice, Comm, Error, Plan, Problem, Real, Result, Scale, design};
use ferrier_search::{
    Comparison, CoordinateDescent, Evaluator, Limits, Method, Point, Progress, SearchResult, Session, median,
};

/// A run shorter than this is repeated and the mean is taken: clocks and
/// barriers have a grain.
const SHORT: f64 = 2e-3;
/// What is kept of time and trials to tell reshapes apart.
const FINE: f64 = 0.25;
/// The most repetitions of a short run.
const REPEATS: f64 = 200.0;

/// What rank 0 tells the others to do.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Run a choice.
    Alone { choice: Box<Choice>, runs: usize },
    /// Run two in turn.
    Compare { incumbent: Box<Choice>, other: Box<Choice>, comparison: Comparison },
    /// It is over.
    Done(Box<Outcome>),
}

/// Tries choices for a problem and returns the fastest; what `given` decides
/// stays. `watch` is told of each trial, on rank 0. Collective: all ranks run
/// the trials that rank 0 orders, on arrays of their own, and all return the
/// same. Allocates about what two plans and their arrays take.
///
/// # Errors
/// Whatever is wrong with the problem or the choice; memory that cannot be had.
pub fn tune<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    options: &Options,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome> {
    let method = find(&options.method)?;
    let problem = &crate::planner::agree::<T>(comm, "cpu", problem.clone(), given, crate::Effort::Estimate)?;
    // On every rank: whatever is wrong is then wrong everywhere, and nobody waits for orders.
    let default = design(problem, given, T::PRECISION, comm.size())?;
    let mut lab = Lab::<T>::new(comm, problem);
    if comm.rank() != 0 {
        return lab.obey();
    }
    let model =
        CostModel { context: TuneContext::new(comm, problem, given), precision: T::PRECISION, default };
    let outcome = lead(&mut lab, &model, given, options, method, watch)?;
    lab.send(&Order::Done(Box::new(outcome.clone())))?;
    Ok(outcome)
}

/// Rank 0's part.
fn lead<T: Real>(
    lab: &mut Lab<T>,
    model: &CostModel<'_>,
    given: &Choice,
    options: &Options,
    method: &Method,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome> {
    let choices = ChoiceSpace::new(&model.context, given, &options.only);
    let search = method.searcher(options.seed);
    let tiles = choices.space().parameters().iter().any(|parameter| parameter.name() == "tile");
    let two_stages = tiles && method.refines && model.default.reshapes() > 0;
    let mut bench = Leader { lab, choices: &choices, model, two_stages };
    let mut found = Session::new(choices.space(), &mut bench, options.limits, watch).run(&*search)?;
    let mut choice = choices.choice(&found.point);
    if two_stages && model.is_tiled(&choice) {
        choice = refine(lab, model, choice, options, &mut found, watch)?;
    }
    let mut rivals = Vec::new();
    for rival in &options.rivals {
        rivals.push(match model.identity(rival) {
            Ok(_) => {
                let comparison = Comparison { rounds: 9, more: 0, patience: None };
                let (incumbent, other) = (Box::new(choice.clone()), Box::new(rival.clone()));
                let times = lab.order(Order::Compare { incumbent, other, comparison })?;
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
        rivals,
    })
}

/// Looks around a choice with tiles, with what is left of time and trials:
/// each reshape and each direction may want its own.
fn refine<T: Real>(
    lab: &mut Lab<T>,
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
    // One trial is the start itself.
    if limits.trials < 3 || limits.seconds < 20.0 * found.best_seconds {
        return Ok(start);
    }
    let choices = ChoiceSpace::per_reshape(&model.context, &start, model.default.reshapes());
    let mut bench = Leader { lab, choices: &choices, model, two_stages: false };
    let (trials, seconds) = (found.measured, found.seconds);
    let mut further = |progress: &Progress<'_>| {
        let (trials, seconds) = (trials + progress.trials, seconds + progress.seconds);
        watch(&Progress { trials, seconds, ..*progress });
    };
    let finer = Session::new(choices.space(), &mut bench, limits, &mut further).run(&CoordinateDescent)?;
    found.best_seconds *= finer.best_seconds / finer.default_seconds;
    found.measured += finer.measured;
    found.seconds += finer.seconds;
    found.trials.extend(finer.trials.into_iter().skip(1));
    Ok(choices.choice(&finer.point))
}

/// The bench of a session: its trials are orders to all ranks.
struct Leader<'a, T: Real> {
    lab: &'a mut Lab<T>,
    choices: &'a ChoiceSpace,
    model: &'a CostModel<'a>,
    /// Are reshapes told apart afterwards, where there are tiles?
    two_stages: bool,
}

impl<T: Real> Evaluator for Leader<'_, T> {
    type Error = Error;

    fn measure(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>> {
        let choice = Box::new(self.choices.choice(point));
        let [times, _] = self.lab.order(Order::Alone { choice, runs })?;
        Ok(times)
    }

    fn compare(
        &mut self,
        incumbent: &Point,
        other: &Point,
        comparison: &Comparison,
    ) -> Result<[Vec<f64>; 2]> {
        let [incumbent, other] = [incumbent, other].map(|point| Box::new(self.choices.choice(point)));
        self.lab.order(Order::Compare { incumbent, other, comparison: *comparison })
    }

    fn reserve(&self, best: &Point) -> f64 {
        let refined = self.two_stages && self.model.is_tiled(&self.choices.choice(best));
        if refined { FINE } else { 0.0 }
    }

    fn identity(&self, point: &Point) -> std::result::Result<String, String> {
        self.model.identity(&self.choices.choice(point))
    }

    fn predict(&self, point: &Point) -> f64 {
        self.model.predict(&self.choices.choice(point))
    }
}

/// Where a rank runs trials.
struct Lab<T: Real> {
    comm: Comm,
    problem: Problem,
    /// Arrays and a workspace that all plans can use. Elsewhere than among
    /// threads a plan may want memory of its own making.
    common: Option<Common<T>>,
    /// Who ran last, ready to run again: the best so far is in every comparison.
    kept: Vec<Entry<T>>,
}

struct Common<T: Real> {
    arrays: Option<[Array<T>; 2]>,
    work: Workspace<T>,
    bytes: usize,
}

/// A plan under trial, with arrays where it does not use those of all.
struct Contestant<T: Real> {
    plan: Plan<T>,
    arrays: Option<[Array<T>; 2]>,
    /// Seconds of its first transform, and how many make a run.
    first: f64,
    repeats: usize,
}

/// A contestant, and what it goes by.
type Entry<T> = (Choice, Contestant<T>);

impl<T: Real> Lab<T> {
    fn new(comm: &Comm, problem: &Problem) -> Self {
        // Values that grew or shrank from run to run would end as infinities or, worse, denormals.
        let problem = problem.clone().scale_forward(Scale::Unscaled).scale_backward(Scale::Full);
        let shared = comm.transport().exposes_all_memory();
        let work = Workspace::new(0).ok();
        let common = work.filter(|_| shared).map(|work| Common { arrays: None, work, bytes: 0 });
        Lab { comm: comm.clone(), problem, common, kept: Vec::new() }
    }

    fn send(&self, order: &Order) -> Result<()> {
        let text = serde_json::to_vec(order).map_err(Error::other)?;
        self.comm.all_gather(&text).map(drop)
    }

    fn order(&mut self, order: Order) -> Result<[Vec<f64>; 2]> {
        self.send(&order)?;
        self.follow(order)
    }

    /// What the other ranks do.
    fn obey(&mut self) -> Result<Outcome> {
        loop {
            let said = self.comm.all_gather(&[])?;
            match serde_json::from_slice(&said[0]).map_err(Error::other)? {
                Order::Done(outcome) => return Ok(*outcome),
                order => drop(self.follow(order)?),
            }
        }
    }

    /// Seconds of the slowest rank, for each choice; none of a choice that
    /// does not fit into memory. The same on every rank.
    fn follow(&mut self, order: Order) -> Result<[Vec<f64>; 2]> {
        match order {
            Order::Alone { choice, runs } => {
                let Some(mut one) = self.enter([*choice])? else { return Ok(Default::default()) };
                let times = (0..runs).map(|_| self.seconds(&mut one[0].1));
                let times = times.collect::<Result<Vec<f64>>>()?;
                self.kept.extend(one);
                Ok([times, Vec::new()])
            }
            Order::Compare { incumbent, other, comparison } => {
                let Some(mut both) = self.enter([*incumbent, *other])? else { return Ok(Default::default()) };
                let times = self.compare(&mut both, &comparison)?;
                self.kept.extend(both);
                Ok(times)
            }
            Order::Done(_) => Ok(Default::default()),
        }
    }

    fn compare(&mut self, both: &mut [Entry<T>; 2], comparison: &Comparison) -> Result<[Vec<f64>; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        while comparison.continues(&times) {
            // Who goes first may have an advantage.
            let round = times[0].len();
            for who in [round % 2, 1 - round % 2] {
                let contestant = &mut both[who].1;
                // The first transform is slower than the others, but not that much.
                let hopeless = |patience| contestant.first > 2.0 * patience * median(&times[0]);
                let time =
                    match comparison.patience.is_some_and(hopeless) && times[who].is_empty() && who == 1 {
                        true => contestant.first,
                        false => self.seconds(contestant)?,
                    };
                times[who].push(time);
                contestant.plan.park();
            }
        }
        Ok(times)
    }

    /// Plans for these choices, run once; those that ran last are there. `None`,
    /// on every rank, where one has no memory for one of them.
    fn enter<const N: usize>(&mut self, choices: [Choice; N]) -> Result<Option<[Entry<T>; N]>> {
        let mut known = std::mem::take(&mut self.kept);
        let found = choices.map(|choice| {
            let at = known.iter().position(|(other, _)| *other == choice);
            let there = at.map(|at| known.swap_remove(at).1);
            (choice, there)
        });
        // Their memory is free before others take theirs.
        drop(known);
        let mut ready = Vec::with_capacity(N);
        for (choice, there) in found {
            let contestant = match there {
                Some(there) => Some(there),
                None => self.contestant(&choice)?,
            };
            let Some(contestant) = contestant else {
                self.kept = ready;
                return Ok(None);
            };
            ready.push((choice, contestant));
        }
        Ok(ready.try_into().ok())
    }

    /// A plan for this choice; `None`, on every rank, where one has no memory for it.
    fn contestant(&mut self, choice: &Choice) -> Result<Option<Contestant<T>>> {
        let draft = Draft::<T>::on(&self.comm, &self.problem, choice.clone(), &())?;
        let Some(common) = &mut self.common else {
            let plan = draft.build()?;
            let arrays = Some(arrays(&plan)?);
            return self.warm(plan, arrays).map(Some);
        };
        let bytes = draft.memory().total();
        let mut fits = true;
        if bytes > common.bytes {
            match Workspace::new(bytes) {
                Ok(work) => (common.work, common.bytes) = (work, bytes),
                Err(_) => fits = false,
            }
        }
        if self.comm.max(&[f64::from(u8::from(!fits))])?[0] > 0.0 {
            return Ok(None);
        }
        let plan = draft.build_without_workspace()?;
        if common.arrays.is_none() {
            let made = arrays(&plan);
            common.arrays = Some(made.inspect_err(|error| self.comm.transport().fail(&error.to_string()))?);
        }
        self.warm(plan, None).map(Some)
    }

    fn warm(&mut self, plan: Plan<T>, arrays: Option<[Array<T>; 2]>) -> Result<Contestant<T>> {
        let mut contestant = Contestant { plan, arrays, first: 0.0, repeats: 1 };
        contestant.first = self.seconds(&mut contestant)?;
        contestant.repeats = (SHORT / contestant.first.max(1e-9)).clamp(1.0, REPEATS).ceil() as usize;
        contestant.plan.park();
        Ok(contestant)
    }

    /// Seconds of a transform: half of a forward and a backward one (of a trip
    /// there and back where operators are wanted), the mean of some, on the slowest rank.
    fn seconds(&mut self, contestant: &mut Contestant<T>) -> Result<f64> {
        let repeats = contestant.repeats;
        self.comm.barrier()?;
        let start = Instant::now();
        for _ in 0..repeats {
            match (&mut self.common, &mut contestant.arrays) {
                (_, Some([input, output])) if self.problem.operators => {
                    contestant.plan.call().operator(&Same).apply(input, output)?;
                }
                (Some(Common { arrays: Some([input, output]), work, .. }), None)
                    if self.problem.operators =>
                {
                    contestant.plan.call().workspace(work).operator(&Same).apply(input, output)?;
                }
                (_, Some([input, output])) => {
                    contestant.plan.forward(input, output)?;
                    contestant.plan.backward(output, input)?;
                }
                (Some(Common { arrays: Some([input, output]), work, .. }), None) => {
                    contestant.plan.call().workspace(work).forward(input, output)?;
                    contestant.plan.call().workspace(work).backward(output, input)?;
                }
                _ => return Err(Error::other("a trial without arrays")),
            }
        }
        let own = start.elapsed().as_secs_f64() / (2 * repeats) as f64;
        Ok(self.comm.max(&[own])?[0])
    }
}

/// The operator that does nothing.
struct Same;

impl<T: Real> Operator<T> for Same {
    fn apply(&self, _: &mut Modes<'_, T>) {}
}

/// Input and output of a plan, filled with something.
fn arrays<T: Real>(plan: &Plan<T>) -> Result<[Array<T>; 2]> {
    let mut input = plan.make_input()?;
    let mut state = 1u32;
    for number in input.numbers_mut() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *number = T::rounded(f64::from(state >> 8) / f64::from(1 << 23) - 1.0);
    }
    let output = if plan.recipe().operators { plan.make_input()? } else { plan.make_output()? };
    Ok([input, output])
}
