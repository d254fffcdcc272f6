//! Trials on real ranks: rank 0 searches, every rank runs what it orders.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::knobs::{Judge, Knobs, Site};
use super::nelder_mead::Nearby;
use super::session::{Bench, Findings, Limits, Progress, Session, median};
use super::space::Point;
use super::{Method, Options, Outcome};
use crate::plan::{Array, DataMut, Modes, Operator, Workspace};
use crate::{Choice, Comm, Error, Plan, Planner, Problem, Real, Result, Scale, design};

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
    /// Run a choice; stop after a run that takes longer than `limit` (none: never).
    Trial { choice: Box<Choice>, runs: usize, limit: Option<f64> },
    /// Run two in turn.
    Duel { one: Box<Choice>, other: Box<Choice>, rounds: usize },
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
    let method = options.check()?;
    let problem = &crate::plan::agree::<T>(comm, problem.clone(), given, super::Effort::Estimate)?;
    // On every rank: whatever is wrong is then wrong everywhere, and nobody waits for orders.
    let default = design(problem, given, T::PRECISION, comm.size())?;
    let mut lab = Lab::<T>::new(comm, problem);
    if comm.rank() != 0 {
        return lab.obey();
    }
    let judge = Judge { site: Site::new(comm, problem, given), precision: T::PRECISION, default };
    let outcome = lead(&mut lab, &judge, given, options, method, watch)?;
    lab.send(&Order::Done(Box::new(outcome.clone())))?;
    Ok(outcome)
}

/// Rank 0's part.
fn lead<T: Real>(
    lab: &mut Lab<T>,
    judge: &Judge<'_>,
    given: &Choice,
    options: &Options,
    method: &Method,
    watch: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome> {
    let knobs = Knobs::new(&judge.site, given, &options.only);
    let mut bench = Leader { lab, knobs: &knobs, judge };
    let search = method.searcher(options.seed);
    // Where there may be tiles, some is left to tell reshapes apart.
    let tiles = knobs.space().parameters().iter().any(|parameter| parameter.name() == "tile");
    let two_stages = tiles && method.refines && judge.default.reshapes() > 0;
    let limits = if two_stages { options.limits.part(1.0 - FINE) } else { options.limits };
    let mut found = Session::new(knobs.space(), &mut bench, limits, watch).run(&*search)?;
    let mut choice = knobs.choice(&found.point);
    if two_stages && judge.is_tiled(&choice) {
        choice = refine(lab, judge, choice, options, &mut found, watch)?;
    }
    let mut rivals = Vec::new();
    for rival in &options.rivals {
        rivals.push(match judge.identity(rival) {
            Ok(_) => {
                let order =
                    Order::Duel { one: Box::new(choice.clone()), other: Box::new(rival.clone()), rounds: 9 };
                let times = lab.order(order)?;
                Some([median(&times[0]) * 1e3, median(&times[1]) * 1e3])
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
    judge: &Judge<'_>,
    start: Choice,
    options: &Options,
    found: &mut Findings,
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
    let knobs = Knobs::fine(&judge.site, &start, judge.default.reshapes());
    let mut bench = Leader { lab, knobs: &knobs, judge };
    let (trials, seconds) = (found.measured, found.seconds);
    let mut further = |progress: &Progress<'_>| {
        let (trials, seconds) = (trials + progress.trials, seconds + progress.seconds);
        watch(&Progress { trials, seconds, ..*progress });
    };
    let finer = Session::new(knobs.space(), &mut bench, limits, &mut further).run(&Nearby)?;
    found.best_seconds *= finer.best_seconds / finer.default_seconds;
    found.measured += finer.measured;
    found.seconds += finer.seconds;
    found.trials.extend(finer.trials.into_iter().skip(1));
    Ok(knobs.choice(&finer.point))
}

/// The bench of a session: its trials are orders to all ranks.
struct Leader<'a, T: Real> {
    lab: &'a mut Lab<T>,
    knobs: &'a Knobs,
    judge: &'a Judge<'a>,
}

impl<T: Real> Bench for Leader<'_, T> {
    fn trial(&mut self, point: &Point, runs: usize, limit: f64) -> Result<Vec<f64>> {
        let limit = limit.is_finite().then_some(limit);
        let times =
            self.lab.order(Order::Trial { choice: Box::new(self.knobs.choice(point)), runs, limit })?;
        Ok(times.into_iter().next().unwrap_or_default())
    }

    fn duel(&mut self, one: &Point, other: &Point, rounds: usize) -> Result<[Vec<f64>; 2]> {
        let [one, other] = [one, other].map(|point| Box::new(self.knobs.choice(point)));
        let mut times = self.lab.order(Order::Duel { one, other, rounds })?.into_iter();
        Ok([times.next().unwrap_or_default(), times.next().unwrap_or_default()])
    }

    fn identity(&self, point: &Point) -> std::result::Result<String, String> {
        self.judge.identity(&self.knobs.choice(point))
    }

    fn predict(&self, point: &Point) -> f64 {
        self.judge.predict(&self.knobs.choice(point))
    }
}

/// Where a rank runs trials.
struct Lab<T: Real> {
    comm: Comm,
    problem: Problem,
    /// Arrays and a workspace that all plans can use. Elsewhere than among
    /// threads a plan may want memory of its own making.
    common: Option<Common<T>>,
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
}

impl<T: Real> Lab<T> {
    fn new(comm: &Comm, problem: &Problem) -> Self {
        // Values that grew or shrank from run to run would end as infinities or, worse, denormals.
        let problem = problem.clone().scale_forward(Scale::None).scale_backward(Scale::Full);
        let shared = comm.transport().lends_all();
        let work = Workspace::new(0).ok();
        let common = work.filter(|_| shared).map(|work| Common { arrays: None, work, bytes: 0 });
        Lab { comm: comm.clone(), problem, common }
    }

    fn send(&self, order: &Order) -> Result<()> {
        let text = serde_json::to_vec(order).map_err(Error::other)?;
        self.comm.all_gather(&text).map(drop)
    }

    fn order(&mut self, order: Order) -> Result<Vec<Vec<f64>>> {
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
    fn follow(&mut self, order: Order) -> Result<Vec<Vec<f64>>> {
        match order {
            Order::Trial { choice, runs, limit } => {
                let limit = limit.unwrap_or(f64::INFINITY);
                let Some(mut contestant) = self.contestant(&choice)? else { return Ok(vec![Vec::new()]) };
                let warm = self.seconds(&mut contestant, 1)?;
                let mut times = Vec::new();
                // The first run is slower than the others, but not that much.
                if warm > 2.0 * limit {
                    return Ok(vec![vec![warm]]);
                }
                let repeats = repeats(warm);
                while times.len() < runs && times.last().is_none_or(|&last| last <= limit) {
                    times.push(self.seconds(&mut contestant, repeats)?);
                }
                Ok(vec![times])
            }
            Order::Duel { one, other, rounds } => self.duel(&one, &other, rounds),
            Order::Done(_) => Ok(Vec::new()),
        }
    }

    fn duel(&mut self, one: &Choice, other: &Choice, rounds: usize) -> Result<Vec<Vec<f64>>> {
        let mut times = vec![Vec::new(), Vec::new()];
        let Some(one) = self.contestant(one)? else { return Ok(times) };
        let Some(other) = self.contestant(other)? else { return Ok(times) };
        let mut both = [one, other];
        let mut count = [1, 1];
        for (contestant, count) in both.iter_mut().zip(&mut count) {
            *count = repeats(self.seconds(contestant, 1)?);
        }
        for round in 0..rounds {
            // Who goes first may have an advantage.
            for who in [round % 2, 1 - round % 2] {
                times[who].push(self.seconds(&mut both[who], count[who])?);
            }
        }
        Ok(times)
    }

    /// A plan for this choice; `None`, on every rank, where one has no memory for it.
    fn contestant(&mut self, choice: &Choice) -> Result<Option<Contestant<T>>> {
        let planner = Planner::new(&self.problem).choice(choice.clone()).without_wisdom();
        let draft = planner.draft::<T>(&self.comm)?;
        let Some(common) = &mut self.common else {
            let plan = draft.build()?;
            let arrays = Some(arrays(&plan)?);
            return Ok(Some(Contestant { plan, arrays }));
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
        Ok(Some(Contestant { plan, arrays: None }))
    }

    /// Seconds of a transform: half of a forward and a backward one (of a trip
    /// there and back where operators are wanted), the mean of some, on the slowest rank.
    fn seconds(&mut self, contestant: &mut Contestant<T>, repeats: usize) -> Result<f64> {
        self.comm.barrier()?;
        let start = Instant::now();
        for _ in 0..repeats {
            match (&mut self.common, &mut contestant.arrays) {
                (_, Some([input, output])) if self.problem.operators => {
                    contestant.plan.apply(input, output, &Same)?;
                }
                (Some(Common { arrays: Some([input, output]), work, .. }), None)
                    if self.problem.operators =>
                {
                    contestant.plan.apply_using(input, output, &Same, work)?;
                }
                (_, Some([input, output])) => {
                    contestant.plan.forward(input, output)?;
                    contestant.plan.backward(output, input)?;
                }
                (Some(Common { arrays: Some([input, output]), work, .. }), None) => {
                    contestant.plan.forward_using(input, output, work)?;
                    contestant.plan.backward_using(output, input, work)?;
                }
                _ => return Err(Error::Other("a trial without arrays".into())),
            }
        }
        let own = start.elapsed().as_secs_f64() / (2 * repeats) as f64;
        Ok(self.comm.max(&[own])?[0])
    }
}

fn repeats(seconds: f64) -> usize {
    (SHORT / seconds.max(1e-9)).clamp(1.0, REPEATS).ceil() as usize
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
