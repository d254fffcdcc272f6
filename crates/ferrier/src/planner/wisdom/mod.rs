//! Wisdom: what was learned about problems on machines, in one file.
//!
//! `Plan::new` looks there by itself, on rank 0; all ranks obey. Wisdom
//! changes how fast a plan is, and bits only where it changes the order of the
//! axes or the kernel; in `reproducible` mode never.
//!
//! The file is `FERRIER_WISDOM`, or `ferrier/wisdom.json` in the user's data
//! folder (`XDG_DATA_HOME`, else `~/.local/share`); `FERRIER_WISDOM=off` means
//! none. A file that cannot be used or written is a warning, never a failure.

mod file;
mod key;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use key::{MachineKey, ProblemKey};

use crate::planner::known::now;
use crate::planner::target::Advice;
use crate::planner::tune::{self, Effort, Options, Outcome};
use crate::{Choice, Comm, Error, MachineSpeeds, Problem, Real, Result, design};
use file::There;

pub use crate::planner::known::Known;

/// Where wisdom comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// The user's file.
    #[default]
    User,
    /// This file.
    File(PathBuf),
    /// Nowhere.
    Nothing,
}

impl Source {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Source::User => user_file(),
            Source::File(path) => Some(path.clone()),
            Source::Nothing => None,
        }
    }
}

/// The user's file of wisdom; `None` where he wants none or has no place for it.
pub fn user_file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = variable("FERRIER_WISDOM") {
        return (!named.eq_ignore_ascii_case("off")).then(|| named.into());
    }
    // The standard says that relative paths are to be ignored.
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let data = data.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))?;
    Some(data.join("ferrier/wisdom.json"))
}

/// What was learned about one problem on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What is to be transformed.
    pub problem: ProblemKey,
    /// On what.
    pub machine: MachineKey,
    /// What was fastest.
    pub choice: Choice,
    /// Milliseconds of a transform before tuning.
    pub default_ms: f64,
    /// Milliseconds of a transform with `choice`.
    pub best_ms: f64,
    /// How many choices were run.
    pub trials: usize,
    /// How long that took.
    pub seconds: f64,
    /// How the choices were searched.
    pub method: String,
    /// When, in seconds since 1970.
    pub found: u64,
}

impl Entry {
    /// Eight digits that name this problem on this machine.
    pub fn id(&self) -> String {
        let text = serde_json::to_string(&(&self.problem, &self.machine)).unwrap_or_default();
        format!("{:08x}", key::fingerprint(text.bytes()) as u32)
    }

    fn is_about(&self, problem: &ProblemKey, machine: &MachineKey) -> bool {
        self.problem == *problem && self.machine == *machine
    }
}

/// How fast a machine moves bytes: what is estimated from where no plan was tuned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Which machine, and how it was used.
    pub machine: MachineKey,
    /// What was measured.
    pub speeds: MachineSpeeds,
    /// When, in seconds since 1970.
    pub found: u64,
}

/// What is in a file of wisdom.
#[derive(Clone, Debug, Default)]
pub struct Wisdom {
    /// As understood, and as they are in the file.
    entries: Vec<(Option<Entry>, Value)>,
}

impl Wisdom {
    /// What is in a file; nothing where there is none.
    ///
    /// # Errors
    /// [`Error::Wisdom`] where it is no file of wisdom, not whole, or newer
    /// than this library.
    pub fn read(path: &Path) -> Result<Wisdom> {
        match file::read(path)? {
            There::Nothing => Ok(Wisdom::default()),
            There::Whole(wisdom) => Ok(wisdom),
            There::Strange(reason) => Err(unusable(path, &reason)),
        }
    }

    /// Changes a file while no other process does. A file that cannot be used
    /// is kept under another name, with a warning.
    ///
    /// # Errors
    /// [`Error::Wisdom`] where it cannot be written; it is then as it was.
    pub fn update(path: &Path, change: impl FnOnce(&mut Wisdom)) -> Result<()> {
        if let Some((aside, reason)) = file::update(path, change)? {
            warn(&format!("{}; it is now {}", unusable(path, &reason), aside.display()));
        }
        Ok(())
    }

    /// All entries that this version understands.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter_map(|(entry, _)| entry.as_ref())
    }

    /// The experience with a problem on a machine.
    pub fn find(&self, problem: &ProblemKey, machine: &MachineKey) -> Option<&Entry> {
        self.entries().find(|entry| entry.is_about(problem, machine))
    }

    /// All measured speeds.
    pub fn measured(&self) -> impl Iterator<Item = Measured> {
        let others =
            self.entries.iter().filter(|(entry, raw)| entry.is_none() && raw.get("speeds").is_some());
        others.filter_map(|(_, raw)| serde_json::from_value(raw.clone()).ok())
    }

    /// The speeds of a machine: measured with as many ranks, else of one that
    /// differs in nothing but the ranks and threads; the latest.
    pub fn speeds(&self, machine: &MachineKey) -> Option<MachineSpeeds> {
        let alike = |other: &MachineKey| {
            let MachineKey { ranks, nodes, threads, .. } = machine.clone();
            (other.nodes > 1) == (nodes > 1)
                && *machine == MachineKey { ranks, nodes, threads, ..other.clone() }
        };
        let known = self.measured().filter(|known| alike(&known.machine));
        known.max_by_key(|known| (known.machine == *machine, known.found)).map(|known| known.speeds)
    }

    /// Adds what was measured; it takes the place of older speeds of the same machine.
    pub fn add_speeds(&mut self, measured: &Measured) {
        let same = |raw: &Value| {
            raw.get("speeds").is_some()
                && raw.get("machine") == serde_json::to_value(&measured.machine).ok().as_ref()
        };
        self.entries.retain(|(entry, raw)| entry.is_some() || !same(raw));
        self.entries.push((None, serde_json::to_value(measured).unwrap_or_default()));
    }

    /// Adds an entry; it takes the place of an older one about the same.
    pub fn add(&mut self, entry: Entry) {
        let same = |known: &Option<Entry>| {
            known.as_ref().is_some_and(|known| known.is_about(&entry.problem, &entry.machine))
        };
        self.entries.retain(|(known, _)| !same(known));
        let raw = serde_json::to_value(&entry).unwrap_or_default();
        self.entries.push((Some(entry), raw));
    }

    /// Takes in another's entries; of two about the same the younger one is
    /// kept. How many were new.
    pub fn merge(&mut self, other: Wisdom) -> usize {
        let mut new = 0;
        for (entry, raw) in other.entries {
            match entry {
                Some(entry) => {
                    let known = self.find(&entry.problem, &entry.machine);
                    if known.is_none_or(|known| known.found < entry.found) {
                        self.add(entry);
                        new += 1;
                    }
                }
                None if self.entries.iter().all(|(_, known)| *known != raw) => {
                    self.entries.push((None, raw));
                    new += 1;
                }
                None => {}
            }
        }
        new
    }

    /// Drops the entries that `which` names; how many.
    pub fn forget(&mut self, which: impl Fn(&Entry) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|(entry, _)| !entry.as_ref().is_some_and(&which));
        before - self.entries.len()
    }
}

fn unusable(path: &Path, reason: &str) -> Error {
    Error::wisdom(path, format!("the wisdom in {} cannot be used: {reason}", path.display()))
}

/// Says something on stderr, once.
fn warn(text: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.get_or_insert_default().insert(text.to_string()) {
        eprintln!("ferrier: warning: {text}");
    }
}

/// What is known about a problem or, with some effort, found out and
/// remembered. Collective.
///
/// # Errors
/// Those of the trials. Trouble with the file is a warning.
pub(crate) fn advice<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    effort: Effort,
    source: &Source,
) -> Result<Advice> {
    let given = given.clone();
    if effort == Effort::Estimate && *source == Source::Nothing {
        return Ok(Advice::none(given));
    }
    let nodes = comm.node_count();
    let path = if comm.rank() == 0 { source.path() } else { None };
    let advice = path.as_deref().and_then(|path| recall::<T>(comm, problem, &given, nodes, path));
    let Some(options) = Options::of(effort) else {
        // What was tuned was judged by what is usual, as are trials; and bits must not depend on a file.
        let estimated = effort == Effort::Estimate && !problem.reproducible;
        let speeds = path.filter(|_| estimated).and_then(|path| cached(&path)).and_then(|wisdom| {
            let machine = MachineKey::new(comm, nodes);
            wisdom.speeds(&machine)
        });
        return Ok(advice.unwrap_or(Advice { speeds, ..Advice::none(given) }));
    };
    // Everybody must know whether there will be trials.
    let known = comm.all_gather(&[u8::from(advice.is_some())])?[0] == [1];
    if known {
        return Ok(advice.unwrap_or(Advice::none(given)));
    }
    let outcome = tune::tune::<T>(comm, problem, &given, &options, &mut |_| ())?;
    let speeds = crate::measure_speeds(comm)?;
    note::<T>(comm, problem, &given, &outcome, Some(speeds), source);
    Ok(Advice::none(outcome.choice))
}

/// The keys of a problem on these ranks.
///
/// # Errors
/// Layouts that do not fit.
fn about<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    nodes: usize,
) -> Result<(ProblemKey, MachineKey)> {
    let problem = ProblemKey::new(problem, given, T::PRECISION, comm.size())?;
    Ok((problem, MachineKey::new(comm, nodes)))
}

/// Adds what tuning found to a file.
fn remember(
    path: &Path,
    (problem, machine): (ProblemKey, MachineKey),
    outcome: &Outcome,
    speeds: Option<MachineSpeeds>,
) -> Result<()> {
    let measured = speeds.map(|speeds| Measured { machine: machine.clone(), speeds, found: now() });
    let entry = Entry {
        problem,
        machine,
        choice: outcome.choice.clone(),
        default_ms: outcome.default_ms,
        best_ms: outcome.best_ms,
        trials: outcome.measured,
        seconds: outcome.seconds,
        method: outcome.method.clone(),
        found: now(),
    };
    Wisdom::update(path, |wisdom| {
        wisdom.add(entry);
        measured.iter().for_each(|measured| wisdom.add_speeds(measured));
    })
}

/// Remembers what was found, on rank 0; where that cannot be done, says so.
pub(crate) fn note<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    outcome: &Outcome,
    speeds: Option<MachineSpeeds>,
    source: &Source,
) {
    let Some(path) = source.path().filter(|_| comm.rank() == 0) else { return };
    let about = about::<T>(comm, problem, given, comm.node_count());
    let learned = about.and_then(|about| remember(&path, about, outcome, speeds));
    learned.unwrap_or_else(|error| warn(&format!("{error}; what was learned is not remembered")));
}

/// The keys of a problem on these ranks, on rank 0 and the same on all.
/// Collective.
///
/// # Errors
/// Layouts that do not fit, or that differ between ranks.
pub fn keys<T: Real>(comm: &Comm, problem: &Problem, given: &Choice) -> Result<(ProblemKey, MachineKey)> {
    let problem = crate::planner::agree::<T>(comm, "cpu", problem.clone(), given, Effort::Estimate)?;
    about::<T>(comm, &problem, given, comm.node_count())
}

/// Remembers the outcome of [`tune`](tune::tune()), in `path` or in the
/// user's file, and how fast these ranks move bytes; where, on rank 0. Collective.
///
/// # Errors
/// [`Error::Wisdom`], on rank 0, where it cannot be written.
pub fn learn<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    outcome: &Outcome,
    path: Option<&Path>,
) -> Result<Option<PathBuf>> {
    let about = keys::<T>(comm, problem, given)?;
    let speeds = crate::measure_speeds(comm)?;
    let path = path.map(Path::to_path_buf).or_else(user_file).filter(|_| comm.rank() == 0);
    if let Some(path) = &path {
        remember(path, about, outcome, Some(speeds))?;
    }
    Ok(path)
}

/// What a file knows about a problem, if it can be used here.
fn recall<T: Real>(
    comm: &Comm,
    problem: &Problem,
    given: &Choice,
    nodes: usize,
    path: &Path,
) -> Option<Advice> {
    let wisdom = cached(path)?;
    let (key, machine) = about::<T>(comm, problem, given, nodes).ok()?;
    let entry = wisdom.find(&key, &machine)?;
    let mut choice = entry.choice.clone();
    if problem.reproducible {
        // Whatever the file says: bits must not depend on it.
        (choice.axes, choice.kernel) = (given.axes.clone(), given.kernel.clone());
    }
    // Files are edited and merged by people; rank 0 alone must not fail where the others go on.
    let works = design(problem, &choice, T::PRECISION, comm.size()).and_then(|recipe| {
        let possible = tune::works(crate::exchange::find(&recipe.exchange)?, comm);
        possible.then_some(()).ok_or_else(|| Error::choice("exchange", "these ranks share no memory"))
    });
    match works {
        Ok(()) => {
            let (file, id, found) = (path.to_path_buf(), entry.id(), entry.found);
            Some(Advice { known: Some(Known { file, id, found }), ..Advice::none(choice) })
        }
        Err(error) => {
            warn(&format!("entry {} of the wisdom in {} is not used: {error}", entry.id(), path.display()));
            None
        }
    }
}

/// What tells one version of a file from the next.
#[derive(PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    changed: Option<SystemTime>,
    length: u64,
    /// Clocks of file systems are coarse, but a file that was renamed into place is another one.
    number: u64,
}

impl Stamp {
    fn new(path: &Path, there: &std::fs::Metadata) -> Self {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(there);
        #[cfg(not(unix))]
        let number = 0;
        Stamp { path: path.to_path_buf(), changed: there.modified().ok(), length: there.len(), number }
    }
}

/// A file's wisdom, parsed once; `None` where there is none to be had.
fn cached(path: &Path) -> Option<Arc<Wisdom>> {
    static LAST: Mutex<Option<(Stamp, Arc<Wisdom>)>> = Mutex::new(None);
    let stamp = Stamp::new(path, &std::fs::metadata(path).ok()?);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, wisdom)) = &*last
        && *known == stamp
    {
        return Some(wisdom.clone());
    }
    match Wisdom::read(path) {
        Ok(wisdom) => {
            let wisdom = Arc::new(wisdom);
            *last = Some((stamp, wisdom.clone()));
            Some(wisdom)
        }
        Err(error) => {
            warn(&error.to_string());
            None
        }
    }
}
