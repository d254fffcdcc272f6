//! A draft of a plan, for `ferrier plan`.

use ferrier::wisdom::Known;
use ferrier::{MachineSpeeds, Recipe};

/// A draft of a plan; the same on all ranks.
pub struct Drafted {
    pub recipe: Recipe,
    /// Bytes of the rank that needs most.
    pub memory: u64,
    /// The node of each rank.
    pub nodes: Vec<usize>,
    pub notes: Vec<String>,
    pub wisdom: Option<Known>,
    pub speeds: Option<MachineSpeeds>,
    pub planning_ms: f64,
}

impl Drafted {
    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.iter().max().map_or(1, |last| last + 1)
    }

    /// The most messages from one node to another, for each step.
    pub fn between_nodes(&self) -> Vec<u64> {
        ferrier::exchange::find(&self.recipe.exchange)
            .map(|exchange| exchange.messages_between_nodes(&self.recipe, &self.nodes))
            .unwrap_or_default()
    }
}
