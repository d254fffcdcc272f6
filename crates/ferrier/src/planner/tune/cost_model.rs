//! Estimates for choices that have not been run.

use super::context::{TuneContext, longest};
use crate::kernel::KERNELS;
use crate::{Choice, MemoryUse, Overlap, Precision, Recipe, Step, design};
use ferrier_plan::messages::Mechanism;

/// Compares choices without running them: equal plans, and estimated times.
pub(super) struct CostModel<'a> {
    pub context: TuneContext<'a>,
    pub precision: Precision,
    /// The recipe of the choice that the search starts from.
    pub default: Recipe,
}

impl CostModel<'_> {
    /// The recipe of a choice.
    ///
    /// # Errors
    /// The reason, as text, if the choice does not fit the problem.
    fn recipe(&self, choice: &Choice) -> Result<Recipe, String> {
        // `design` does not know the default exchange of these ranks.
        let mut choice = choice.clone();
        choice.exchange = choice.exchange.or(self.context.exchanges.first().map(|&name| name.into()));
        let recipe = design(self.context.problem, &choice, self.precision, self.context.ranks);
        let recipe = recipe.map_err(|error| error.to_string())?;
        // An unconstrained output must have the same layout whatever the wisdom.
        if recipe.output != self.default.output {
            return Err(format!("the output layout would change to {}", recipe.output.grid_text()));
        }
        Ok(recipe)
    }

    /// A text that is equal for choices that give the same plan. The exchange is left out if there are no
    /// reshapes, tiles if there is a single one.
    pub fn identity(&self, choice: &Choice) -> Result<String, String> {
        let mut recipe = self.recipe(choice)?;
        if recipe.reshapes() == 0 {
            recipe.exchange.clear();
        }
        if recipe.exchange.is_empty() || self.tiles(&recipe) == 1 {
            recipe.overlap = Overlap::default();
        }
        // The digest covers the fields that the recipe has; `rest` are the others.
        let mut rest = choice
            .clone()
            .decomposition(None)
            .ranks(None)
            .grid(None)
            .fuse(None)
            .memory(MemoryUse::default())
            .overlap(None)
            .threads(choice.threads.unwrap_or(self.context.threads));
        (rest.exchange, rest.kernel, rest.axes) = (None, None, None);
        Ok(format!("{:016x} {rest:?}", recipe.digest()))
    }

    /// Is a reshape of this choice cut into several tiles?
    pub fn is_tiled(&self, choice: &Choice) -> bool {
        self.recipe(choice).is_ok_and(|recipe| self.tiles(&recipe) > 1)
    }

    /// The largest number of tiles of a reshape.
    fn tiles(&self, recipe: &Recipe) -> usize {
        let sends =
            crate::exchange::find(&recipe.exchange).is_ok_and(|m| m.sends_messages(self.context.nodes));
        let all = recipe.overlap.forward.iter().chain(&recipe.overlap.backward);
        let sizes = all.map(|tiling| tiling.tile).filter(|&tile| sends && tile > 0);
        let chunks = match recipe.overlap.arrays {
            arrays @ 1.. if sends => recipe.batch.div_ceil(arrays),
            _ => 1,
        };
        chunks * sizes.map(|tile| longest(self.context.problem).div_ceil(tile)).max().unwrap_or(1)
    }

    /// Estimated seconds of a transform: bytes through memory and between ranks.
    pub fn predict(&self, choice: &Choice) -> f64 {
        let Ok(recipe) = self.recipe(choice) else { return f64::INFINITY };
        let threads = choice.threads.unwrap_or(self.context.threads).min(crate::machine::cores()) as f64;
        // One thread does not saturate the memory bandwidth; two nearly do.
        let memory = 8e9 * (1.0 + 0.7 * (threads - 1.0)).min(4.0);
        let kernel = if recipe.kernel == KERNELS[0].name { 1.0 } else { 1.7 };
        let shared = crate::exchange::find(&recipe.exchange)
            .is_ok_and(|m| matches!(m.mechanism.on_nodes(1), Mechanism::SharedMemory));
        let bytes = |elements: usize| (elements * 2 * recipe.precision.bytes() * recipe.batch) as f64;
        let tiles = self.tiles(&recipe) as f64;
        let mut seconds = 0.0;
        for (step, traffic) in recipe.steps.iter().zip(recipe.traffic()) {
            seconds += match step {
                Step::Transform { .. } => 0.0,
                Step::Reshape { .. } if shared => 1e-6,
                // Half of the transfer time of all tiles but one is hidden, at the price of more messages.
                Step::Reshape { .. } => {
                    let transfer = traffic.bytes_max as f64 / 4e9;
                    2e-6 * traffic.messages_max as f64 * tiles + transfer * (0.5 + 0.5 / tiles)
                }
            };
        }
        let transforms = recipe.distributions().into_iter().skip(1).zip(&recipe.steps);
        let largest = |(state, step): (ferrier_plan::recipe::Distribution, &Step)| match step {
            Step::Transform { .. } => bytes(state.layout.largest()),
            Step::Reshape { .. } => 0.0,
        };
        seconds + kernel * 2.0 * transforms.map(largest).sum::<f64>() / memory
    }
}
