//! Recipes with names from our tables: exchange, kernel, codec.

use crate::exchange::EXCHANGES;
use crate::kernel::KERNELS;
use crate::{Choice, MachineSpeeds, Precision, Problem, Recipe, Result};

/// The recipe for this problem on this many ranks. A pure function.
///
/// # Errors
/// Whatever is wrong with the problem, its layouts or the choice.
pub fn design(problem: &Problem, choice: &Choice, precision: Precision, ranks: usize) -> Result<Recipe> {
    design_with(problem, choice, precision, ranks, &MachineSpeeds::default())
}

/// The same, judged by these speeds. An output that is left to the planner lies
/// where [`design`] puts it, whatever they are.
///
/// # Errors
/// As [`design`].
pub fn design_with(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: usize,
    speeds: &MachineSpeeds,
) -> Result<Recipe> {
    let exchange = crate::exchange::find(choice.exchange.as_deref().unwrap_or(EXCHANGES[0].name))?;
    let kernel = crate::kernel::find(choice.kernel.as_deref().unwrap_or(KERNELS[0].name))?;
    let named = choice.clone().exchange(exchange.name).kernel(kernel.name);
    let mut recipe = ferrier_plan::design(problem, &named, precision, ranks, speeds)?;
    recipe.codec = crate::codec::decide(problem, choice.codec.as_deref(), &recipe)?;
    Ok(recipe)
}
