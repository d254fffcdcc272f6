//! The ranks of a run: threads of this process, or the processes of an MPI launch. Also which
//! process prints, and how errors end a run.
//!
//! Under MPI a failure is either *agreed* (every rank has the same one: the first prints it and
//! all exit) or one rank's own, while others may be waiting for it: that rank prints it and
//! aborts the job.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use ferrier::{Comm, Ranks};
use ferrier_bench::agree::{agree, agree_on};

use crate::arguments::{CommonArgs, setup};
use crate::failure::{Failure, Outcome, fail};
use crate::files::signals;
use crate::print;

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod launched;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
#[path = "no_launch.rs"]
pub mod launched;

use launched::Launched;

/// The ranks of this run.
pub struct Session {
    launched: Option<Launched>,
}

impl Session {
    /// Joins the other processes of the MPI launch, if there is one. Collective.
    ///
    /// # Errors
    /// The MPI library of the launch is not found or does not start.
    pub fn start() -> Outcome<Session> {
        Ok(Session { launched: Launched::start()? })
    }

    /// The MPI launch, if there is one.
    pub fn launched(&self) -> Option<&Launched> {
        self.launched.as_ref()
    }

    /// Runs `work` on so many ranks, for a list of numbers of ranks: under MPI on the first processes of the launch,
    /// as a session of their own in which `--ranks` is not given, while the others wait. `None` on processes that have
    /// no part in it. Collective over processes.
    ///
    /// # Errors
    /// Those of `work`; more ranks than the launch has.
    pub fn on_ranks<R>(
        &self,
        common: &CommonArgs,
        work: impl FnOnce(&Session, &CommonArgs) -> Outcome<R>,
    ) -> Outcome<Option<R>> {
        let (Some(launched), Some(ranks)) = (&self.launched, common.ranks) else {
            return work(self, common).map(Some);
        };
        let size = launched.comm().size();
        if ranks == 0 || ranks > size {
            return self.agree(fail(format!("--ranks {ranks}: the launch has {size} processes")));
        }
        let group = Session { launched: self.agree(launched.first_ranks(ranks))? };
        let common = CommonArgs { ranks: None, ..common.clone() };
        let outcome = match group.launched {
            Some(_) => work(&group, &common).map(Some),
            None => Ok(None),
        };
        match outcome {
            // The ranks of the group do not know: the job is aborted.
            Err(failure) if !failure.agreed => Err(failure),
            outcome => agree_on(launched.comm(), outcome, false),
        }
    }

    fn comm(&self) -> Option<&Comm> {
        self.launched.as_ref().map(Launched::comm)
    }

    /// Is this the process that prints?
    pub fn is_first(&self) -> bool {
        self.comm().is_none_or(|comm| comm.rank() == 0)
    }

    /// The number of ranks.
    ///
    /// # Errors
    /// `--ranks` under MPI, where the launcher decides; too many ranks or threads.
    pub fn size(&self, common: &CommonArgs) -> Outcome<usize> {
        setup::check_group(common)?;
        self.planned_size(common)
    }

    /// The number of ranks of a group that only plans: there may be many.
    ///
    /// # Errors
    /// `--ranks` under MPI; numbers out of range.
    pub fn planned_size(&self, common: &CommonArgs) -> Outcome<usize> {
        setup::check_counts(common)?;
        if let (Some(_), Some(wire)) = (self.comm(), common.execution.wire) {
            return fail(format!("--wire {wire} is for in-process ranks, not for MPI"));
        }
        if let (Some(_), Some(nodes)) = (self.comm(), common.switches.nodes) {
            return fail(format!("--nodes {nodes} is for in-process ranks, not for MPI"));
        }
        match (self.comm(), common.ranks) {
            (None, ranks) => Ok(ranks.unwrap_or(1)),
            (Some(comm), None) => Ok(comm.size()),
            (Some(comm), Some(ranks)) => fail(format!(
                "--ranks {ranks}: under MPI the launcher decides the number of ranks (here {}); leave --ranks out, \
                 or set FERRIER_MPI=off to run without MPI",
                comm.size()
            )),
        }
    }

    /// Threads of each rank.
    pub fn threads(&self, common: &CommonArgs, ranks: usize) -> usize {
        let default = self.comm().map_or_else(|| (ferrier::machine::cores() / ranks).max(1), Comm::threads);
        common.execution.threads.unwrap_or(default)
    }

    /// Runs `work` on every rank; returns the result of this process's first rank.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn run<R: Send>(
        &self,
        common: &CommonArgs,
        work: impl Fn(&Comm) -> Outcome<R> + Send + Sync,
    ) -> Outcome<R> {
        if let Some(comm) = self.comm() {
            return work(&comm.clone().with_threads(self.threads(common, comm.size())));
        }
        let results = group(common).run(|comm| work(&comm).map_err(Failure::into_error))?;
        results.into_iter().next().ok_or_else(|| Failure::new("no rank returned a result"))
    }

    /// Runs `work`, which only plans: without MPI on one rank that stands for its group, without threads.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn plan<R>(&self, common: &CommonArgs, work: impl Fn(&Comm) -> Outcome<R>) -> Outcome<R> {
        match self.comm() {
            Some(comm) => work(&comm.clone().with_threads(self.threads(common, comm.size()))),
            None => work(&group(common).for_planning()?),
        }
    }

    /// Checks that all processes have the same arguments: otherwise they would wait for each
    /// other for ever. Only the input of `transform` may differ. Collective over processes.
    ///
    /// # Errors
    /// They differ; the same on every process.
    pub fn check_arguments(&self, arguments: &[OsString]) -> Outcome {
        let Some(comm) = self.comm() else { return Ok(()) };
        let arguments = arguments.get(1..).unwrap_or_default();
        let own = arguments.join(OsStr::from_bytes(b"\0"));
        let all = comm.all_gather(own.as_bytes())?;
        let Some(odd) = all.iter().position(|other| !same_arguments(&all[0], other)) else { return Ok(()) };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
        let message = format!(
            "all ranks must be started with the same arguments: rank {odd} has `{}`, rank 0 `{}`",
            text(&all[odd]),
            text(&all[0])
        );
        Err(Failure { agreed: true, ..Failure::new(message) })
    }

    /// The same outcome on every process. Collective over processes.
    ///
    /// # Errors
    /// The failure of the lowest rank that has one.
    pub fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        match self.comm() {
            Some(comm) => agree(comm, outcome),
            None => outcome,
        }
    }

    /// Runs `work` on the first process only (printing, writing a report). Collective over processes.
    ///
    /// # Errors
    /// Its failure, on every process.
    pub fn first(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        self.of_first(|| work().map(Some)).map(drop)
    }

    /// The result of `work` on the first process, `None` on the others. Collective over processes.
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

    /// Prints the failure once, and returns the exit code.
    pub fn end(self, outcome: Outcome) -> u8 {
        let Err(failure) = outcome else { return 0 };
        let code = failure.code;
        let Some(launched) = &self.launched else {
            print::complain(&failure);
            return code;
        };
        let comm = launched.comm();
        if comm.size() > 1 && !failure.agreed {
            signals::clean();
            let (rank, size) = (comm.rank(), comm.size());
            print::complain(&Failure {
                message: format!("rank {rank} of {size}: {}", failure.message),
                ..failure
            });
            launched.abort(i32::from(failure.code));
        }
        if comm.rank() == 0 {
            print::complain(&failure);
        }
        // Launchers end the job when the first process exits with a failure: wait until it is printed.
        let _ = comm.barrier();
        code
    }
}

/// The ranks of a run without MPI.
fn group(common: &CommonArgs) -> Ranks {
    let CommonArgs { ranks, execution, switches, .. } = common;
    let mut group = ferrier::ranks(ranks.unwrap_or(1));
    if let Some(threads) = execution.threads {
        group = group.threads(threads);
    }
    if let Some(nodes) = switches.nodes {
        group = group.nodes(nodes);
    }
    if let Some(wire) = execution.wire {
        group = group.wire(wire);
    }
    group
}

/// Are two lists of arguments, separated by zeros, the same except the input of `transform`?
fn same_arguments(one: &[u8], other: &[u8]) -> bool {
    let arguments = |text| <[u8]>::split(text, |&byte| byte == 0).enumerate();
    let input = |number: usize| number == 1 && one.starts_with(b"transform\0");
    let mut pairs = arguments(one).zip(arguments(other));
    arguments(one).count() == arguments(other).count()
        && pairs.all(|((number, a), (_, b))| {
            a == b || input(number) && !a.starts_with(b"-") && !b.starts_with(b"-")
        })
}

#[cfg(test)]
mod tests {
    use super::same_arguments;

    #[test]
    fn only_the_input_of_transform_may_differ() {
        let same = |one: &str, other: &str| {
            same_arguments(one.replace(' ', "\0").as_bytes(), other.replace(' ', "\0").as_bytes())
        };
        assert!(same("", "") && same("plan 8", "plan 8"));
        assert!(!same("plan 8", "plan 9") && !same("plan 8", "bench 8") && !same("plan 8", "plan 8 --json"));
        assert!(same("transform a.npy out.npy --real", "transform b.npy out.npy --real"));
        assert!(!same("transform a.npy out.npy", "transform a.npy elsewhere.npy"));
        assert!(!same("transform --real a.npy out.npy", "transform a.npy --real out.npy"));
        assert!(!same("plan a.npy", "transform a.npy"));
    }
}
