//! Planners: a problem, the user's choice, an effort and a wisdom file.

use super::agree::agree;
use super::draft::Draft;
use super::effort::Effort;
use super::online_tuner::OnlineTuner;
use super::target::Target;
use super::tune::completed;
use super::wisdom::{self, WisdomFile};
use crate::exec::{Backend, Cpu};
use crate::{Choice, Comm, Device, Plan, Problem, Real, Result, design};

/// Makes plans from a problem and the user's choice.
///
/// [`device`](Self::device) says where the arrays are; in main memory by default.
#[derive(Clone, Debug)]
#[must_use = "a planner does nothing until `draft`"]
pub struct Planner<B: Backend = Cpu> {
    problem: Problem,
    choice: Choice,
    effort: Effort,
    file: WisdomFile,
    device: Device<B>,
}

impl Planner {
    /// A planner for this problem, with the default choice.
    pub fn new(problem: &Problem) -> Self {
        let (problem, choice, device) = (problem.clone(), Choice::default(), Device::cpu());
        Planner { problem, choice, effort: Effort::default(), file: WisdomFile::default(), device }
    }
}

impl<B: Backend> Planner<B> {
    /// Sets the user's choice; fields that are not set are left to the planner.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Sets the effort of the search for a fast plan if the wisdom file has none for this problem (default: no
    /// trials). The results of trials are added to the wisdom file.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Sets the wisdom file, which rank 0 reads, instead of the user's own.
    pub fn wisdom(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.file = WisdomFile::Path(file.into());
        self
    }

    /// Neither reads nor writes wisdom.
    pub fn without_wisdom(mut self) -> Self {
        self.file = WisdomFile::Off;
        self
    }

    /// Makes plans whose arrays are on this device. Wisdom and tuning are for the CPU; other devices ignore them.
    pub fn device<D: Backend>(self, device: &Device<D>) -> Planner<D> {
        let Planner { problem, choice, effort, file, .. } = self;
        Planner { problem, choice, effort, file, device: device.clone() }
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
        let Planner { problem, choice, effort, file, device } = self;
        let problem = agree::<T>(comm, B::NAME, problem, &choice, effort)?;
        let start = match B::LEARNS {
            true => wisdom::start_choice::<T>(comm, &problem, &choice, effort, &file)?,
            false => choice.clone().into(),
        };
        let mut draft = Draft::<T, B>::new(comm, &problem, choice.clone(), start, device.handle())?;
        if B::LEARNS && effort == Effort::Online && draft.wisdom().is_none() {
            let usual = design(&problem, &choice, T::PRECISION, comm.size())?;
            let start = completed(comm, &choice, [draft.recipe(), &usual]);
            let tuner =
                OnlineTuner::<B>::new::<T>(comm, problem, [choice, start], file, device.handle().clone());
            draft.observer = Some(Box::new(tuner));
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
