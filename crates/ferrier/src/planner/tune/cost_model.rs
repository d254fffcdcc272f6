//! Estimates for choices that have not been run.

use super::context::{TuneContext, longest};
use crate::kernel::KERNELS;
use crate::planner::{Forecast, mechanism, memory_policy};
use crate::{Choice, MemoryUse, Overlap, Precision, Recipe, design_on};
use ferrier_plan::schedule::Direction;

/// Time of kernels other than the first, relative to it.
const OTHER_KERNEL: f64 = 1.7;

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
        let choice = &self.with_exchange(choice);
        let text = |error: crate::Error| error.to_string();
        let forecast = self.forecast(choice).map_err(text)?;
        let (ranks, setting) = ((self.context.ranks, &forecast.machine), forecast.setting(false));
        let designed = design_on(self.context.problem, choice, self.precision, ranks, &setting);
        let recipe = designed.map_err(text)?.recipe;
        // An unconstrained output must have the same layout whatever the wisdom.
        if recipe.output != self.default.output {
            return Err(format!("the output layout would change to {}", recipe.output.grid_text()));
        }
        Ok(recipe)
    }

    /// `design_on` does not know the default exchange of these ranks.
    fn with_exchange(&self, choice: &Choice) -> Choice {
        let mut choice = choice.clone();
        choice.exchange = choice.exchange.or(self.context.exchanges.first().map(|&name| name.into()));
        choice
    }

    /// What predictions for a choice depend on.
    fn forecast(&self, choice: &Choice) -> crate::Result<Forecast> {
        let TuneContext { ranks, nodes, problem, forecast, .. } = &self.context;
        let (ranks, scalar_bytes) = ((*ranks, *nodes), self.precision.bytes());
        let threads = choice.threads.unwrap_or(self.context.threads);
        Ok(Forecast {
            mechanism: mechanism(choice, *nodes)?,
            threads,
            memory_policy: memory_policy(ranks, threads, problem, choice, scalar_bytes, &forecast.machine),
            ..forecast.clone()
        })
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
        if recipe.exchange != "ring" {
            (rest.packet, rest.packets) = (None, None);
        }
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

    /// Seconds of a transform, as the cost model predicts: half of a forward and a backward one.
    pub fn predict(&self, choice: &Choice) -> f64 {
        let Ok(recipe) = self.recipe(choice) else { return f64::INFINITY };
        let Ok(forecast) = self.forecast(&self.with_exchange(choice)) else { return f64::INFINITY };
        let of = |direction| forecast.predict(&recipe, direction, false).seconds();
        // The model is that of the first kernel.
        let kernel = if recipe.kernel == KERNELS[0].name { 1.0 } else { OTHER_KERNEL };
        kernel * (of(Direction::Forward) + of(Direction::Backward)) / 2.0
    }
}
