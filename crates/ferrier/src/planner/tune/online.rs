//! Tuning during the first real transforms of a plan.
//!
//! Every transform is a trial of some choice; its result is correct whatever the choice. A search is a deterministic
//! function of the measured costs, so its next point is found by running it again from the start with the costs
//! measured so far.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::TuneContext;
use super::cost_model::CostModel;
use super::options::Outcome;
use super::tunables::ChoiceSpace;
use crate::{Choice, Comm, Precision, Problem, design};
use ferrier_search::{METHODS, Parameter, Point, SearchInput, Trial, TrialStatus, median};

/// Transforms with the default before the first trial.
const FIRST: usize = 6;
/// Transforms of a trial, after one to warm up.
const RUNS: usize = 2;
/// Trials of a search.
const TRIALS: usize = 20;
/// Transforms of the best point and of the default in the final comparison, after one to warm up.
const LAST: usize = 4;
/// A trial ends after one transform that takes this multiple of the best.
const PATIENCE: f64 = 2.0;
/// A point is faster than another if the ratio of their times is below this.
const CLEAR: f64 = 0.99;

/// Kinds of transforms: forward or backward, in place or not.
const KINDS: usize = 4;

/// What the plan does after a transform.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SearchStep {
    /// Keep the present choice.
    Continue,
    /// Use this choice for the next transforms.
    Try(Box<Choice>),
    /// The search is over; use the choice of its outcome from now on.
    Finish(Box<Outcome>),
}

enum Phase {
    Default,
    Trial(Point),
    /// Final comparison: the best point, then the default.
    Best,
    DefaultAgain {
        best: f64,
    },
    Over,
}

/// A search that takes the times of transforms as costs; on rank 0.
pub(crate) struct OnlineSearch {
    comm: Comm,
    problem: Problem,
    given: Choice,
    start: Choice,
    precision: Precision,
    phase: Phase,
    /// Times of the default, by kind of transform.
    default_times: [Vec<f64>; KINDS],
    /// Times of the present phase, relative to the default.
    ratios: Vec<f64>,
    /// Transforms of this phase so far.
    calls: usize,
    known: BTreeMap<Point, f64>,
    /// Predictions, which the search asks for again after each trial.
    predicted: RefCell<BTreeMap<Point, f64>>,
    best: (Point, f64),
    trials: Vec<Trial>,
    seconds: f64,
}

impl OnlineSearch {
    /// A search that starts from `start`, the choice of the plan as it is.
    pub fn new(comm: &Comm, problem: &Problem, [given, start]: [&Choice; 2], precision: Precision) -> Self {
        let space =
            ChoiceSpace::new(&TuneContext::new(comm, problem, given, start.clone(), None), given, &[]);
        OnlineSearch {
            start: start.clone(),
            comm: comm.clone(),
            problem: problem.clone(),
            given: given.clone(),
            precision,
            phase: Phase::Default,
            default_times: Default::default(),
            ratios: Vec::new(),
            calls: 0,
            known: BTreeMap::new(),
            predicted: RefCell::default(),
            best: (space.space().start(), 1.0),
            trials: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Not a field: a space is not `Send`.
    fn choices(&self) -> ChoiceSpace {
        ChoiceSpace::new(&self.context(), &self.given, &[])
    }

    fn context(&self) -> TuneContext<'_> {
        TuneContext::new(&self.comm, &self.problem, &self.given, self.start.clone(), None)
    }

    /// The present choice does not fit into memory.
    pub fn choice_failed(&mut self) -> SearchStep {
        self.ratios = vec![f64::INFINITY];
        self.advance()
    }

    /// Adds the time of a transform on the slowest rank.
    pub fn add_time(&mut self, kind: usize, seconds: f64) -> SearchStep {
        self.calls += 1;
        self.seconds += seconds;
        if let Phase::Default = self.phase {
            self.default_times[kind].push(seconds);
            return if self.calls < FIRST { SearchStep::Continue } else { self.advance() };
        }
        // The first transform of a kind is slower than the others.
        let default =
            median(self.default_times[kind].get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&[]));
        if !default.is_finite() {
            // A kind of transform that the default has not run cannot be compared; the wait for others is bounded.
            return if self.calls < 4 * LAST { SearchStep::Continue } else { self.advance() };
        }
        let runs = if matches!(self.phase, Phase::Trial(_)) { RUNS } else { LAST };
        let ratio = seconds / default;
        let hopeless = matches!(self.phase, Phase::Trial(_)) && ratio > PATIENCE * self.best.1;
        if self.calls > 1 || hopeless {
            self.ratios.push(ratio);
        }
        if hopeless || self.ratios.len() >= runs { self.advance() } else { SearchStep::Continue }
    }

    /// Ends the present phase and begins the next.
    fn advance(&mut self) -> SearchStep {
        self.calls = 0;
        let ratios = std::mem::take(&mut self.ratios);
        let ratio = median(&ratios);
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Default => {
                self.known.insert(self.best.0.clone(), 1.0);
                self.add_trial(&self.best.0.clone(), 1.0, TrialStatus::Default);
                self.next_trial()
            }
            Phase::Trial(point) => {
                self.known.insert(point.clone(), ratio);
                let better = ratio < CLEAR * self.best.1;
                self.add_trial(
                    &point,
                    ratio,
                    if better { TrialStatus::Improved } else { TrialStatus::Slower },
                );
                if better {
                    self.best = (point, ratio);
                }
                self.next_trial()
            }
            Phase::Best => {
                self.phase = Phase::DefaultAgain { best: ratio };
                SearchStep::Try(Box::new(self.start.clone()))
            }
            Phase::DefaultAgain { best } => self.finish(best < CLEAR * ratio, best / ratio),
            Phase::Over => SearchStep::Continue,
        }
    }

    fn add_trial(&mut self, point: &Point, ratio: f64, status: TrialStatus) {
        let choices = self.choices();
        let space = choices.space();
        let named = |(parameter, &at): (&Parameter, &usize)| {
            (parameter.name().to_string(), parameter.values()[at].clone())
        };
        let values = space.parameters().iter().zip(&point.0).map(named).collect();
        let seconds = ratio * self.default_seconds();
        self.trials.push(Trial { text: space.text(point), values, seconds, status, point: point.clone() });
    }

    /// Seconds of a transform with the default: the mean of all kinds.
    fn default_seconds(&self) -> f64 {
        let all: Vec<f64> =
            self.default_times.iter().filter(|list| !list.is_empty()).map(|list| median(list)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    fn next_trial(&mut self) -> SearchStep {
        let next = (self.trials.len() <= TRIALS).then(|| self.next_point()).flatten();
        let choices = self.choices();
        match next {
            Some(point) => {
                let choice = choices.choice(&point);
                self.phase = Phase::Trial(point);
                SearchStep::Try(Box::new(choice))
            }
            None if self.best.0 == choices.space().start() => self.finish(false, 1.0),
            None => {
                self.phase = Phase::Best;
                SearchStep::Try(Box::new(choices.choice(&self.best.0)))
            }
        }
    }

    /// The first point of the search whose cost is not known.
    fn next_point(&self) -> Option<Point> {
        let default = design(&self.problem, &self.given, self.precision, self.comm.size()).ok()?;
        let model = CostModel { context: self.context(), precision: self.precision, default };
        let choices = self.choices();
        let identity = |point: &Point| model.identity(&choices.choice(point));
        let costs: BTreeMap<String, f64> =
            self.known.iter().filter_map(|(point, cost)| Some((identity(point).ok()?, *cost))).collect();
        // Impossible choices are predicted to take forever.
        let predict = |point: &Point| {
            let mut known = self.predicted.borrow_mut();
            *known.entry(point.clone()).or_insert_with(|| model.predict(&choices.choice(point)))
        };
        let (mut found, mut asked) = (None, 0);
        let mut objective = |point: &Point| {
            asked += 1;
            match (self.known.get(point), identity(point)) {
                _ if asked > 2000 => None,
                (Some(cost), _) => Some(*cost),
                (None, Err(_)) => Some(f64::INFINITY),
                (None, Ok(identity)) => costs.get(&identity).copied().or_else(|| {
                    found = Some(point.clone());
                    None
                }),
            }
        };
        let search = METHODS[0].searcher(1);
        let _ = search.explore(&SearchInput { space: choices.space(), predict: &predict }, &mut objective);
        found
    }

    fn finish(&mut self, faster: bool, ratio: f64) -> SearchStep {
        self.phase = Phase::Over;
        let choice = if faster { self.choices().choice(&self.best.0) } else { self.start.clone() };
        let default_ms = self.default_seconds() * 1e3;
        SearchStep::Finish(Box::new(Outcome {
            choice,
            default_ms,
            best_ms: if faster { default_ms * ratio } else { default_ms },
            measured: self.trials.len(),
            seconds: self.seconds,
            method: "online".into(),
            trials: std::mem::take(&mut self.trials),
            speeds: None,
            rivals: Vec::new(),
        }))
    }
}
