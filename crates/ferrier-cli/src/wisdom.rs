//! `ferrier wisdom`: what tuning has learned.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ferrier::wisdom::{Entry, Wisdom, user_file};

use crate::failure::{Failure, Outcome, fail};
use crate::report::{self, digits};
use crate::tune::{described, in_words};

/// `ferrier wisdom`.
#[derive(Args, Debug)]
pub struct WisdomArgs {
    /// File of wisdom [default: FERRIER_WISDOM, else the user's own]
    #[arg(long, value_name = "FILE", global = true)]
    pub wisdom: Option<PathBuf>,
    #[command(subcommand)]
    pub what: What,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum What {
    /// One line for each entry
    List {
        /// Write JSON, to stdout if no file is named
        #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
    },
    /// All about some entries, as JSON
    Show {
        /// Names of entries, as `list` prints them [default: all]
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Take in what other files know; of two entries about the same the younger one is kept
    Merge {
        /// Files of wisdom
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Drop entries
    Forget {
        /// Names of entries, as `list` prints them
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// Drop all of them
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be used or written; an entry that is not there.
pub fn run(args: &WisdomArgs) -> Outcome {
    let Some(path) = args.wisdom.clone().or_else(user_file) else {
        return fail("there is no file of wisdom: FERRIER_WISDOM is off, or there is no home");
    };
    match &args.what {
        What::List { json } => {
            let wisdom = Wisdom::read(&path)?;
            let entries: Vec<&Entry> = wisdom.entries().collect();
            match json {
                Some(to) => report::json(to, &entries),
                None => report::say(&format!("{}\n{}", path.display(), list(&entries))),
            }
        }
        What::Show { ids } => {
            let wisdom = Wisdom::read(&path)?;
            check_ids(&wisdom, ids)?;
            let wanted = |entry: &&Entry| ids.is_empty() || ids.contains(&entry.id());
            report::json("-".as_ref(), &wisdom.entries().filter(wanted).collect::<Vec<_>>())
        }
        What::Merge { files } => {
            let mut others = Vec::new();
            for file in files {
                if !file.exists() {
                    return fail(format!("cannot read {}: there is no such file", file.display()));
                }
                others.push(Wisdom::read(file)?);
            }
            let mut new = 0;
            Wisdom::update(&path, |wisdom| new = others.into_iter().map(|other| wisdom.merge(other)).sum())?;
            report::say(&format!("{new} new in {}", path.display()))
        }
        What::Forget { ids, all } => {
            // What cannot be read is not set aside for being asked about.
            check_ids(&Wisdom::read(&path)?, ids)?;
            let mut gone = 0;
            let which = |entry: &Entry| *all || ids.contains(&entry.id());
            Wisdom::update(&path, |wisdom| gone = wisdom.forget(which))?;
            report::say(&format!("{gone} forgotten in {}", path.display()))
        }
    }
}

fn check_ids(wisdom: &Wisdom, ids: &[String]) -> Outcome {
    let known: Vec<String> = wisdom.entries().map(Entry::id).collect();
    match ids.iter().find(|id| !known.contains(id)) {
        Some(id) => Err(Failure::new(format!("no entry is called {id}; `ferrier wisdom list` names them"))),
        None => Ok(()),
    }
}

fn list(entries: &[&Entry]) -> String {
    if entries.is_empty() {
        return "nothing is known\n".into();
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let row = |entry: &&Entry| {
        let [x, y, z] = entry.problem.shape;
        let kinds = entry.problem.kinds;
        let kind = match kinds.iter().all(|kind| matches!(kind.name(), "none" | "c2c" | "r2c")) {
            true if kinds.contains(&ferrier::Kind::Real) => "r2c".into(),
            true => "c2c".into(),
            false => kinds.map(ferrier::Kind::name).join(","),
        };
        vec![
            format!("{} {x}x{y}x{z} {kind} {}", entry.id(), entry.problem.precision.name()),
            format!("{}x{} {}", entry.machine.ranks, entry.machine.threads, entry.machine.transport),
            digits(entry.best_ms),
            digits(entry.default_ms / entry.best_ms),
            age(now.saturating_sub(entry.found)),
            described(&entry.choice),
        ]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    in_words(&["entry", "ranks x threads", "ms", "speed-up", "age", "choice"], &rows)
}

/// A number of seconds for people.
pub fn age(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
