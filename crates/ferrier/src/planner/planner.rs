//! Planners: a problem, what the user decides, and where experience comes from.

use super::agree::{agree, compare};
use super::draft::{Draft, Spare};
use super::effort::Effort;
use super::online_tuner::OnlineTuner;
use super::target::{Advice, Target};
use super::wisdom::{self, Source};
use crate::exec::{Backend, Cpu};
use crate::{Choice, Comm, Device, Plan, Problem, Real, Result};

/// Makes plans: from a problem and what the user decides himself.
///
/// [`device`](Self::device) says where the arrays are; in main memory by default.
#[derive(Clone, Debug)]
#[must_use = "a planner does nothing until `draft`"]
pub struct Planner<B: Backend = Cpu> {
    problem: Problem,
    choice: Choice,
    effort: Effort,
    source: Source,
    device: Device<B>,
}

impl Planner {
    /// A planner for this problem; everything else is left to it.
    pub fn new(problem: &Problem) -> Self {
        let (problem, choice, device) = (problem.clone(), Choice::default(), Device::cpu());
        Planner { problem, choice, effort: Effort::default(), source: Source::default(), device }
    }
}

impl<B: Backend> Planner<B> {
    /// What the user decides.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// How hard to look for a fast plan where none is known for this problem (default: not at all). What trials find
    /// is added to the wisdom file.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// The wisdom file, read on rank 0, instead of the user's own.
    pub fn wisdom(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.source = Source::File(file.into());
        self
    }

    /// Neither uses nor adds to wisdom.
    pub fn without_wisdom(mut self) -> Self {
        self.source = Source::Nothing;
        self
    }

    /// Makes plans whose arrays are on this device. Wisdom and tuning are for the CPU; other devices ignore them.
    pub fn device<D: Backend>(self, device: &Device<D>) -> Planner<D> {
        let Planner { problem, choice, effort, source, .. } = self;
        Planner { problem, choice, effort, source, device: device.clone() }
    }
}

impl<B: Target> Planner<B> {
    /// Decides everything. Collective: every rank of `comm` must call it with the same problem and choice (own boxes
    /// aside), each with its own device.
    ///
    /// On a GPU, [`Choice::kernel`] may be `native` (our own kernel wherever it has the length) or `cufft`; by
    /// default the faster one.
    ///
    /// # Errors
    /// Whatever is wrong with the problem or the choice; [`Error::Disagreement`](crate::Error::Disagreement), on
    /// every rank, where they differ between ranks. A rank that never calls cannot be told from a slow one.
    pub fn draft<T: Real>(self, comm: &Comm) -> Result<Draft<T, B>> {
        let Planner { problem, choice, effort, source, device } = self;
        let problem = agree::<T>(comm, B::NAME, problem, &choice, effort)?;
        let advice = match B::LEARNS {
            true => wisdom::advice::<T>(comm, &problem, &choice, effort, &source)?,
            false => Advice::none(choice.clone()),
        };
        let decision = B::decide::<T>(comm, &problem, advice)?;
        let recipe = B::design::<T>(&problem, &decision, comm.size())?;
        compare(comm, &recipe)?;
        let online = B::LEARNS && effort == Effort::Online && decision.wisdom.is_none();
        let tuner =
            online.then(|| OnlineTuner::<B>::new::<T>(comm, &problem, &choice, &source, device.handle()));
        // Where sharing memory was not asked for, it may fail.
        let spare =
            choice.exchange.is_none().then(|| Spare { comm: comm.clone(), problem: problem.clone(), choice });
        let mut draft = Draft::<T, B>::new(comm, &problem, (decision, recipe), device.handle(), spare)?;
        if let Some(tuner) = tuner {
            draft.observe(tuner);
        }
        Ok(draft)
    }
}

impl<T: Real> Plan<T> {
    /// A plan with everything left to the planner. Collective; allocates.
    ///
    /// # Errors
    /// As [`Planner::draft`] and [`Draft::build`].
    pub fn new(comm: &Comm, problem: &Problem) -> Result<Self> {
        Planner::new(problem).draft(comm)?.build()
    }
}
