//! `ferrier wisdom`: results of tuning.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ferrier::wisdom::{Entry, Wisdom, user_file};
use ferrier_bench::table::{age, digits, left_columns, shape_text};

use super::choice_text::choice_text;
use crate::failure::{Failure, Outcome, fail};
use crate::print;

/// `ferrier wisdom`.
#[derive(Args, Debug)]
pub struct WisdomArgs {
    /// Wisdom file [default: FERRIER_WISDOM, else the user's file]
    #[arg(long, value_name = "FILE", global = true)]
    pub wisdom: Option<PathBuf>,
    #[command(subcommand)]
    pub what: What,
}

/// The operation.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Print one line for each entry
    List {
        /// Write JSON, to stdout without FILE
        #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
        json: Option<PathBuf>,
    },
    /// Print entries as JSON
    Show {
        /// Ids of entries, as printed by `list` [default: all]
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Add the entries of other files; of two entries for the same problem the newer one is kept
    Merge {
        /// Wisdom files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Remove entries
    Forget {
        /// Ids of entries, as printed by `list`
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// Remove all entries
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read or written; an unknown entry.
pub fn run(args: &WisdomArgs) -> Outcome {
    let Some(path) = args.wisdom.clone().or_else(user_file) else {
        return fail("there is no wisdom file: FERRIER_WISDOM is off, or there is no home folder");
    };
    match &args.what {
        What::List { json } => {
            let wisdom = Wisdom::read(&path)?;
            let entries: Vec<&Entry> = wisdom.entries().collect();
            match json {
                Some(to) => print::json(to, &entries),
                None => print::say(&format!("{}\n{}", path.display(), list(&entries))),
            }
        }
        What::Show { ids } => {
            let wisdom = Wisdom::read(&path)?;
            check_ids(&wisdom, ids)?;
            let wanted = |entry: &&Entry| ids.is_empty() || ids.contains(&entry.id());
            print::json("-".as_ref(), &wisdom.entries().filter(wanted).collect::<Vec<_>>())
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
            print::say(&format!("{new} new in {}", path.display()))
        }
        What::Forget { ids, all } => {
            // `update` would set aside a file that cannot be read; `read` fails first.
            check_ids(&Wisdom::read(&path)?, ids)?;
            let mut gone = 0;
            let which = |entry: &Entry| *all || ids.contains(&entry.id());
            Wisdom::update(&path, |wisdom| gone = wisdom.forget(which))?;
            print::say(&format!("{gone} forgotten in {}", path.display()))
        }
    }
}

fn check_ids(wisdom: &Wisdom, ids: &[String]) -> Outcome {
    let known: Vec<String> = wisdom.entries().map(Entry::id).collect();
    match ids.iter().find(|id| !known.contains(id)) {
        Some(id) => Err(Failure::new(format!("there is no entry {id}; `ferrier wisdom list` prints all"))),
        None => Ok(()),
    }
}

fn list(entries: &[&Entry]) -> String {
    if entries.is_empty() {
        return "nothing is known\n".into();
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let row = |entry: &&Entry| {
        let kinds = entry.problem.kinds;
        let kind = match kinds.iter().all(|kind| matches!(kind.name(), "none" | "c2c" | "r2c")) {
            true if kinds.contains(&ferrier::Kind::Real) => "r2c".into(),
            true => "c2c".into(),
            false => kinds.map(ferrier::Kind::name).join(","),
        };
        vec![
            format!(
                "{} {} {kind} {}",
                entry.id(),
                shape_text(&entry.problem.shape),
                entry.problem.precision.name()
            ),
            format!("{}x{} {}", entry.machine.ranks, entry.machine.threads, entry.machine.transport),
            digits(entry.best_ms),
            digits(entry.default_ms / entry.best_ms),
            age(now.saturating_sub(entry.found)),
            choice_text(&entry.choice),
        ]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    left_columns(&["entry", "ranks x threads", "ms", "speed-up", "age", "choice"], &rows)
}
