//! GOAL, the input of LogGOPSim.

use std::fmt::Write;

use super::programs::{Operation, programs};
use crate::error::{Error, Result};
use crate::job::Job;

/// The call as text in the GOAL language: one block for each rank, times in nanoseconds. Every operation that follows a
/// wait depends on what it waits for.
///
/// # Errors
/// [`Error::Job`] for a job with barriers, which GOAL does not have.
pub fn goal(job: &Job<'_>) -> Result<String> {
    let mut out = format!("num_ranks {}\n", job.ranks());
    for (rank, program) in programs(job).into_iter().enumerate() {
        let _ = writeln!(out, "\nrank {rank} {{");
        write_rank(&mut out, &program)?;
        out += "}\n";
    }
    Ok(out)
}

/// What an operation in flight is called, and what it waits for.
struct InFlight {
    sends: bool,
    peer: usize,
    tag: usize,
    label: usize,
}

fn write_rank(out: &mut String, program: &[Operation]) -> Result<()> {
    let mut label = 0;
    // The operations that the next one depends on.
    let mut after: Vec<usize> = Vec::new();
    let mut in_flight: Vec<InFlight> = Vec::new();
    for operation in program {
        let text = match *operation {
            Operation::Compute(seconds) => format!("calc {}", (1e9 * seconds).round()),
            Operation::Send { to, bytes, tag } => format!("send {bytes}b to {to} tag {tag}"),
            Operation::Receive { from, bytes, tag } => format!("recv {bytes}b from {from} tag {tag}"),
            Operation::WaitAll => {
                after.extend(in_flight.drain(..).map(|flight| flight.label));
                continue;
            }
            Operation::WaitSend { to: peer, tag } | Operation::WaitReceive { from: peer, tag } => {
                let sends = matches!(operation, Operation::WaitSend { .. });
                let is = |flight: &InFlight| (flight.sends, flight.peer, flight.tag) == (sends, peer, tag);
                if let Some(at) = in_flight.iter().position(is) {
                    after.push(in_flight.swap_remove(at).label);
                }
                continue;
            }
            Operation::Barrier => {
                return Err(Error::Job("GOAL has no barriers: choose an exchange of messages".into()));
            }
        };
        let _ = writeln!(out, "l{label}: {text}");
        for before in &after {
            let _ = writeln!(out, "l{label} requires l{before}");
        }
        match *operation {
            Operation::Send { to: peer, tag, .. } => {
                in_flight.push(InFlight { sends: true, peer, tag, label })
            }
            Operation::Receive { from: peer, tag, .. } => {
                in_flight.push(InFlight { sends: false, peer, tag, label });
            }
            _ => after = vec![label],
        }
        label += 1;
    }
    Ok(())
}
