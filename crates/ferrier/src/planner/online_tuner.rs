//! Tuning by the calls of a plan; see [`Effort::Online`](crate::planner::tune::Effort).

use std::time::Duration;

use super::draft::Draft;
use super::target::Target;
use crate::exec::backend::Executor;
use crate::exec::plan::CallObserver;
use crate::planner::tune::{OnlineSearch, SearchStep};
use crate::planner::wisdom::{self, WisdomFile};
use crate::{Choice, Comm, Error, Plan, Problem, Real, Result};

/// Replaces a plan by others, and keeps the fastest.
pub(crate) struct OnlineTuner<B: Target> {
    device: B::Handle,
    comm: Comm,
    problem: Problem,
    given: Choice,
    file: WisdomFile,
    /// On rank 0.
    search: Option<Box<OnlineSearch>>,
    /// The choice of the next transform, if it differs from that of the last.
    pending: Option<Choice>,
    /// Is the search over?
    over: bool,
}

impl<B: Target> OnlineTuner<B> {
    pub fn new<T: Real>(
        comm: &Comm,
        problem: Problem,
        [given, start]: [Choice; 2],
        file: WisdomFile,
        device: B::Handle,
    ) -> Self {
        let search = || Box::new(OnlineSearch::new(comm, &problem, [&given, &start], T::PRECISION));
        let search = (comm.rank() == 0).then(search);
        OnlineTuner { device, comm: comm.clone(), problem, given, file, search, pending: None, over: false }
    }

    /// Replaces the plan by one of the pending choice. Collective.
    fn prepare<T: Real>(&mut self, plan: &mut Plan<T, B>) -> Result<()> {
        while let Some(choice) = self.pending.take() {
            match Draft::on(&self.comm, &self.problem, choice, &self.device)?.build_if_it_fits()? {
                Some(other) => *plan = other,
                None => {
                    let next = self.search.as_mut().map(|search| search.choice_failed());
                    self.follow::<T>(next)?;
                }
            }
        }
        Ok(())
    }

    /// Follows the decision of rank 0, which other ranks do not know yet. Collective.
    fn follow<T: Real>(&mut self, decision: Option<SearchStep>) -> Result<()> {
        let text = serde_json::to_vec(&decision).map_err(Error::other)?;
        match serde_json::from_slice(&self.comm.all_gather(&text)?[0]).map_err(Error::other)? {
            None | Some(SearchStep::Continue) => {}
            Some(SearchStep::Try(choice)) => self.pending = Some(*choice),
            Some(SearchStep::Finish(outcome)) => {
                wisdom::record::<T>(&self.comm, &self.problem, &self.given, &outcome, &self.file);
                (self.pending, self.over) = (Some(outcome.choice), true);
            }
        }
        Ok(())
    }
}

impl<T: Real, B: Target> Draft<T, B> {
    /// As [`build`](Self::build); `None`, on every rank, if one has too little memory. On transports that do not
    /// expose all memory this is an error.
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
        let next = self.search.as_mut().map(|search| search.add_time(kind, seconds));
        self.follow::<T>(next)
    }
}
