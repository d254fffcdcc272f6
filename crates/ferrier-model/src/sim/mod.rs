//! Event simulation of a call: the order of actions of every rank, and messages as max-min fair flows.
//!
//! A rank runs its passes, whose seconds the cost model gives, and starts and waits for tiles as
//! [`order`](ferrier_plan::order) says. The messages of a tile between two nodes are one flow, which gets as many shares
//! of the links as there are messages: ranks of a node start a tile together, with the last of them, and their messages
//! are complete together. So the size of a simulation is that of the nodes that exchange data, not that of the ranks.
//! Node-aware exchanges send one message for each pair of nodes. The ranks of a ring go on each by itself, as in the
//! library: a rank sends its packets in order, a few at once, of two successive steps, to ranks that are ready.

mod exchanges;
mod network;
mod options;
mod ranks;
mod result;
mod tile;

pub(crate) use exchanges::{Exchanges, full_speed_bytes};
pub use options::SimOptions;
pub use result::{SimEvent, SimEventKind, SimStep, Simulated};

use ferrier_plan::order::actions;

use crate::error::Result;
use crate::forward::ForwardCall;
use crate::job::Job;
use network::NetworkState;
use ranks::Simulation;

/// Simulates `forward`, out of place.
///
/// # Errors
/// [`Error::Job`](crate::Error::Job) for ranks and nodes that do not exist and factors that are not above 0.
pub fn simulate(job: &Job<'_>, options: &SimOptions) -> Result<Simulated> {
    options.check(job)?;
    let call = ForwardCall::new(job);
    let (shapes, list) = (call.shapes(), actions(&call.schedule, &call.cuts));
    let network = NetworkState::new(job, options);
    let mut simulation = Simulation::new(job, &shapes, &list, options, network);
    simulation.run();
    Ok(simulation.result())
}
