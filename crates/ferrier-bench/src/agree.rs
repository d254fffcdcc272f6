//! The same outcome on every rank; the memory of a node, checked before it is allocated.

use ferrier::{Comm, Draft, Planner, Problem, Real, Recipe};
use serde::Serialize;

use crate::failure::{BAD_INPUT, Failure, Outcome, fail};
use crate::table::bytes;

/// The same outcome on every rank. Collective.
///
/// # Errors
/// The failure of the lowest rank that has one. The message names that rank
/// unless all ranks have the same failure.
pub fn agree<T>(comm: &Comm, outcome: Outcome<T>) -> Outcome<T> {
    agree_on(comm, outcome, true)
}

/// As [`agree`]; `name_rank` says whether the message names the rank.
///
/// # Errors
/// As [`agree`].
pub fn agree_on<T>(comm: &Comm, outcome: Outcome<T>, name_rank: bool) -> Outcome<T> {
    // Ranks that cannot communicate cannot agree.
    if comm.size() == 1 || matches!(&outcome, Err(failure) if failure.is_communication()) {
        return outcome;
    }
    let own = match &outcome {
        Ok(_) => Vec::new(),
        Err(failure) => [&[failure.code], failure.message.as_bytes()].concat(),
    };
    let all = comm.all_gather(&own)?;
    let Some(rank) = all.iter().position(|bytes| !bytes.is_empty()) else { return outcome };
    let first = &all[rank];
    let text = String::from_utf8_lossy(&first[1..]);
    let common = !name_rank || all.iter().all(|other| other == first);
    let message = if common { text.into_owned() } else { format!("rank {rank} of {}: {text}", all.len()) };
    Err(Failure { message, code: first.first().copied().unwrap_or(BAD_INPUT), agreed: true, error: None })
}

/// As [`agree`], for results of the library. Collective.
///
/// # Errors
/// As [`agree`].
pub fn agree_result<T>(comm: &Comm, result: ferrier::Result<T>) -> Outcome<T> {
    agree(comm, result.map_err(Into::into))
}

/// The same outcome on every rank. Errors of a choice, and of too little memory, are: they keep the library's error.
///
/// # Errors
/// As [`agree`].
pub fn same_error<D>(comm: &Comm, result: ferrier::Result<D>) -> Outcome<D> {
    match result {
        Err(error @ (ferrier::Error::Choice(_) | ferrier::Error::Memory { .. })) => {
            Err(Failure { agreed: true, ..error.into() })
        }
        result => agree_result(comm, result),
    }
}

/// Drafts a plan; the same outcome on every rank. Collective.
///
/// # Errors
/// Those of the planner.
pub fn draft<T: Real>(comm: &Comm, problem: &Problem, choice: ferrier::Choice) -> Outcome<Draft<T>> {
    agree_result(comm, Planner::new(problem).choice(choice).draft::<T>(comm))
}

/// Fails if a node has less memory than its ranks need together, because the system would
/// kill the process later. `needed` is in bytes, for this rank. Collective.
///
/// # Errors
/// Too little memory; the same on every rank.
pub fn check_memory(comm: &Comm, needed: usize) -> Outcome {
    let node = comm.nodes()[comm.rank()];
    let mut per_node = vec![0.0; comm.node_count()];
    per_node[node] = needed as f64;
    let needed = comm.sum(&per_node)?[node];
    let machine = ferrier::machine::info().memory_bytes as u64;
    let available = ferrier::machine::memory_left().min(if machine == 0 { u64::MAX } else { machine }) as f64;
    let text = |count: f64| bytes(count as u64);
    let enough = match needed > available {
        true => {
            fail(format!("not enough memory: {} are needed, {} are available", text(needed), text(available)))
        }
        false => Ok(()),
    };
    agree(comm, enough)
}

/// Elements of this rank's input and output.
pub fn local_volumes(comm: &Comm, recipe: &Recipe) -> [usize; 2] {
    [&recipe.input, &recipe.output].map(|layout| layout.boxes()[comm.rank()].volume())
}

/// The ranks of a run; the keys are part of the contract.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RankGroup {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Threads of each rank.
    pub threads: usize,
    /// `threads` or `mpi`.
    pub transport: &'static str,
}

impl RankGroup {
    /// The ranks of a communicator.
    pub fn new(comm: &Comm) -> Self {
        let (ranks, nodes, threads) = (comm.size(), comm.node_count(), comm.threads());
        RankGroup { ranks, nodes, threads, transport: comm.transport_name() }
    }
}
