//! Looks up choices in the wisdom file, and records results of tuning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entries::{Entry, Measured, Wisdom};
use super::file::{WisdomFile, cached, user_file, warn};
use super::key::{MachineKey, ProblemKey};
use crate::planner::agree::StartChoice;
use crate::planner::entry_ref::EntryRef;
use crate::planner::tune::{self, Effort, Options, Outcome};
use crate::{Choice, Comm, Error, MachineSpeeds, Problem, Real, Result, design};

/// The choice that planning starts from: the recorded one of this problem or, if the effort allows trials, the result
/// of tuning, which is recorded. Collective.
///
/// # Errors
/// Those of the trials. A file that cannot be read or written is a warning.
pub(crate) fn start_choice<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    effort: Effort,
    file: &WisdomFile,
) -> Result<StartChoice> {
    let unknown = || StartChoice::open(given.clone());
    if effort == Effort::Estimate && *file == WisdomFile::Off {
        return Ok(unknown());
    }
    let path = if comm.rank() == 0 { file.path() } else { None };
    let found = path.as_deref().and_then(|path| find::<T>(comm, problem, given, path));
    let Some(options) = Options::of(effort) else {
        // Trials assume the default speeds, so tuned choices do too. Reproducible bits must not depend on a file.
        let estimated = effort == Effort::Estimate && !problem.reproducible;
        let wisdom = path.filter(|_| estimated).and_then(|path| cached(&path));
        let speeds = wisdom.and_then(|wisdom| wisdom.speeds(&MachineKey::new(comm)));
        return Ok(found.unwrap_or(StartChoice { speeds, ..unknown() }));
    };
    // All ranks must know whether there will be trials.
    if comm.all_gather(&[u8::from(found.is_some())])?[0] == [1] {
        return Ok(found.unwrap_or_else(unknown));
    }
    let outcome = tune::tune::<T>(comm, problem, given, &options, &mut |_| ())?;
    record::<T>(comm, problem, given, &outcome, file);
    Ok(StartChoice::from(outcome.choice))
}

/// The keys of a problem that the ranks have agreed on.
///
/// # Errors
/// Layouts that do not fit.
fn agreed_keys<T: Real>(comm: &Comm, problem: &Problem, given: &Choice) -> Result<(ProblemKey, MachineKey)> {
    Ok((ProblemKey::new(problem, given, T::PRECISION, comm.size())?, MachineKey::new(comm)))
}

/// The keys of a problem on these ranks; the same on all. Collective.
///
/// # Errors
/// Layouts that do not fit, or that differ between ranks.
pub fn keys<T: Real>(comm: &Comm, problem: &Problem, given: &Choice) -> Result<(ProblemKey, MachineKey)> {
    let problem = crate::planner::agree::<T>(comm, "cpu", problem.clone(), given, Effort::Estimate)?;
    agreed_keys::<T>(comm, &problem, given)
}

/// Adds the result of tuning to a file.
fn save(path: &Path, (problem, machine): (ProblemKey, MachineKey), outcome: &Outcome) -> Result<()> {
    let measured = outcome.speeds.map(|speeds| Measured::new(machine.clone(), speeds));
    let entry = Entry {
        default_ms: outcome.default_ms,
        best_ms: outcome.best_ms,
        trials: outcome.measured,
        seconds: outcome.seconds,
        method: outcome.method.clone(),
        ..Entry::new(problem, machine, outcome.choice.clone())
    };
    Wisdom::update(path, |wisdom| {
        wisdom.add(entry);
        measured.iter().for_each(|measured| wisdom.add_speeds(measured));
    })
}

/// Adds the result of tuning to the file, on rank 0. An error is a warning.
pub(crate) fn record<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    outcome: &Outcome,
    file: &WisdomFile,
) {
    let Some(path) = file.path().filter(|_| comm.rank() == 0) else { return };
    let keys = agreed_keys::<T>(comm, problem, given);
    if let Err(error) = keys.and_then(|keys| save(&path, keys, outcome)) {
        warn(&format!("{error}; the result of tuning is not recorded"));
    }
}

/// Adds the result of [`tune`](tune::tune()) and the measured speeds of these ranks to `path` or the user's file.
/// Returns the file, on rank 0. Collective.
///
/// # Errors
/// [`Error::Wisdom`], on rank 0, if the file cannot be written.
pub fn learn<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    outcome: &Outcome,
    path: Option<&Path>,
) -> Result<Option<PathBuf>> {
    let keys = keys::<T>(comm, problem, given)?;
    let path = path.map(Path::to_path_buf).or_else(user_file).filter(|_| comm.rank() == 0);
    if let Some(path) = &path {
        save(path, keys, outcome)?;
    }
    Ok(path)
}

/// Measures the speeds of these ranks and adds them to `path` or the user's file, so that plans are made by them.
/// Returns the speeds, and the file on rank 0. Transforms are measured for so much time ([`measure_speeds`](crate::measure_speeds)). Collective;
/// allocates.
///
/// # Errors
/// Too little memory; [`Error::Wisdom`], on rank 0, if the file cannot be written.
pub fn measure_machine(
    comm: &Comm,
    time: Duration,
    path: Option<&Path>,
) -> Result<(MachineSpeeds, Option<PathBuf>)> {
    let speeds = crate::measure_speeds(comm, time)?;
    let path = path.map(Path::to_path_buf).or_else(user_file).filter(|_| comm.rank() == 0);
    if let Some(path) = &path {
        let measured = Measured::new(MachineKey::new(comm), speeds);
        Wisdom::update(path, |wisdom| wisdom.add_speeds(&measured))?;
    }
    Ok((speeds, path))
}

/// The choice that a file has for a problem; `None`, with a warning, if it does not work here.
fn find<T: Real>(comm: &Comm, problem: &Problem, given: &Choice, path: &Path) -> Option<StartChoice> {
    let wisdom = cached(path)?;
    let (key, machine) = agreed_keys::<T>(comm, problem, given).ok()?;
    let entry = wisdom.find(&key, &machine)?;
    let mut choice = entry.choice.clone();
    if problem.reproducible {
        // Bits must not depend on the file.
        (choice.axes, choice.kernel) = (given.axes.clone(), given.kernel.clone());
    }
    // Files may be edited by hand. An error here would occur on rank 0 alone, and the other ranks would wait.
    let usable = design(problem, &choice, T::PRECISION, comm.size()).and_then(|recipe| {
        let possible = tune::works(crate::exchange::find(&recipe.exchange)?, comm);
        possible.then_some(()).ok_or_else(|| Error::choice("exchange", "these ranks share no memory"))
    });
    if let Err(error) = usable {
        warn(&format!("entry {} of the wisdom in {} is not used: {error}", entry.id(), path.display()));
        return None;
    }
    let wisdom = EntryRef { file: path.to_path_buf(), id: entry.id(), found: entry.found };
    Some(StartChoice { wisdom: Some(wisdom), ..choice.into() })
}
