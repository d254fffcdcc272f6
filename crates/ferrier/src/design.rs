//! Recipes with names from our tables: exchange, kernel, codec.

use crate::exchange::EXCHANGES;
use crate::kernel::KERNELS;
use crate::{Choice, MachineSpeeds, Precision, Problem, Recipe, Result};
use ferrier_plan::cost::{Machine, Setting};
use ferrier_plan::messages::Mechanism;
use ferrier_plan::{Designed, Freedom};

/// The recipe for this problem on this many ranks that send each other messages, whatever the machine. A pure
/// function. [`Draft::recipe`](crate::Draft::recipe) is the one for the ranks and the machine at hand.
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
    let nodes: Vec<usize> = (0..ranks).collect();
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes).ranks_per_host(1);
    let machine = match *speeds == MachineSpeeds::default() {
        true => Machine::default(),
        false => Machine::default().with_speeds(speeds),
    };
    Ok(design_on(problem, choice, precision, (ranks, &machine), &setting)?.recipe)
}

/// The recipe for these ranks of a machine.
///
/// # Errors
/// As [`design`].
pub(crate) fn design_on(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: (usize, &Machine),
    setting: &Setting<'_>,
) -> Result<Designed> {
    design_free(problem, choice, precision, ranks, setting, &Freedom::default())
}

/// The same; what `freedom` and the choice leave open is decided too.
///
/// # Errors
/// As [`design`].
pub(crate) fn design_free(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: (usize, &Machine),
    setting: &Setting<'_>,
    freedom: &Freedom<'_>,
) -> Result<Designed> {
    let exchange = crate::exchange::find(choice.exchange.as_deref().unwrap_or(EXCHANGES[0].name))?;
    let kernel = crate::kernel::find(choice.kernel.as_deref().unwrap_or(KERNELS[0].name))?;
    let named = choice.clone().exchange(exchange.name).kernel(kernel.name);
    let mut designed = ferrier_plan::design_free(problem, &named, precision, setting, ranks, freedom)?;
    designed.recipe.codec = crate::codec::decide(problem, choice.codec.as_deref(), &designed.recipe)?;
    Ok(designed)
}
