//! Times of other libraries, in turn with Ferrier's.

use std::time::Instant;

use ferrier::{Comm, Real};

use super::results::{PeerResult, worse};
use super::timed_blocks::wait_until_idle;
use crate::peers::{Peer, PeerProblem};
use crate::reference::{References, relative_error};
use crate::scalars::widened;
use crate::timing::{median, timed};

/// A peer and its times so far, for each of its plans.
pub struct PeerTimer<'a> {
    name: &'static str,
    peer: Peer,
    /// The ranks of a distributed peer.
    comm: Option<&'a Comm>,
    planning_ms: f64,
    seconds: Vec<Vec<f64>>,
    errors: Vec<f64>,
}

impl<'a> PeerTimer<'a> {
    /// Runs each plan once, to warm up and to measure its error.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn new<T: Real>(
        name: &'static str,
        (mut peer, planning_ms): (Peer, f64),
        comm: Option<&'a Comm>,
        problem: &PeerProblem,
        references: &References,
    ) -> ferrier::Result<Self> {
        let plans = peer.plan_count();
        let mut errors = Vec::new();
        for plan in 0..plans {
            peer.prepare::<T>(plan, problem);
            peer.run(plan);
            errors.push(relative_error(comm, references, |b, index| {
                peer.result::<T>(plan, b, index).map(widened)
            })?);
        }
        Ok(PeerTimer { name, peer, comm, planning_ms, seconds: vec![Vec::new(); plans], errors })
    }

    /// Times each plan `repetitions` times, one plan after the other. `warm`: each repetition runs once untimed before; in place,
    /// the array that this leaves in the caches of the peer's threads is transformed again.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn block<T: Real>(
        &mut self,
        problem: &PeerProblem,
        repetitions: usize,
        warm: bool,
    ) -> ferrier::Result<()> {
        for plan in 0..self.peer.plan_count() {
            wait_until_idle();
            for _ in 0..repetitions {
                self.peer.prepare::<T>(plan, problem);
                if warm {
                    self.peer.run(plan);
                }
                let seconds = match self.comm {
                    Some(comm) => timed(comm, || {
                        self.peer.run(plan);
                        Ok(())
                    })?,
                    None => {
                        let start = Instant::now();
                        self.peer.run(plan);
                        start.elapsed().as_secs_f64()
                    }
                };
                self.seconds[plan].push(seconds);
            }
        }
        Ok(())
    }

    /// The plan with the lower median.
    pub fn faster(self) -> PeerResult {
        let best = (0..self.seconds.len())
            .min_by(|&a, &b| median(&self.seconds[a]).total_cmp(&median(&self.seconds[b])))
            .unwrap_or(0);
        PeerResult {
            name: self.name,
            placement: self.peer.plan_name(best),
            seconds: self.seconds[best].clone(),
            error_forward: self.errors.iter().copied().fold(0.0, worse),
            version: self.peer.version,
            planning_ms: self.planning_ms,
        }
    }
}
