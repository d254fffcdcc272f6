//! A search under way: what was tried, what is believed, when to stop.

use std::collections::HashMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::search::{Ground, Search};
use crate::space::{Point, Space, Value};

/// A gain below this is not worth a second look.
const CLEAR: f64 = 0.99;
/// Who is slower by this in one round, or by half of it in the middle of two, will not win.
const SLOWER: f64 = 0.3;
/// Questions in a row that need no run before a search is seen to be at its end.
const IDLE: usize = 5000;

/// What runs trials.
pub trait Bench {
    /// Why nothing can be run any more.
    type Error;

    /// Seconds of each of `runs` runs at a point.
    ///
    /// # Errors
    /// Where nothing can be run any more.
    fn alone(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>, Self::Error>;

    /// Seconds of runs at two points in turn, for as long as `race` goes on;
    /// none where they cannot be run for want of memory.
    ///
    /// # Errors
    /// As [`alone`](Bench::alone).
    fn race(&mut self, champion: &Point, other: &Point, race: &Race) -> Result<[Vec<f64>; 2], Self::Error>;

    /// What part of all limits to leave for what comes after a search that
    /// ends at this point.
    fn reserve(&self, _best: &Point) -> f64 {
        0.0
    }

    /// What a point comes to, so that two that come to the same are run once;
    /// by default each is for itself.
    ///
    /// # Errors
    /// Why it is infeasible.
    fn identity(&self, point: &Point) -> Result<String, String> {
        Ok(format!("{point:?}"))
    }

    /// Seconds by a model; see [`Ground::predict`].
    fn predict(&self, _point: &Point) -> f64 {
        1.0
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seconds, the comparison of the winner with the default included.
    pub seconds: f64,
    /// Points that are run.
    pub trials: usize,
    /// Runs of each point, after one to warm up.
    pub runs: usize,
    /// A trial ends when it takes longer than this multiple of the best.
    pub patience: f64,
}

impl Limits {
    /// A part of the time and of the trials.
    fn part(&self, part: f64) -> Limits {
        let trials = match self.trials {
            usize::MAX => usize::MAX,
            trials => ((trials as f64 * part).round() as usize).max(1),
        };
        Limits { seconds: self.seconds * part, trials, ..*self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { seconds: f64::INFINITY, trials: usize::MAX, runs: 3, patience: 2.0 }
    }
}

/// Two points in turn: how long that goes on, and who wins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Race {
    /// Rounds, unless it is clear before who wins.
    pub rounds: usize,
    /// More of them, where the second point seems to be faster.
    pub more: usize,
    /// It ends when the second point takes this multiple of the first; `None`: it goes to its end.
    pub patience: Option<f64>,
}

impl Race {
    /// Is there another round after these? A function of times that are the
    /// same on every rank, so that all ranks race alike.
    pub fn goes_on(&self, times: &[Vec<f64>; 2]) -> bool {
        let (ratios, ratio) = (ratios(times), self.ratio(times));
        match (ratios.len(), self.patience) {
            (0, _) => true,
            (done, Some(patience)) if done < self.rounds => {
                // One round may be out by much, the median of two by less.
                ratio <= patience.min(1.0 + SLOWER / done as f64)
            }
            (done, _) => done < self.rounds || ratio < CLEAR && done < self.rounds + self.more,
        }
    }

    /// The second point's time over the first's.
    fn ratio(&self, times: &[Vec<f64>; 2]) -> f64 {
        median(&ratios(times))
    }

    /// The same, and what it means for the second point.
    fn verdict(&self, times: &[Vec<f64>; 2]) -> (f64, Verdict) {
        let (all, ratio) = (ratios(times), self.ratio(times));
        let confirmed = all.len() >= self.rounds + self.more && median(&all[self.rounds..]) < CLEAR;
        let verdict = match ratio {
            ratio if ratio < CLEAR && confirmed => Verdict::Improved,
            ratio if self.patience.is_some_and(|patience| ratio > patience) => Verdict::Stopped,
            _ if all.len() > self.rounds => Verdict::Unconfirmed,
            _ => Verdict::Slower,
        };
        // What is not believed to be faster is not.
        (if verdict == Verdict::Unconfirmed { ratio.max(1.0) } else { ratio }, verdict)
    }
}

/// Round by round: what changes the speed of the machine for longer than a round changes no ratio.
fn ratios([one, other]: &[Vec<f64>; 2]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| other / one).collect()
}

/// What became of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Where the search started.
    Default,
    /// It was the best so far, and is so still or lost to a later one.
    Improved,
    /// Slower than the best.
    Slower,
    /// A run took so much longer than the best that the rest was left out.
    Stopped,
    /// It seemed faster, but not when it was run in turn with the best.
    Unconfirmed,
    /// It cannot be run: why.
    Infeasible(String),
}

/// A point that was tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Where it differs from the default, in words.
    pub text: String,
    /// All parameters.
    pub values: Vec<(String, Value)>,
    /// The median of its runs; infinite (`null`) for an infeasible one.
    #[serde(with = "finite_or_null")]
    pub seconds: f64,
    /// What became of it.
    pub verdict: Verdict,
    /// Its number in the space.
    #[serde(skip, default = "nowhere")]
    pub point: Point,
}

fn nowhere() -> Point {
    Point(Vec::new())
}

/// JSON has no infinity.
mod finite_or_null {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { to.serialize_some(value) } else { to.serialize_none() }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

/// How a search is doing.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The latest trial.
    pub latest: &'a Trial,
    /// The best so far.
    pub best: &'a Trial,
    /// Points run so far.
    pub trials: usize,
    /// Seconds so far.
    pub seconds: f64,
}

/// What a session found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The point that is kept: the winner, or the default where that is not slower.
    pub point: Point,
    /// Medians of the default and of what is kept, run in turn, in seconds.
    pub default_seconds: f64,
    /// See above; the same where the default is kept.
    pub best_seconds: f64,
    /// All that was tried, the default first, infeasible points included.
    pub trials: Vec<Trial>,
    /// Points that were run.
    pub measured: usize,
    /// How long it took.
    pub seconds: f64,
}

/// A search under way.
pub struct Session<'a, E> {
    space: &'a Space,
    bench: &'a mut dyn Bench<Error = E>,
    limits: Limits,
    watch: &'a mut dyn FnMut(&Progress<'_>),
    began: Instant,
    /// Costs of points, and of what they come to.
    points: HashMap<Point, f64>,
    identities: HashMap<String, usize>,
    trials: Vec<Trial>,
    best: usize,
    measured: usize,
    idle: usize,
}

impl<'a, E> Session<'a, E> {
    /// A session; `watch` is told of each trial.
    pub fn new(
        space: &'a Space,
        bench: &'a mut dyn Bench<Error = E>,
        limits: Limits,
        watch: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Self {
        Session {
            space,
            bench,
            limits,
            watch,
            began: Instant::now(),
            points: HashMap::new(),
            identities: HashMap::new(),
            trials: Vec::new(),
            best: 0,
            measured: 0,
            idle: 0,
        }
    }

    /// Searches, then compares the winner with the default.
    ///
    /// # Errors
    /// Those of the bench.
    pub fn run(mut self, search: &dyn Search) -> Result<Findings, E> {
        let start = self.space.start();
        self.cost(&start)?;
        if self.space.size() > 1 {
            self.explore(search)?;
        }
        self.settle(start)
    }

    fn explore(&mut self, search: &dyn Search) -> Result<(), E> {
        // The model is asked before each run, and the bench is busy then.
        let space = self.space;
        let this = std::cell::RefCell::new(self);
        let predict = |point: &Point| {
            let this = this.borrow();
            match space.check(point).and_then(|()| this.bench.identity(point)) {
                Ok(_) => this.bench.predict(point),
                Err(_) => f64::INFINITY,
            }
        };
        let mut failure = None;
        let mut ask = |point: &Point| match this.borrow_mut().cost(point) {
            Ok(cost) => cost,
            Err(error) => {
                failure = Some(error);
                None
            }
        };
        let _ = search.explore(&Ground { space, predict: &predict }, &mut ask);
        failure.map_or(Ok(()), Err)
    }

    /// The cost of a point: remembered, or run; `None` when it is time to stop.
    fn cost(&mut self, point: &Point) -> Result<Option<f64>, E> {
        self.idle += 1;
        if let Some(&cost) = self.points.get(point) {
            return Ok(self.may_ask().then_some(cost));
        }
        let identity = match self.space.check(point).and_then(|()| self.bench.identity(point)) {
            Ok(identity) => identity,
            Err(reason) => {
                self.note(point, f64::INFINITY, Verdict::Infeasible(reason));
                return Ok(self.may_ask().then_some(f64::INFINITY));
            }
        };
        if let Some(&same) = self.identities.get(&identity) {
            let cost = self.trials[same].seconds;
            self.points.insert(point.clone(), cost);
            return Ok(self.may_ask().then_some(cost));
        }
        if self.is_over() {
            return Ok(None);
        }
        self.idle = 0;
        self.measured += 1;
        self.identities.insert(identity, self.trials.len());
        self.measure(point).map(Some)
    }

    /// Questions that need no run take time too, where a search thinks about each.
    fn may_ask(&self) -> bool {
        self.idle < IDLE && self.began.elapsed().as_secs_f64() < self.limits.seconds
    }

    /// Time, or number of trials; some time is left for the last comparison.
    fn is_over(&self) -> bool {
        let Some(best) = self.trials.get(self.best) else { return false };
        let limits = self.limits.part(1.0 - self.bench.reserve(&best.point));
        let last = 12.0 * self.trials[0].seconds;
        let spent = self.began.elapsed().as_secs_f64();
        self.measured >= limits.trials || spent + last.min(0.3 * limits.seconds) > limits.seconds
    }

    /// A trial is a race against the best: the speed of a machine that others use as well may double from one
    /// trial to the next, and two figures of different moments say little.
    fn measure(&mut self, point: &Point) -> Result<f64, E> {
        if self.trials.is_empty() {
            let cost = median(&self.bench.alone(point, self.limits.runs)?);
            self.note(point, cost, Verdict::Default);
            return Ok(cost);
        }
        let champion = self.trials[self.best].clone();
        let Limits { runs: rounds, patience, .. } = self.limits;
        let race = Race { rounds, more: rounds.max(3), patience: Some(patience).filter(|p| p.is_finite()) };
        let times = self.bench.race(&champion.point, point, &race)?;
        if times[1].is_empty() {
            self.note(point, f64::INFINITY, Verdict::Infeasible("it does not fit into memory".into()));
            return Ok(f64::INFINITY);
        }
        let (ratio, verdict) = race.verdict(&times);
        let cost = champion.seconds * ratio;
        if verdict == Verdict::Improved {
            self.best = self.trials.len();
        }
        self.note(point, cost, verdict);
        Ok(cost)
    }

    fn note(&mut self, point: &Point, seconds: f64, verdict: Verdict) {
        let named = |(parameter, &at): (&super::space::Parameter, &usize)| {
            (parameter.name().to_string(), parameter.values()[at].clone())
        };
        self.points.insert(point.clone(), seconds);
        self.trials.push(Trial {
            text: self.space.text(point),
            values: self.space.parameters().iter().zip(&point.0).map(named).collect(),
            seconds,
            verdict,
            point: point.clone(),
        });
        let latest = &self.trials[self.trials.len() - 1];
        let best = &self.trials[self.best];
        let seconds = self.began.elapsed().as_secs_f64();
        (self.watch)(&Progress { latest, best, trials: self.measured, seconds });
    }

    /// The default once more beside the winner: the faster one is kept.
    fn settle(self, start: Point) -> Result<Findings, E> {
        let winner = self.trials[self.best].point.clone();
        let mut default_seconds = self.trials[0].seconds;
        let (mut point, mut best_seconds) = (start.clone(), default_seconds);
        if winner != start {
            let left = (self.limits.seconds - self.began.elapsed().as_secs_f64()).max(0.0);
            let rounds = (left / (default_seconds + self.trials[self.best].seconds)).clamp(5.0, 15.0);
            let race = Race { rounds: rounds as usize, more: 0, patience: None };
            let times = self.bench.race(&start, &winner, &race)?;
            default_seconds = median(&times[0]);
            best_seconds = default_seconds;
            if race.ratio(&times) < CLEAR {
                (point, best_seconds) = (winner, default_seconds * race.ratio(&times));
            }
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let (trials, measured) = (self.trials, self.measured);
        Ok(Findings { point, default_seconds, best_seconds, trials, measured, seconds })
    }
}

/// The middle one; of an even number, the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::INFINITY,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}
