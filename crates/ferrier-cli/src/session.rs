//! Where the ranks of a run are: threads of this process, or the processes
//! that an `mpiexec` started. Who prints, and how errors end a run.
//!
//! Under MPI a failure is either *agreed* (every rank has the same one: the
//! first prints it, all end in order) or one rank's own, found in the middle
//! of work in which others may be waiting for it: that rank prints it and
//! ends the job.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use ferrier::Comm;

use crate::args::Common;
use crate::failure::{BAD_INPUT, Failure, Outcome, fail};
use crate::{report, setup, signals};

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod launched;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
#[path = "session/alone.rs"]
pub mod launched;

use launched::Launched;

/// The ranks of this run.
pub struct Session {
    launched: Option<Launched>,
}

impl Session {
    /// Joins the other processes of this launch, if there was one. Collective.
    ///
    /// # Errors
    /// Under a launcher whose library is not found or does not start.
    pub fn start() -> Outcome<Session> {
        Ok(Session { launched: Launched::start()? })
    }

    /// What MPI says of itself, where there is one.
    pub fn launched(&self) -> Option<&Launched> {
        self.launched.as_ref()
    }

    fn comm(&self) -> Option<&Comm> {
        self.launched.as_ref().map(Launched::comm)
    }

    /// Is this the process that prints?
    pub fn is_first(&self) -> bool {
        self.comm().is_none_or(|comm| comm.rank() == 0)
    }

    /// How many ranks there are.
    ///
    /// # Errors
    /// `--ranks` under MPI, where the launcher decides; numbers that no process can bear.
    pub fn size(&self, common: &Common) -> Outcome<usize> {
        setup::check_group(common)?;
        if let (Some(_), Some(wire)) = (self.comm(), common.wire) {
            return fail(format!("--wire {wire} is for the ranks of one process, not under MPI"));
        }
        match (self.comm(), common.ranks) {
            (None, ranks) => Ok(ranks.unwrap_or(1)),
            (Some(comm), None) => Ok(comm.size()),
            (Some(comm), Some(ranks)) => fail(format!(
                "--ranks {ranks}: under MPI the launcher says how many ranks there are (here {}); leave --ranks out, \
                 or set FERRIER_MPI=off to run without MPI",
                comm.size()
            )),
        }
    }

    /// Threads of each rank.
    pub fn threads(&self, common: &Common, ranks: usize) -> usize {
        let default = self.comm().map_or_else(|| (ferrier::machine::cores() / ranks).max(1), Comm::threads);
        common.threads.unwrap_or(default)
    }

    /// Runs `work` on every rank; what came back on the ranks of this process.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn run<R: Send>(
        &self,
        common: &Common,
        work: impl Fn(&Comm) -> Outcome<R> + Send + Sync,
    ) -> Outcome<Vec<R>> {
        if let Some(comm) = self.comm() {
            let comm = comm.clone().with_threads(self.threads(common, comm.size()));
            return Ok(vec![work(&comm)?]);
        }
        let ranks = ferrier::ranks(common.ranks.unwrap_or(1));
        let ranks = match common.threads {
            Some(threads) => ranks.threads(threads),
            None => ranks,
        };
        let ranks = match common.wire {
            Some(wire) => ranks.wire(wire),
            None => ranks,
        };
        Ok(ranks.run(|comm| work(&comm).map_err(Failure::into_error))?)
    }

    /// Were all processes started with the same words? Those that do different
    /// things would wait for each other for ever. Only the input of `transform`
    /// may lie elsewhere on each. Collective over processes.
    ///
    /// # Errors
    /// They were not; the same on every process.
    pub fn check_words(&self) -> Outcome {
        let Some(comm) = self.comm() else { return Ok(()) };
        let words: Vec<_> = std::env::args_os().skip(1).collect();
        let own = words.join(OsStr::from_bytes(b"\0"));
        let all = comm.all_gather(own.as_bytes())?;
        let Some(odd) = all.iter().position(|other| !same_words(&all[0], other)) else { return Ok(()) };
        let text = |words: &[u8]| String::from_utf8_lossy(words).replace('\0', " ");
        let message = format!(
            "all ranks must be started with the same words: rank {odd} has `{}`, rank 0 `{}`",
            text(&all[odd]),
            text(&all[0])
        );
        Err(Failure { agreed: true, ..Failure::new(message) })
    }

    /// The same outcome on every process: a failure of one is everybody's.
    /// Collective over processes.
    ///
    /// # Errors
    /// The failure of the lowest rank that has one.
    pub fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        match self.comm() {
            Some(comm) => agree(comm, outcome),
            None => outcome,
        }
    }

    /// What only the first process does (printing, writing a report). Collective over processes.
    ///
    /// # Errors
    /// Its failure, on every process.
    pub fn first(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        self.of_first(|| work().map(Some)).map(drop)
    }

    /// What the first process makes and the others do without. Collective over processes.
    ///
    /// # Errors
    /// Its failure, on every process.
    pub fn of_first<T>(&self, work: impl FnOnce() -> Outcome<Option<T>>) -> Outcome<Option<T>> {
        let outcome = if self.is_first() { work() } else { Ok(None) };
        match self.comm() {
            Some(comm) => agree_on(comm, outcome, false),
            None => outcome,
        }
    }

    /// The text that the first process has, on every process. Collective over processes.
    ///
    /// # Errors
    /// Where MPI fails.
    pub fn tell(&self, text: &[u8]) -> Outcome<Vec<u8>> {
        match self.comm() {
            Some(comm) => Ok(comm.all_gather(if comm.rank() == 0 { text } else { &[] })?.swap_remove(0)),
            None => Ok(text.to_vec()),
        }
    }

    /// Prints what went wrong, once, and ends this process's part in the run.
    pub fn end(self, outcome: Outcome) -> ExitCode {
        let Err(failure) = outcome else { return ExitCode::SUCCESS };
        let code = ExitCode::from(failure.code);
        let Some(launched) = &self.launched else {
            report::complain(&failure);
            return code;
        };
        let comm = launched.comm();
        if comm.size() > 1 && !failure.agreed {
            signals::clean();
            let (rank, size) = (comm.rank(), comm.size());
            report::complain(&Failure {
                message: format!("rank {rank} of {size}: {}", failure.message),
                ..failure
            });
            launched.abort(i32::from(failure.code));
        }
        if comm.rank() == 0 {
            report::complain(&failure);
        }
        // Launchers end the job when the first process leaves with a failure: not before it is told.
        let _ = comm.barrier();
        code
    }
}

/// The same words, with zeros between them, but for the input of `transform`?
fn same_words(one: &[u8], other: &[u8]) -> bool {
    let words = |text| <[u8]>::split(text, |&byte| byte == 0).enumerate();
    let input = |number: usize| number == 1 && one.starts_with(b"transform\0");
    let mut pairs = words(one).zip(words(other));
    words(one).count() == words(other).count()
        && pairs.all(|((number, a), (_, b))| {
            a == b || input(number) && !a.starts_with(b"-") && !b.starts_with(b"-")
        })
}

/// The same outcome on every rank. Collective.
///
/// # Errors
/// The failure of the lowest rank that has one; said to be that rank's where
/// others have none or another.
pub fn agree<T>(comm: &Comm, outcome: Outcome<T>) -> Outcome<T> {
    agree_on(comm, outcome, true)
}

fn agree_on<T>(comm: &Comm, outcome: Outcome<T>, name_rank: bool) -> Outcome<T> {
    // Where the ranks cannot talk any more there is nothing to agree upon.
    if comm.size() == 1 || matches!(&outcome, Err(failure) if failure.is_alone()) {
        return outcome;
    }
    let mine = match &outcome {
        Ok(_) => Vec::new(),
        Err(failure) => [&[failure.code], failure.message.as_bytes()].concat(),
    };
    let all = comm.all_gather(&mine)?;
    let Some(rank) = all.iter().position(|said| !said.is_empty()) else { return outcome };
    let said = &all[rank];
    let text = String::from_utf8_lossy(&said[1..]);
    let nobodys = !name_rank || all.iter().all(|other| other == said);
    let message = if nobodys { text.into_owned() } else { format!("rank {rank} of {}: {text}", all.len()) };
    Err(Failure { message, code: said.first().copied().unwrap_or(BAD_INPUT), agreed: true, error: None })
}

#[cfg(test)]
mod tests {
    use super::same_words;

    #[test]
    fn only_the_input_of_transform_may_differ() {
        let same = |one: &str, other: &str| {
            same_words(one.replace(' ', "\0").as_bytes(), other.replace(' ', "\0").as_bytes())
        };
        assert!(same("", "") && same("plan 8", "plan 8"));
        assert!(!same("plan 8", "plan 9") && !same("plan 8", "bench 8") && !same("plan 8", "plan 8 --json"));
        assert!(same("transform a.npy out.npy --real", "transform b.npy out.npy --real"));
        assert!(!same("transform a.npy out.npy", "transform a.npy elsewhere.npy"));
        assert!(!same("transform --real a.npy out.npy", "transform a.npy --real out.npy"));
        assert!(!same("plan a.npy", "transform a.npy"));
    }
}
