//! A session: runs a search within a budget, compares noisy measurements, records trials.

use std::collections::HashMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::search::{Search, SearchInput};
use crate::space::{Point, Space, Value};

/// A ratio of costs must be below this to count as an improvement.
const SIGNIFICANT: f64 = 0.99;
/// A candidate that is slower by this in one round, or by half of it in the median of two, is rejected.
const CLEARLY_SLOWER: f64 = 0.3;
/// Consecutive cached evaluations after which a search is stopped.
const MAX_CACHED: usize = 5000;

/// Measures costs of points.
pub trait Evaluator {
    /// An error after which nothing can be measured.
    type Error;

    /// Seconds of each of `runs` runs at a point.
    ///
    /// # Errors
    /// An error after which nothing can be measured.
    fn measure(&mut self, point: &Point, runs: usize) -> Result<Vec<f64>, Self::Error>;

    /// Seconds of alternating runs at two points, while [`Comparison::continues`]; empty lists if memory does not
    /// suffice.
    ///
    /// # Errors
    /// As [`measure`](Evaluator::measure).
    fn compare(
        &mut self,
        incumbent: &Point,
        other: &Point,
        comparison: &Comparison,
    ) -> Result<[Vec<f64>; 2], Self::Error>;

    /// The fraction of the limits to leave for a later search if this one ends at `best`.
    fn reserve(&self, _best: &Point) -> f64 {
        0.0
    }

    /// An identity of a point: points of equal identity are measured once. By default all points differ.
    ///
    /// # Errors
    /// The reason why the point is infeasible.
    fn identity(&self, point: &Point) -> Result<String, String> {
        Ok(format!("{point:?}"))
    }

    /// Seconds predicted by a cost model; see [`SearchInput::predict`].
    fn predict(&self, _point: &Point) -> f64 {
        1.0
    }
}

/// The budget of a session.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seconds, including the final comparison of the best point with the default.
    pub seconds: f64,
    /// Number of measured points.
    pub trials: usize,
    /// Runs of each point, after one warm-up run.
    pub runs: usize,
    /// A trial is aborted when it takes longer than this multiple of the best cost. Infinite: all points are timed
    /// completely, in turn with the start instead of the best so far, so that their times compare.
    pub patience: f64,
}

impl Limits {
    /// A fraction of the seconds and of the trials.
    fn fraction(&self, part: f64) -> Limits {
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

/// A paired comparison of two points by alternating runs: the stopping rule and the decision.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Rounds, unless the result is clear earlier.
    pub rounds: usize,
    /// Additional rounds if the second point seems faster.
    pub more: usize,
    /// Aborts when the second point takes this multiple of the first; `None`: never.
    pub patience: Option<f64>,
}

impl Comparison {
    /// Whether another round follows these times. A function of times that are equal on every rank, so that all
    /// ranks run the same rounds.
    pub fn continues(&self, times: &[Vec<f64>; 2]) -> bool {
        let (ratios, ratio) = (ratios(times), self.ratio(times));
        match (ratios.len(), self.patience) {
            (0, _) => true,
            (done, Some(patience)) if done < self.rounds => {
                // A single round is noisier than the median of two.
                ratio <= patience.min(1.0 + CLEARLY_SLOWER / done as f64)
            }
            (done, _) => done < self.rounds || ratio < SIGNIFICANT && done < self.rounds + self.more,
        }
    }

    /// Median of the ratios of the second point's time to the first's.
    fn ratio(&self, times: &[Vec<f64>; 2]) -> f64 {
        median(&ratios(times))
    }

    /// The ratio, and the status of the second point.
    fn decide(&self, times: &[Vec<f64>; 2]) -> (f64, TrialStatus) {
        let (all, ratio) = (ratios(times), self.ratio(times));
        let confirmed = all.len() >= self.rounds + self.more && median(&all[self.rounds..]) < SIGNIFICANT;
        let status = match ratio {
            ratio if ratio < SIGNIFICANT && confirmed => TrialStatus::Improved,
            ratio if self.patience.is_some_and(|patience| ratio > patience) => TrialStatus::Stopped,
            _ if all.len() > self.rounds => TrialStatus::Unconfirmed,
            _ => TrialStatus::Slower,
        };
        // An unconfirmed improvement counts as none.
        (if status == TrialStatus::Unconfirmed { ratio.max(1.0) } else { ratio }, status)
    }
}

/// Ratios round by round: drifts of the machine speed that outlast a round cancel.
fn ratios([one, other]: &[Vec<f64>; 2]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| other / one).collect()
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// The start point.
    Default,
    /// The best point at the time of the trial.
    Improved,
    /// Slower than the best.
    Slower,
    /// Aborted: far slower than the best.
    Stopped,
    /// Faster at first, but not in the additional rounds.
    Unconfirmed,
    /// Infeasible, for this reason.
    Infeasible(String),
}

/// An evaluated point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Description of the differences from the default.
    pub text: String,
    /// The values of all parameters.
    pub values: Vec<(String, Value)>,
    /// Estimated seconds of a run; infinite (`null` in JSON) for an infeasible point.
    #[serde(with = "finite_or_null")]
    pub seconds: f64,
    /// The result.
    #[serde(rename = "verdict")]
    pub status: TrialStatus,
    /// The point.
    #[serde(skip, default = "empty_point")]
    pub point: Point,
}

fn empty_point() -> Point {
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

/// The progress of a session.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The latest trial.
    pub latest: &'a Trial,
    /// The best so far.
    pub best: &'a Trial,
    /// Points measured so far.
    pub trials: usize,
    /// Seconds so far.
    pub seconds: f64,
}

/// The result of a session.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// The chosen point: the best one, or the default if the best one is not significantly faster.
    pub point: Point,
    /// Seconds of the default in the final comparison.
    pub default_seconds: f64,
    /// Seconds of the chosen point; equal to `default_seconds` if that is the default.
    pub best_seconds: f64,
    /// All trials, the default first, infeasible points included.
    pub trials: Vec<Trial>,
    /// Number of measured points.
    pub measured: usize,
    /// Duration of the session in seconds.
    pub seconds: f64,
}

/// A search with a budget.
pub struct Session<'a, E> {
    space: &'a Space,
    evaluator: &'a mut dyn Evaluator<Error = E>,
    limits: Limits,
    watch: &'a mut dyn FnMut(&Progress<'_>),
    began: Instant,
    /// Costs of evaluated points.
    points: HashMap<Point, f64>,
    /// Index of the trial of each identity.
    identities: HashMap<String, usize>,
    trials: Vec<Trial>,
    best: usize,
    measured: usize,
    cached: usize,
}

impl<'a, E> Session<'a, E> {
    /// A session; `watch` is called after each trial.
    pub fn new(
        space: &'a Space,
        evaluator: &'a mut dyn Evaluator<Error = E>,
        limits: Limits,
        watch: &'a mut dyn FnMut(&Progress<'_>),
    ) -> Self {
        Session {
            space,
            evaluator,
            limits,
            watch,
            began: Instant::now(),
            points: HashMap::new(),
            identities: HashMap::new(),
            trials: Vec::new(),
            best: 0,
            measured: 0,
            cached: 0,
        }
    }

    /// Runs the search, then compares the best point with the default.
    ///
    /// # Errors
    /// Errors of the evaluator.
    pub fn run(mut self, search: &dyn Search) -> Result<SearchResult, E> {
        let start = self.space.start();
        self.cost(&start)?;
        if self.space.size() > 1 {
            self.explore(search)?;
        }
        self.confirm(start)
    }

    fn explore(&mut self, search: &dyn Search) -> Result<(), E> {
        // `predict` and `objective` both borrow the session, never at the same time.
        let space = self.space;
        let this = std::cell::RefCell::new(self);
        let predict = |point: &Point| {
            let this = this.borrow();
            match space.check(point).and_then(|()| this.evaluator.identity(point)) {
                Ok(_) => this.evaluator.predict(point),
                Err(_) => f64::INFINITY,
            }
        };
        let mut failure = None;
        let mut objective = |point: &Point| match this.borrow_mut().cost(point) {
            Ok(cost) => cost,
            Err(error) => {
                failure = Some(error);
                None
            }
        };
        let _ = search.explore(&SearchInput { space, predict: &predict }, &mut objective);
        failure.map_or(Ok(()), Err)
    }

    /// The cost of a point, cached or measured; `None` when the search must stop.
    fn cost(&mut self, point: &Point) -> Result<Option<f64>, E> {
        self.cached += 1;
        if let Some(&cost) = self.points.get(point) {
            return Ok(self.may_continue().then_some(cost));
        }
        let identity = match self.space.check(point).and_then(|()| self.evaluator.identity(point)) {
            Ok(identity) => identity,
            Err(reason) => {
                self.note(point, f64::INFINITY, TrialStatus::Infeasible(reason));
                return Ok(self.may_continue().then_some(f64::INFINITY));
            }
        };
        if let Some(&same) = self.identities.get(&identity) {
            let cost = self.trials[same].seconds;
            self.points.insert(point.clone(), cost);
            return Ok(self.may_continue().then_some(cost));
        }
        if self.is_exhausted() {
            return Ok(None);
        }
        self.cached = 0;
        self.measured += 1;
        self.identities.insert(identity, self.trials.len());
        self.measure(point).map(Some)
    }

    /// Whether the search may continue after a cached evaluation.
    fn may_continue(&self) -> bool {
        self.cached < MAX_CACHED && self.began.elapsed().as_secs_f64() < self.limits.seconds
    }

    /// Whether the budget is spent, with time reserved for the final comparison.
    fn is_exhausted(&self) -> bool {
        let Some(best) = self.trials.get(self.best) else { return false };
        let limits = self.limits.fraction(1.0 - self.evaluator.reserve(&best.point));
        let last = 12.0 * self.trials[0].seconds;
        let spent = self.began.elapsed().as_secs_f64();
        self.measured >= limits.trials || spent + last.min(0.3 * limits.seconds) > limits.seconds
    }

    /// Measures a point by a comparison with the best one: on a shared machine the speed may change by a factor of
    /// two between trials, so absolute times of different trials are not comparable.
    fn measure(&mut self, point: &Point) -> Result<f64, E> {
        if self.trials.is_empty() {
            let cost = median(&self.evaluator.measure(point, self.limits.runs)?);
            self.note(point, cost, TrialStatus::Default);
            return Ok(cost);
        }
        let Limits { runs: rounds, patience, .. } = self.limits;
        // The best of many noisy points is less fast than it seems, and so would be all that are compared with it.
        let incumbent = self.trials[if patience.is_finite() { self.best } else { 0 }].clone();
        let comparison =
            Comparison { rounds, more: rounds.max(3), patience: Some(patience).filter(|p| p.is_finite()) };
        let times = self.evaluator.compare(&incumbent.point, point, &comparison)?;
        if times[1].is_empty() {
            self.note(point, f64::INFINITY, TrialStatus::Infeasible("it does not fit into memory".into()));
            return Ok(f64::INFINITY);
        }
        let (ratio, status) = comparison.decide(&times);
        let cost = incumbent.seconds * ratio;
        if status == TrialStatus::Improved && cost < self.trials[self.best].seconds {
            self.best = self.trials.len();
        }
        self.note(point, cost, status);
        Ok(cost)
    }

    fn note(&mut self, point: &Point, seconds: f64, status: TrialStatus) {
        let named = |(parameter, &at): (&crate::space::Parameter, &usize)| {
            (parameter.name().to_string(), parameter.values()[at].clone())
        };
        self.points.insert(point.clone(), seconds);
        self.trials.push(Trial {
            text: self.space.text(point),
            values: self.space.parameters().iter().zip(&point.0).map(named).collect(),
            seconds,
            status,
            point: point.clone(),
        });
        let latest = &self.trials[self.trials.len() - 1];
        let best = &self.trials[self.best];
        let seconds = self.began.elapsed().as_secs_f64();
        (self.watch)(&Progress { latest, best, trials: self.measured, seconds });
    }

    /// Compares the best point with the default and chooses the faster one.
    fn confirm(self, start: Point) -> Result<SearchResult, E> {
        let best = self.trials[self.best].point.clone();
        let mut default_seconds = self.trials[0].seconds;
        let (mut point, mut best_seconds) = (start.clone(), default_seconds);
        if best != start {
            let left = (self.limits.seconds - self.began.elapsed().as_secs_f64()).max(0.0);
            let rounds = (left / (default_seconds + self.trials[self.best].seconds)).clamp(5.0, 15.0);
            let comparison = Comparison { rounds: rounds as usize, more: 0, patience: None };
            let times = self.evaluator.compare(&start, &best, &comparison)?;
            default_seconds = median(&times[0]);
            best_seconds = default_seconds;
            if comparison.ratio(&times) < SIGNIFICANT {
                (point, best_seconds) = (best, default_seconds * comparison.ratio(&times));
            }
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let (trials, measured) = (self.trials, self.measured);
        Ok(SearchResult { point, default_seconds, best_seconds, trials, measured, seconds })
    }
}

/// The median; infinite for an empty list.
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
