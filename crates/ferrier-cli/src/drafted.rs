//! A draft of a plan, for `ferrier plan`.

use std::time::Instant;

use ferrier::cost::{Machine, StepCost};
use ferrier::wisdom::EntryRef;
use ferrier::{Comm, Draft, MachineSpeeds, Pipeline, Real, Recipe, Target};
use serde::Serialize;

use crate::failure::Outcome;

/// The predicted time of a step; the keys are part of the contract.
#[derive(Serialize)]
pub struct PredictedStep {
    pub name: String,
    pub predicted_ms: f64,
}

/// A recipe that was rejected; the keys are part of the contract.
#[derive(Serialize)]
pub struct Rejected {
    /// The layouts that axes are transformed in.
    pub path: String,
    /// Its predicted time relative to that of the chosen one, `forward` and `backward` on average.
    pub relative_time: f64,
}

/// A draft of a plan; the same on all ranks. The keys are part of the contract.
#[derive(Serialize)]
pub struct Drafted {
    pub recipe: Recipe,
    /// Bytes of the rank that needs most.
    #[serde(rename = "memory_bytes_per_rank")]
    pub memory: u64,
    /// The node of each rank.
    #[serde(skip)]
    pub nodes: Vec<usize>,
    pub notes: Vec<String>,
    /// The wisdom that the plan was made from; null if there was none.
    pub wisdom: Option<EntryRef>,
    /// The measured speeds that the planner used; null if it used defaults.
    pub speeds: Option<MachineSpeeds>,
    /// The milliseconds of a forward transform that the cost model predicts; null on a GPU.
    pub predicted_ms: Option<f64>,
    /// The same for each step.
    pub predicted_steps: Vec<PredictedStep>,
    /// Other recipes that were considered, the fastest first.
    pub rejected: Vec<Rejected>,
    /// Where the constants of the cost model come from.
    pub constants: Option<String>,
    /// Pipeline depth, and bytes of each exchange, for every reshape in both directions; of the first rank.
    pub pipelines: Vec<Pipeline>,
    /// Time of planning without allocation.
    pub planning_ms: f64,
}

impl Drafted {
    /// A draft whose planning began at `start`. Collective.
    ///
    /// # Errors
    /// A rank failed or left.
    pub fn new<T: Real, B: Target>(comm: &Comm, draft: &Draft<T, B>, start: Instant) -> Outcome<Drafted> {
        let planning_ms = start.elapsed().as_secs_f64() * 1e3;
        let prediction = draft.prediction(false);
        let step =
            |step: &StepCost| PredictedStep { name: step.name.clone(), predicted_ms: step.seconds * 1e3 };
        let usual = &draft.recipe().exchange;
        let rejected = |(recipe, time): &(Recipe, f64)| {
            let exchange = Some(&recipe.exchange).filter(|exchange| *exchange != usual);
            let exchange = exchange.map_or(String::new(), |exchange| format!(", exchange {exchange}"));
            Rejected { path: recipe.path_text() + &exchange, relative_time: *time }
        };
        Ok(Drafted {
            rejected: draft.rejected().iter().map(rejected).collect(),
            predicted_ms: prediction.as_ref().map(|all| all.seconds() * 1e3),
            predicted_steps: prediction.iter().flat_map(|all| &all.steps).map(step).collect(),
            constants: draft.machine().map(Machine::origin),
            recipe: draft.recipe().clone(),
            memory: draft.largest_memory()?,
            nodes: comm.nodes().to_vec(),
            notes: draft.notes().to_vec(),
            wisdom: draft.wisdom().cloned(),
            speeds: draft.speeds(),
            pipelines: draft.pipelines(),
            planning_ms,
        })
    }

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
