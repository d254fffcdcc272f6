//! From a problem and a choice to a recipe: pure functions.
//!
//! Two decisions. First the order of the axes, and an output layout that is left to the planner: they are visible to
//! users (the order in the bits of results), so they do not depend on the exchange, the threads, the batch or tiles. The
//! output, and the order with it, or where results must be reproducible, depend on the problem and the number of ranks
//! alone; else [`Freedom::axes`] has the order decided for the nodes and the machine at hand. Then the layouts between the passes, their memory
//! orders, and which axes share a pass, and, where they are left open, the exchange, the number of ranks between the
//! first and the last reshape, and tiles: by the [cost model](crate::cost) of the machine at hand.

mod designer;
mod freedom;
mod grids;
mod price;
mod search;
#[cfg(test)]
mod tests;

use designer::Designer;
pub use freedom::Freedom;
use freedom::tiled;

use crate::choice::{Choice, MemoryUse};
use crate::cost::{Machine, Setting};
use crate::error::{Error, Invalid, Result};
use crate::messages::Mechanism;
use crate::problem::Problem;
use crate::recipe::Recipe;
use ferrier_kernel::Precision;

/// A recipe with another exchange or fewer ranks than usual must be predicted to be so many times as fast.
const CLEARLY: f64 = 1.05;

/// A recipe and those that were rejected for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Designed {
    /// The recipe.
    pub recipe: Recipe,
    /// Predicted seconds, of `forward` and `backward` on average.
    pub seconds: f64,
    /// Other recipes with their predicted seconds, the fastest first.
    pub rejected: Vec<(Recipe, f64)>,
}

impl From<Recipe> for Designed {
    /// A recipe that was compared with no other.
    fn from(recipe: Recipe) -> Designed {
        Designed { recipe, seconds: f64::NAN, rejected: Vec::new() }
    }
}

/// The recipe for this problem on this many ranks, each on a node of its own, of a machine that nothing is known of.
///
/// Names of exchange and kernel are copied from the choice, empty if it has none; no codec is chosen.
///
/// # Errors
/// As [`design_on`].
pub fn design(problem: &Problem, choice: &Choice, precision: Precision, ranks: usize) -> Result<Recipe> {
    let nodes: Vec<usize> = (0..ranks).collect();
    let setting = Setting::new(Mechanism::Messages).nodes(&nodes).ranks_per_host(1);
    Ok(design_on(problem, choice, precision, &setting, (ranks, &Machine::default()))?.recipe)
}

/// The recipe that takes least time on these ranks of a machine, with the exchange of `choice`. The order of the axes,
/// and an output layout that is left to the planner, are those of [`design`].
///
/// # Errors
/// Errors of [`Problem::check`] and [`Problem::layouts`]; [`Error::Choice`] for a number of ranks, a grid or an
/// order of axes that does not fit the problem.
pub fn design_on(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    setting: &Setting<'_>,
    ranks: (usize, &Machine),
) -> Result<Designed> {
    design_free(problem, choice, precision, setting, ranks, &Freedom::default())
}

/// The same; the exchange, tiles, and how many ranks hold data between the first and the last reshape are decided too,
/// as far as `freedom` and `choice` leave them open. Of the visible decisions only the order of the axes depends on it, by
/// [`Freedom::axes`].
///
/// # Errors
/// As [`design_on`].
pub fn design_free(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    setting: &Setting<'_>,
    (ranks, machine): (usize, &Machine),
    freedom: &Freedom<'_>,
) -> Result<Designed> {
    let inner = check(problem, choice, ranks)?;
    let (input, output) = problem.layouts(ranks)?;
    let designer = Designer { problem, choice, precision, ranks, machine, input, output };
    let grids = designer.grids(inner, setting);
    let visible = match freedom.axes && !problem.reproducible {
        true => {
            let (usual, single) = (designer.usual(setting), problem.clone().batch(1));
            let counts = freedom::fewer_ranks(&single, choice, &usual, (ranks, machine));
            let fewer = counts.into_iter().map(|inner| designer.grids(inner, setting)).collect::<Vec<_>>();
            let all: Vec<_> = [&grids].into_iter().chain(&fewer).collect();
            designer.visible(&all, Some(&usual))?
        }
        false => designer.visible(&[&grids], None)?,
    };
    let mut found = designer.recipes(&visible, setting, &grids);
    let fewer = if freedom.ranks {
        freedom::fewer_ranks(problem, choice, setting, (ranks, machine))
    } else {
        Vec::new()
    };
    for inner in fewer.into_iter().filter(|_| !visible.open) {
        let grids = designer.grids(inner, setting);
        add(&mut found, designer.recipes(&visible, setting, &grids));
    }
    for &(name, mechanism) in freedom.other_exchanges(problem, ranks) {
        let (setting, choice) = (Setting { mechanism, ..*setting }, choice.clone().exchange(name));
        let other = Designer { choice: &choice, ..designer.clone() };
        add(&mut found, other.recipes(&visible, &setting, &grids));
    }
    let mut found = found.into_iter();
    let (mut recipe, mut seconds) = found.next().ok_or_else(|| {
        let message = "no grid of ranks is of the chosen path";
        Error::Choice(Invalid::new("path", message).got(format!("{:?}", choice.decomposition)))
    })?;
    let other = freedom.exchanges.iter().find(|(name, _)| *name == recipe.exchange);
    let setting =
        Setting { mechanism: other.map_or(setting.mechanism, |(_, mechanism)| *mechanism), ..*setting };
    if freedom.tiles && choice.overlap.is_none() && choice.memory == MemoryUse::Fast {
        (recipe, seconds) = tiled(recipe, seconds, &setting, machine);
    }
    Ok(Designed { recipe, seconds, rejected: found.collect() })
}

/// Adds recipes of another exchange or of fewer ranks: the first of them comes first if it is clearly faster.
fn add(found: &mut Vec<(Recipe, f64)>, others: Vec<(Recipe, f64)>) {
    let before = found.first().map_or(f64::INFINITY, |(_, seconds)| *seconds);
    let faster = others.first().is_some_and(|(_, seconds)| *seconds * CLEARLY < before);
    let first = if faster { 0 } else { found.len().min(1) };
    found.splice(first..first, others);
    if let Some(rest) = found.get_mut(1..) {
        rest.sort_by(|a, b| a.1.total_cmp(&b.1));
    }
}

/// Checks the choice; returns the number of ranks that hold data between the first and the last reshape.
fn check(problem: &Problem, choice: &Choice, ranks: usize) -> Result<usize> {
    problem.check()?;
    let inner = choice.ranks.unwrap_or(ranks);
    if inner == 0 || inner > ranks {
        let message = format!("between 1 and {ranks} ranks can take part, got {inner}");
        return Err(Error::Choice(
            Invalid::new("ranks", message).expected(format!("1..={ranks}")).got(inner),
        ));
    }
    if let Some([p, q]) = choice.grid
        && p.checked_mul(q) != Some(inner)
    {
        let message = format!("a rank grid of {p}x{q} was chosen for {inner} ranks");
        let expected = format!("a grid of {inner} ranks");
        return Err(Error::Choice(Invalid::new("grid", message).expected(expected).got(format!("{p}x{q}"))));
    }
    Ok(inner)
}
