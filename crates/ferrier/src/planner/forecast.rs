//! Predictions of the cost model for plans of a communicator.

use super::agree::Decision;
use crate::{Choice, Comm, Recipe, Result, codec, exchange};
use ferrier_plan::cost::{Machine, Prediction, Setting, predict};
use ferrier_plan::lowering::{EndStrides, MemoryPolicy};
use ferrier_plan::messages::Mechanism;
use ferrier_plan::schedule::Direction;

/// What predictions for a recipe depend on besides it.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    pub machine: Machine,
    pub mechanism: Mechanism,
    pub threads: usize,
    pub plane_bytes: usize,
    pub memory_policy: MemoryPolicy,
    /// The node of each rank.
    pub nodes: Vec<usize>,
    /// The socket of each rank, where ranks are bound; empty: unknown.
    pub sockets: Vec<usize>,
    /// Whether all ranks are threads of this process: they share its cores, also if several nodes are simulated.
    pub one_process: bool,
    /// The strides of input and output of `forward`.
    pub strides: EndStrides,
}

impl Forecast {
    /// One thread on each rank of `comm`; ranks share memory.
    pub fn new(comm: &Comm, machine: Machine) -> Self {
        Forecast {
            machine,
            mechanism: Mechanism::SharedMemory,
            threads: 1,
            plane_bytes: super::agree::plane_bytes(),
            memory_policy: MemoryPolicy::default(),
            nodes: comm.nodes().to_vec(),
            sockets: comm.transport().sockets().to_vec(),
            one_process: comm.transport().exposes_all_memory(),
            strides: EndStrides::default(),
        }
    }

    /// What was decided for the ranks of `comm`.
    pub fn of(comm: &Comm, decision: &Decision, mechanism: Mechanism, strides: EndStrides) -> Self {
        Forecast {
            mechanism,
            strides,
            threads: decision.threads,
            plane_bytes: decision.plane_bytes,
            memory_policy: decision.memory_policy,
            ..Forecast::new(comm, decision.machine.clone())
        }
    }

    /// Whether ranks send messages.
    pub fn sends(&self) -> bool {
        self.nodes.len() > 1 && self.mechanism != Mechanism::SharedMemory
    }

    /// The same for the cost model; `coded`: messages are encoded by steps of their own.
    pub fn setting(&self, coded: bool) -> Setting<'_> {
        Setting::new(self.mechanism)
            .nodes(&self.nodes)
            .sockets(&self.sockets)
            .ranks_per_host(if self.one_process { self.nodes.len() } else { 0 })
            .threads(self.threads)
            .plane_bytes(self.plane_bytes)
            .memory_policy(self.memory_policy)
            .remote_buffers(self.one_process)
            .strides(&self.strides)
            .coded(coded)
    }

    /// The predicted times of a call.
    pub fn predict(&self, recipe: &Recipe, direction: Direction, in_place: bool) -> Prediction {
        // A ring encodes while it sends.
        let coded = self.sends() && recipe.codec != codec::RAW && recipe.exchange != "ring";
        let setting = self.setting(coded);
        predict(recipe, direction, in_place, &setting, &self.machine)
    }
}

/// How the exchange of a choice moves data on so many nodes.
///
/// # Errors
/// An unknown exchange.
pub(crate) fn mechanism(choice: &Choice, nodes: usize) -> Result<Mechanism> {
    let name = choice.exchange.as_deref().unwrap_or(exchange::EXCHANGES[0].name);
    Ok(exchange::find(name)?.mechanism.on_nodes(nodes))
}
