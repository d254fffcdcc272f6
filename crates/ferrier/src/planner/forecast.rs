//! Predictions of the cost model for plans of a communicator.

use crate::{Comm, Recipe, codec};
use ferrier_plan::cost::{Machine, Prediction, Setting, predict};
use ferrier_plan::lowering::MemoryPolicy;
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
    /// Whether all ranks are threads of this process: they share its cores, also if several nodes are simulated.
    pub one_process: bool,
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
            one_process: comm.transport().exposes_all_memory(),
        }
    }

    /// The predicted times of a call.
    pub fn predict(&self, recipe: &Recipe, direction: Direction, in_place: bool) -> Prediction {
        let messages = self.nodes.len() > 1 && self.mechanism != Mechanism::SharedMemory;
        let setting = Setting::new(self.mechanism)
            .nodes(&self.nodes)
            .ranks_per_host(if self.one_process { self.nodes.len() } else { 0 })
            .threads(self.threads)
            .plane_bytes(self.plane_bytes)
            .memory_policy(self.memory_policy)
            .remote_buffers(self.one_process)
            // A ring encodes while it sends.
            .coded(messages && recipe.codec != codec::RAW && recipe.exchange != "ring");
        predict(recipe, direction, in_place, &setting, &self.machine)
    }
}
