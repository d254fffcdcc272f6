//! Search for the fastest choice on GPUs. Rank 0 searches; every rank runs the same trials.

use ferrier::exchange::EXCHANGES;
use ferrier::tune::{Comparison, Evaluator, Limits, Parameter, Point, SearchResult, Session, Space, find};
use ferrier::{Choice, Comm, Decomposition, DeviceSpec, Overlap, Precision, Problem, Real, Tiling};
use serde::{Deserialize, Serialize};

use super::hosted::HostedGpuPlan;
use crate::agree::agree;
use crate::failure::{Failure, Outcome};
use crate::in_precision;

/// The value that leaves a field to the planner.
const AUTO: &str = "auto";

/// A search for the fastest choice on GPUs.
pub struct GpuTuning {
    /// The transform.
    pub problem: Problem,
    /// Its precision.
    pub precision: Precision,
    /// What is decided.
    pub choice: Choice,
    /// The GPUs.
    pub device: DeviceSpec,
    /// Bounds on time and trials.
    pub limits: Limits,
    /// The name of the method.
    pub method: String,
    /// Its seed.
    pub seed: u64,
    /// Names of the parameters to search; empty: all.
    pub only: Vec<&'static str>,
}

/// What rank 0 wants all ranks to do.
#[derive(Serialize, Deserialize)]
enum Command {
    Run(Box<Choice>, usize),
    Compare(Box<[Choice; 2]>, Comparison),
    Done,
}

impl GpuTuning {
    /// Searches: the result and its choice, on rank 0. Collective.
    ///
    /// # Errors
    /// Those of the library; an unknown method.
    pub fn run(&self, comm: &Comm) -> Outcome<Option<(SearchResult, Choice)>> {
        in_precision!(self.precision, T => self.search::<T>(comm))
    }

    fn search<T: Real>(&self, comm: &Comm) -> Outcome<Option<(SearchResult, Choice)>> {
        let method = find(&self.method)?;
        let mut trials = GpuTrials::<T> { comm, options: self, plans: Vec::new() };
        // The given choice must have a plan.
        trials.prepare(&self.choice)?;
        if comm.rank() > 0 {
            trials.follow()?;
            return Ok(None);
        }
        let space = self.space(comm.size());
        let mut evaluator = GpuEvaluator { trials: &mut trials, space: &space };
        let found = Session::new(&space, &mut evaluator, self.limits, &mut |_| ())
            .run(&*method.searcher(self.seed))?;
        trials.send(&Command::Done)?;
        let choice = self.choice_of(&space, &found.point);
        Ok(Some((found, choice)))
    }

    /// The parameters that the choice leaves open.
    fn space(&self, ranks: usize) -> Space {
        let (given, longest) = (&self.choice, self.problem.lengths().into_iter().max().unwrap_or(1));
        let exchanges = std::iter::once(AUTO).chain(EXCHANGES.iter().map(|entry| entry.name));
        let sends = ranks > 1;
        let all = [
            (sends && given.exchange.is_none(), Parameter::category("exchange", exchanges)),
            (given.kernel.is_none(), Parameter::category("kernel", [AUTO, "native", "cufft"])),
            (
                sends && given.decomposition.is_none() && given.grid.is_none(),
                Parameter::category("grid", [AUTO, "slab", "pencil"]),
            ),
            // The length of the longest axis: as the planner decides.
            (sends && given.overlap.is_none(), Parameter::log_scale("tile", 1, longest).from(longest)),
            (
                sends && given.packet.is_none(),
                Parameter::log_scale("packet", 256 << 10, 8 << 20).from(1 << 20),
            ),
        ];
        let wanted = |name: &str| self.only.is_empty() || self.only.contains(&name);
        let open = all.into_iter().filter(|(open, parameter)| *open && wanted(parameter.name()));
        Space::new(open.map(|(_, parameter)| parameter).filter(|parameter| parameter.values().len() > 1))
    }

    /// The choice of a point. What has the value of the start is left as given.
    fn choice_of(&self, space: &Space, point: &Point) -> Choice {
        let (mut choice, start) = (self.choice.clone(), space.start());
        for (at, parameter) in space.parameters().iter().enumerate() {
            if point.0[at] == start.0[at] {
                continue;
            }
            let value = &parameter.values()[point.0[at]];
            match parameter.name() {
                "exchange" => choice.exchange = Some(value.name().into()),
                "kernel" => choice.kernel = Some(value.name().into()),
                "grid" => {
                    choice.decomposition = Some(match value.name() {
                        "slab" => Decomposition::Slab,
                        _ => Decomposition::Pencil,
                    });
                }
                "tile" => choice.overlap = Some(Overlap::uniform(Tiling::new(value.number()).polls(0))),
                _ => choice.packet = Some(value.number()),
            }
        }
        choice
    }
}

/// The plans that a rank measures.
struct GpuTrials<'a, T: Real> {
    comm: &'a Comm,
    options: &'a GpuTuning,
    /// The last two.
    plans: Vec<(Choice, HostedGpuPlan<T>)>,
}

impl<T: Real> GpuTrials<'_, T> {
    fn send(&self, command: &Command) -> Outcome {
        let text = serde_json::to_vec(command).map_err(Failure::new)?;
        Ok(self.comm.all_gather(&text).map(drop)?)
    }

    /// Runs the commands of rank 0 until the search is over.
    fn follow(&mut self) -> Outcome {
        loop {
            let all = self.comm.all_gather(&[])?;
            match serde_json::from_slice(&all[0]).map_err(Failure::new)? {
                Command::Done => return Ok(()),
                command => drop(self.run(&command)?),
            }
        }
    }

    /// Seconds on the slowest rank, for each choice; empty if one has no plan on these GPUs. The same on every rank.
    fn run(&mut self, command: &Command) -> Outcome<[Vec<f64>; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        match command {
            Command::Run(choice, runs) => {
                if self.has_plan(choice)? {
                    for _ in 0..*runs {
                        times[0].push(self.seconds(choice)?);
                    }
                }
            }
            Command::Compare(choices, comparison) => {
                let [one, other] = &**choices;
                self.plans.retain(|(known, _)| known == one || known == other);
                if self.has_plan(one)? && self.has_plan(other)? {
                    while comparison.continues(&times) {
                        // The first of a round may have an advantage, so the order alternates.
                        let round = times[0].len();
                        for side in [round % 2, 1 - round % 2] {
                            times[side].push(self.seconds(&choices[side])?);
                        }
                    }
                }
            }
            Command::Done => {}
        }
        Ok(times)
    }

    /// Makes the plan of a choice, unless it is one of the last; whether there is one.
    fn has_plan(&mut self, choice: &Choice) -> Outcome<bool> {
        use ferrier::Error::{Choice, Memory, Problem};
        match self.prepare(choice) {
            Ok(()) => Ok(true),
            Err(Failure { error: Some(Choice(_) | Memory { .. } | Problem(_)), .. }) => Ok(false),
            Err(failure) => agree(self.comm, Err(failure)),
        }
    }

    fn prepare(&mut self, choice: &Choice) -> Outcome {
        if self.plans.iter().any(|(known, _)| known == choice) {
            return Ok(());
        }
        if self.plans.len() > 1 {
            self.plans.remove(0);
        }
        let GpuTuning { problem, device, .. } = self.options;
        let plan = HostedGpuPlan::new(self.comm, problem, choice.clone(), *device)?;
        self.plans.push((choice.clone(), plan));
        self.seconds(choice).map(drop)
    }

    /// Seconds of a transform, the mean of both directions.
    fn seconds(&mut self, choice: &Choice) -> Outcome<f64> {
        let Some((_, plan)) = self.plans.iter_mut().find(|(known, _)| known == choice) else {
            return Ok(f64::INFINITY);
        };
        Ok((plan.timed_forward(self.comm)? + plan.timed_backward(self.comm)?) / 2.0)
    }
}

/// Runs the points of a session on all ranks.
struct GpuEvaluator<'a, 'b, T: Real> {
    trials: &'a mut GpuTrials<'b, T>,
    space: &'a Space,
}

impl<T: Real> Evaluator for GpuEvaluator<'_, '_, T> {
    type Error = Failure;

    fn measure(&mut self, point: &Point, runs: usize) -> Outcome<Vec<f64>> {
        let choice = self.trials.options.choice_of(self.space, point);
        let command = Command::Run(Box::new(choice), runs);
        self.trials.send(&command)?;
        let [times, _] = self.trials.run(&command)?;
        Ok(times)
    }

    fn compare(&mut self, best: &Point, other: &Point, comparison: &Comparison) -> Outcome<[Vec<f64>; 2]> {
        let choices = [best, other].map(|point| self.trials.options.choice_of(self.space, point));
        let command = Command::Compare(Box::new(choices), *comparison);
        self.trials.send(&command)?;
        self.trials.run(&command)
    }

    fn identity(&self, point: &Point) -> Result<String, String> {
        Ok(format!("{:?}", self.trials.options.choice_of(self.space, point)))
    }
}
