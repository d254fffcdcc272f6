//! Tuning during the first real transforms of a plan.
//!
//! Every transform is a trial of some choice, and right; only its speed is at
//! stake. A search is a function of the answers it got, so its next question
//! is found by asking it again from the beginning and answering from memory.

use std::collections::BTreeMap;

use super::context::TuneContext;
use super::cost_model::CostModel;
use super::options::Outcome;
use super::tunables::ChoiceSpace;
use crate::{Choice, Comm, Precision, Problem, design};
use ferrier_search::{METHODS, Parameter, Point, SearchInput, Trial, TrialStatus, median};

/// Transforms before the first trial: the default's own times.
const FIRST: usize = 6;
/// Transforms of a trial, after one to warm up.
const RUNS: usize = 2;
/// Points that are tried.
const TRIALS: usize = 20;
/// Transforms of each of the two that are compared in the end, after one to warm up.
const LAST: usize = 4;
/// A trial ends after one transform that takes this multiple of the best.
const PATIENCE: f64 = 2.0;
/// A gain below this is none.
const CLEAR: f64 = 0.99;

/// Kinds of transforms: forward or backward, in place or not.
const KINDS: usize = 4;

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// Go on as it is.
    Stay,
    /// The next transforms are to go by this choice.
    Try(Box<Choice>),
    /// The search is over; from now on by what is kept.
    Keep(Box<Outcome>),
}

enum Phase {
    Default,
    Trial(Point),
    /// The winner, then the default, once more.
    Winner,
    Again {
        winner: f64,
    },
    Over,
}

/// A search that is fed with the times of real transforms; on rank 0.
pub(crate) struct Online {
    comm: Comm,
    problem: Problem,
    given: Choice,
    precision: Precision,
    phase: Phase,
    /// The default's times by kind of transform, and those of the present phase as multiples of them.
    usual: [Vec<f64>; KINDS],
    ratios: Vec<f64>,
    /// Transforms of this phase so far.
    calls: usize,
    known: BTreeMap<Point, f64>,
    best: (Point, f64),
    trials: Vec<Trial>,
    seconds: f64,
}

impl Online {
    pub fn new(comm: &Comm, problem: &Problem, given: &Choice, precision: Precision) -> Online {
        let choices = ChoiceSpace::new(&TuneContext::new(comm, problem, given), given, &[]);
        Online {
            comm: comm.clone(),
            problem: problem.clone(),
            given: given.clone(),
            precision,
            phase: Phase::Default,
            usual: Default::default(),
            ratios: Vec::new(),
            calls: 0,
            known: BTreeMap::new(),
            best: (choices.space().start(), 1.0),
            trials: Vec::new(),
            seconds: 0.0,
        }
    }

    fn choices(&self) -> ChoiceSpace {
        ChoiceSpace::new(&TuneContext::new(&self.comm, &self.problem, &self.given), &self.given, &[])
    }

    /// What the next transforms cannot go by, for want of memory.
    pub fn refused(&mut self) -> Next {
        self.ratios = vec![f64::INFINITY];
        self.advance()
    }

    /// A transform of one of the kinds took so long on the slowest rank.
    pub fn heard(&mut self, kind: usize, seconds: f64) -> Next {
        self.calls += 1;
        self.seconds += seconds;
        if let Phase::Default = self.phase {
            self.usual[kind].push(seconds);
            return if self.calls < FIRST { Next::Stay } else { self.advance() };
        }
        // The first of a kind is slower than the others.
        let usual = median(self.usual[kind].get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&[]));
        if !usual.is_finite() {
            // A kind that was not there before says nothing; but not for ever.
            return if self.calls < 4 * LAST { Next::Stay } else { self.advance() };
        }
        let runs = if matches!(self.phase, Phase::Trial(_)) { RUNS } else { LAST };
        let ratio = seconds / usual;
        let hopeless = matches!(self.phase, Phase::Trial(_)) && ratio > PATIENCE * self.best.1;
        if self.calls > 1 || hopeless {
            self.ratios.push(ratio);
        }
        if hopeless || self.ratios.len() >= runs { self.advance() } else { Next::Stay }
    }

    /// The present phase is over.
    fn advance(&mut self) -> Next {
        self.calls = 0;
        let ratios = std::mem::take(&mut self.ratios);
        let ratio = median(&ratios);
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Default => {
                self.known.insert(self.best.0.clone(), 1.0);
                self.note(&self.best.0.clone(), 1.0, TrialStatus::Default);
                self.next_trial()
            }
            Phase::Trial(point) => {
                self.known.insert(point.clone(), ratio);
                let better = ratio < CLEAR * self.best.1;
                self.note(&point, ratio, if better { TrialStatus::Improved } else { TrialStatus::Slower });
                if better {
                    self.best = (point, ratio);
                }
                self.next_trial()
            }
            Phase::Winner => {
                self.phase = Phase::Again { winner: ratio };
                Next::Try(Box::new(self.given.clone()))
            }
            Phase::Again { winner } => self.keep(winner < CLEAR * ratio, winner / ratio),
            Phase::Over => Next::Stay,
        }
    }

    fn note(&mut self, point: &Point, ratio: f64, status: TrialStatus) {
        let choices = self.choices();
        let space = choices.space();
        let named = |(parameter, &at): (&Parameter, &usize)| {
            (parameter.name().to_string(), parameter.values()[at].clone())
        };
        let values = space.parameters().iter().zip(&point.0).map(named).collect();
        let seconds = ratio * self.usual_seconds();
        self.trials.push(Trial { text: space.text(point), values, seconds, status, point: point.clone() });
    }

    /// A transform by the default, whatever its kind.
    fn usual_seconds(&self) -> f64 {
        let all: Vec<f64> =
            self.usual.iter().filter(|list| !list.is_empty()).map(|list| median(list)).collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    fn next_trial(&mut self) -> Next {
        let question = (self.trials.len() <= TRIALS).then(|| self.question()).flatten();
        let choices = self.choices();
        match question {
            Some(point) => {
                let choice = choices.choice(&point);
                self.phase = Phase::Trial(point);
                Next::Try(Box::new(choice))
            }
            None if self.best.0 == choices.space().start() => self.keep(false, 1.0),
            None => {
                self.phase = Phase::Winner;
                Next::Try(Box::new(choices.choice(&self.best.0)))
            }
        }
    }

    /// The first point that the search asks for and that is not known.
    fn question(&self) -> Option<Point> {
        let default = design(&self.problem, &self.given, self.precision, self.comm.size()).ok()?;
        let context = TuneContext::new(&self.comm, &self.problem, &self.given);
        let model = CostModel { context, precision: self.precision, default };
        let choices = self.choices();
        let identity = |point: &Point| model.identity(&choices.choice(point));
        let same: BTreeMap<String, f64> =
            self.known.iter().filter_map(|(point, cost)| Some((identity(point).ok()?, *cost))).collect();
        let predict = |point: &Point| match identity(point) {
            Ok(_) => model.predict(&choices.choice(point)),
            Err(_) => f64::INFINITY,
        };
        let (mut found, mut asked) = (None, 0);
        let mut objective = |point: &Point| {
            asked += 1;
            match (self.known.get(point), identity(point)) {
                _ if asked > 2000 => None,
                (Some(cost), _) => Some(*cost),
                (None, Err(_)) => Some(f64::INFINITY),
                (None, Ok(identity)) => same.get(&identity).copied().or_else(|| {
                    found = Some(point.clone());
                    None
                }),
            }
        };
        let search = METHODS[0].searcher(1);
        let _ = search.explore(&SearchInput { space: choices.space(), predict: &predict }, &mut objective);
        found
    }

    fn keep(&mut self, winner: bool, ratio: f64) -> Next {
        self.phase = Phase::Over;
        let choice = if winner { self.choices().choice(&self.best.0) } else { self.given.clone() };
        let default_ms = self.usual_seconds() * 1e3;
        Next::Keep(Box::new(Outcome {
            choice,
            default_ms,
            best_ms: if winner { default_ms * ratio } else { default_ms },
            measured: self.trials.len(),
            seconds: self.seconds,
            method: "online".into(),
            trials: std::mem::take(&mut self.trials),
            rivals: Vec::new(),
        }))
    }
}
