//! The plans that a contest compares.

use std::time::Duration;

use ferrier::{Choice, Comm, Overlap, Precision, Real, Tiling};

use super::measure::measure;
use super::options::ContestOptions;
use super::results::ContestResult;
use super::variants::{self, VariantEntry};
use crate::failure::Outcome;

/// The plans that a contest compares.
pub enum Comparison {
    /// One plan.
    One(Choice),
    /// Several tilings, one after the other.
    Sweep(Choice, Vec<Tiling>, Vec<Overlap>),
    /// Variants of overlap in turn, tuned within a time.
    Variants(Choice, Vec<&'static VariantEntry>, Duration),
}

impl Comparison {
    /// Runs the contest. Collective.
    ///
    /// # Errors
    /// Those of the library; a missing peer.
    pub fn run(&self, comm: &Comm, options: &ContestOptions<'_>) -> Outcome<ContestResult> {
        match options.peer_problem.precision {
            Precision::F32 => self.run_as::<f32>(comm, options),
            Precision::F64 => self.run_as::<f64>(comm, options),
        }
    }

    fn run_as<T: Real>(&self, comm: &Comm, options: &ContestOptions<'_>) -> Outcome<ContestResult> {
        match self {
            Comparison::One(choice) => measure::<T>(comm, options, std::slice::from_ref(choice)),
            Comparison::Variants(given, entries, budget) => {
                let choices = variants::choices::<T>(comm, options, given, entries, *budget)?;
                measure::<T>(comm, options, &choices)
            }
            Comparison::Sweep(given, _, overlaps) => {
                let mut all = ContestResult::default();
                for overlap in overlaps {
                    let choice = given.clone().overlap(overlap.clone());
                    let mut one = measure::<T>(comm, options, &[choice])?;
                    one.candidates.splice(0..0, all.candidates);
                    all = one;
                }
                Ok(all)
            }
        }
    }
}
