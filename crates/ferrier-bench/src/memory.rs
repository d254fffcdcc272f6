//! Memory that a benchmark needs, checked before it is allocated.

use ferrier::{Comm, Recipe};

use crate::agree::agree;
use crate::failure::{Outcome, fail};
use crate::table::bytes;

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
