//! Entries of wisdom: results of tuning, and speeds of machines.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::{MachineKey, ProblemKey, fingerprint};
use crate::planner::entry_ref::now;
use crate::{Choice, MachineSpeeds};

/// The result of tuning one problem on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The problem.
    pub problem: ProblemKey,
    /// The machine.
    pub machine: MachineKey,
    /// The fastest choice.
    pub choice: Choice,
    /// Milliseconds of a transform before tuning.
    pub default_ms: f64,
    /// Milliseconds of a transform with `choice`.
    pub best_ms: f64,
    /// Number of choices that were run.
    pub trials: usize,
    /// Duration of the search.
    pub seconds: f64,
    /// Name of the search method.
    pub method: String,
    /// Time of the result, in seconds since 1970.
    pub found: u64,
}

impl Entry {
    /// An entry of now; times and number of trials are zero.
    pub fn new(problem: ProblemKey, machine: MachineKey, choice: Choice) -> Self {
        let (default_ms, best_ms, trials, seconds, method) = (0.0, 0.0, 0, 0.0, String::new());
        Entry { problem, machine, choice, default_ms, best_ms, trials, seconds, method, found: now() }
    }

    /// Eight hexadecimal digits that identify this problem on this machine.
    pub fn id(&self) -> String {
        let text = serde_json::to_string(&(&self.problem, &self.machine)).unwrap_or_default();
        format!("{:08x}", fingerprint(text.bytes()) as u32)
    }

    fn matches(&self, problem: &ProblemKey, machine: &MachineKey) -> bool {
        self.problem == *problem && self.machine == *machine
    }
}

/// Speeds of a machine. The planner estimates with them if there is no entry for a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measured {
    /// The machine.
    pub machine: MachineKey,
    /// Its speeds.
    pub speeds: MachineSpeeds,
    /// Time of the result, in seconds since 1970.
    pub found: u64,
}

impl Measured {
    /// Speeds that were measured now.
    pub fn new(machine: MachineKey, speeds: MachineSpeeds) -> Self {
        Measured { machine, speeds, found: now() }
    }
}

/// The contents of a wisdom file.
#[derive(Clone, Debug, Default)]
pub struct Wisdom {
    /// Each entry as parsed, and its JSON text; `None` for those that this version cannot parse.
    pub(super) entries: Vec<(Option<Entry>, Value)>,
}

impl Wisdom {
    /// All entries that this version can parse.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter_map(|(entry, _)| entry.as_ref())
    }

    /// The entry of a problem on a machine.
    pub fn find(&self, problem: &ProblemKey, machine: &MachineKey) -> Option<&Entry> {
        self.entries().find(|entry| entry.matches(problem, machine))
    }

    /// All measured speeds.
    pub fn measured(&self) -> impl Iterator<Item = Measured> {
        let others =
            self.entries.iter().filter(|(entry, raw)| entry.is_none() && raw.get("speeds").is_some());
        others.filter_map(|(_, raw)| serde_json::from_value(raw.clone()).ok())
    }

    /// The latest speeds of a machine: with the same ranks and threads if there are such, else with others.
    pub fn speeds(&self, machine: &MachineKey) -> Option<MachineSpeeds> {
        let alike = |other: &MachineKey| {
            let MachineKey { ranks, nodes, threads, .. } = machine.clone();
            (other.nodes > 1) == (nodes > 1)
                && *machine == MachineKey { ranks, nodes, threads, ..other.clone() }
        };
        let known = self.measured().filter(|known| alike(&known.machine));
        known.max_by_key(|known| (known.machine == *machine, known.found)).map(|known| known.speeds)
    }

    /// Adds speeds; they replace older speeds of the same machine.
    pub fn add_speeds(&mut self, measured: &Measured) {
        let same = |raw: &Value| {
            raw.get("speeds").is_some()
                && raw.get("machine") == serde_json::to_value(&measured.machine).ok().as_ref()
        };
        self.entries.retain(|(entry, raw)| entry.is_some() || !same(raw));
        self.entries.push((None, serde_json::to_value(measured).unwrap_or_default()));
    }

    /// Adds an entry; it replaces an older one of the same problem and machine.
    pub fn add(&mut self, entry: Entry) {
        let same = |known: &Option<Entry>| {
            known.as_ref().is_some_and(|known| known.matches(&entry.problem, &entry.machine))
        };
        self.entries.retain(|(known, _)| !same(known));
        let raw = serde_json::to_value(&entry).unwrap_or_default();
        self.entries.push((Some(entry), raw));
    }

    /// Adds all entries of `other`; of two with the same problem and machine the younger one is kept. Returns the
    /// number of entries that were added.
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

    /// Removes the entries for which `which` is true; returns their number.
    pub fn forget(&mut self, which: impl Fn(&Entry) -> bool) -> usize {
        let before = self.entries.len();
        self.entries.retain(|(entry, _)| !entry.as_ref().is_some_and(&which));
        before - self.entries.len()
    }
}
