//! The call that is modelled, simulated and exported: `forward`, out of place.

use ferrier_plan::cost::{CallShapes, Setting, scheduled};
use ferrier_plan::schedule::{Direction, Schedule};
use ferrier_plan::tiles::Tiles;

use crate::job::Job;

/// `forward`, out of place.
pub(crate) const FORWARD: (Direction, bool) = (Direction::Forward, false);

/// A job's `forward`, scheduled.
pub(crate) struct ForwardCall<'a> {
    job: &'a Job<'a>,
    pub setting: Setting<'a>,
    pub schedule: Schedule,
    pub cuts: Vec<Tiles>,
}

impl<'a> ForwardCall<'a> {
    pub fn new(job: &'a Job<'a>) -> Self {
        let setting = job.setting();
        let (schedule, cuts) = scheduled(&job.recipe, FORWARD.0, FORWARD.1, &setting);
        ForwardCall { job, setting, schedule, cuts }
    }

    pub fn shapes(&self) -> CallShapes<'_> {
        CallShapes {
            recipe: &self.job.recipe,
            schedule: &self.schedule,
            cuts: &self.cuts,
            kind: FORWARD,
            setting: &self.setting,
            machine: &self.job.machine,
        }
    }
}
