//! Plans that try choices while they work; see [`Effort::Online`](crate::planner::tune::Effort).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::target::Target;
use crate::Plan;
use crate::exec::backend::Executor;
use crate::exec::plan::CallObserver;
use crate::planner::tune::{Next, Online, Outcome};
use crate::planner::wisdom::{self, Source};
use crate::{Choice, Comm, Error, Problem, Real, Result};

/// What a plan needs to become another one.
pub(crate) struct OnlineTuner<B: Target> {
    device: B::Handle,
    comm: Comm,
    problem: Problem,
    given: Choice,
    source: Source,
    /// On rank 0.
    search: Option<Box<Online>>,
    /// What the next transform is to go by, if by something else than the last.
    pending: Option<Choice>,
    /// Is that the last word?
    over: bool,
}

/// What rank 0 tells the others after a transform.
#[derive(Serialize, Deserialize)]
enum Told {
    Stay,
    Try(Box<Choice>),
    Keep(Box<Outcome>),
}

impl<B: Target> OnlineTuner<B> {
    pub fn new<T: Real>(
        comm: &Comm,
        problem: &Problem,
        given: &Choice,
        source: &Source,
        device: &B::Handle,
    ) -> Self {
        let (problem, given) = (problem.clone(), given.clone());
        let search = (comm.rank() == 0).then(|| Box::new(Online::new(comm, &problem, &given, T::PRECISION)));
        OnlineTuner {
            device: device.clone(),
            comm: comm.clone(),
            problem,
            given,
            source: source.clone(),
            search,
            pending: None,
            over: false,
        }
    }

    /// The plan becomes what is to be tried. Collective.
    fn prepare<T: Real>(&mut self, plan: &mut Plan<T, B>) -> Result<()> {
        while let Some(choice) = self.pending.take() {
            match Draft::on(&self.comm, &self.problem, choice, &self.device)?.build_if_it_fits()? {
                Some(other) => *plan = other,
                None => {
                    let next = self.search.as_mut().map(|search| search.refused());
                    self.hear::<T>(next)?;
                }
            }
        }
        Ok(())
    }

    /// Rank 0's word, on every rank. Collective.
    fn hear<T: Real>(&mut self, next: Option<Next>) -> Result<()> {
        let told = match next {
            None => Vec::new(),
            Some(Next::Stay) => serde_json::to_vec(&Told::Stay).map_err(Error::other)?,
            Some(Next::Try(choice)) => serde_json::to_vec(&Told::Try(choice)).map_err(Error::other)?,
            Some(Next::Keep(outcome)) => serde_json::to_vec(&Told::Keep(outcome)).map_err(Error::other)?,
        };
        match serde_json::from_slice(&self.comm.all_gather(&told)?[0]).map_err(Error::other)? {
            Told::Stay => {}
            Told::Try(choice) => self.pending = Some(*choice),
            Told::Keep(outcome) => {
                wisdom::note::<T>(&self.comm, &self.problem, &self.given, &outcome, None, &self.source);
                (self.pending, self.over) = (Some(outcome.choice), true);
            }
        }
        Ok(())
    }
}

impl<T: Real, B: Target> Draft<T, B> {
    /// As [`build`](Self::build); `None`, on every rank, where one has too little memory and that can be told.
    pub(crate) fn build_if_it_fits(self) -> Result<Option<Plan<T, B>>> {
        if !self.comm.transport().exposes_all_memory() {
            return self.build().map(Some);
        }
        let work = <B::Executor<T>>::allocate(&self.binder, &self.comm, &self.memory, false);
        if self.comm.max(&[f64::from(u8::from(work.is_err()))])?[0] > 0.0 {
            return Ok(None);
        }
        self.finish(Some(work?)).map(Some)
    }
}

impl<T: Real, B: Target> CallObserver<T, B> for OnlineTuner<B> {
    fn before(&mut self, plan: &mut Plan<T, B>) -> Result<bool> {
        self.prepare(plan)?;
        Ok(!self.over)
    }

    fn after(&mut self, plan: &Plan<T, B>, kind: usize, elapsed: Duration) -> Result<()> {
        let seconds = plan.comm.max(&[elapsed.as_secs_f64()])?[0];
        let next = self.search.as_mut().map(|search| search.heard(kind, seconds));
        self.hear::<T>(next)
    }
}
