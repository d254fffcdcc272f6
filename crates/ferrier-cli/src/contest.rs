//! What `ferrier bench` compares with what.

use std::time::Duration;

use ferrier::{Choice, Comm, Overlap, Real, Tiling};

use crate::args::BenchArgs;
use crate::failure::{Outcome, fail};
use crate::parts::Number;
use crate::setup;
use crate::timing::{Measured, Work, measure};
use crate::variants;

/// Time to tune variants, unless the user says how long.
const BUDGET: Duration = Duration::from_secs(20);

/// What is compared.
pub enum Job {
    /// Nothing: one plan.
    One(Choice),
    /// Tiles, one after the other.
    Sweep(Choice, Vec<Tiling>, Vec<Overlap>),
    /// Ways to overlap, in turn.
    Variants(Choice, Vec<&'static variants::Member>, Duration),
}

impl Job {
    /// What every rank does. Collective.
    ///
    /// # Errors
    /// Those of the library, and a peer that is not there.
    pub fn run<T: Real + Number + Into<f64>>(&self, comm: &Comm, work: &Work<'_>) -> Outcome<Measured> {
        match self {
            Job::One(choice) => measure::<T>(comm, work, std::slice::from_ref(choice)),
            Job::Variants(given, members, budget) => {
                let choices = variants::choices::<T>(comm, work, given, members, *budget)?;
                measure::<T>(comm, work, &choices)
            }
            Job::Sweep(given, _, overlaps) => {
                let mut all = Measured::default();
                for overlap in overlaps {
                    let choice = given.clone().overlap(overlap.clone());
                    let mut one = measure::<T>(comm, work, &[choice])?;
                    one.timed.splice(0..0, all.timed);
                    all = one;
                }
                Ok(all)
            }
        }
    }
}

/// What the options ask to compare.
///
/// # Errors
/// Options that do not go together; unknown names.
pub fn job(args: &BenchArgs) -> Outcome<Job> {
    let common = &args.problem.common;
    let choice = setup::named(common)?;
    let tilings = common.tiling.tilings(&args.problem.shape)?;
    let members = args.variants.iter().map(|name| variants::find(name)).collect::<Outcome<Vec<_>>>()?;
    if !members.is_empty() {
        if !tilings.is_empty() || args.svg.is_some() {
            return fail("--variants choose their tiles themselves: leave --tiles and --svg out");
        }
        return Ok(Job::Variants(choice, members, args.budget.unwrap_or(BUDGET)));
    }
    match tilings[..] {
        [] | [_] => {
            let overlap = common.tiling.overlap(&args.problem.shape)?;
            Ok(Job::One(choice.overlap(overlap)))
        }
        _ if !args.against.is_empty() => fail("a sweep over --tiles goes without --against"),
        _ => {
            let overlaps = tilings.iter().map(|tiling| common.tiling.lots(*tiling)).collect();
            Ok(Job::Sweep(choice, tilings, overlaps))
        }
    }
    .and_then(|job| match (&job, &args.svg) {
        (Job::One(_), Some(_)) => {
            fail("--svg draws --exchange-only or a sweep over --tiles, such as --tiles 4,8,16")
        }
        _ => Ok(job),
    })
}
