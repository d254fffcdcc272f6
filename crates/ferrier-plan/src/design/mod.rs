//! From a problem and a choice to a recipe: pure functions.
//!
//! Two decisions. First the order of the axes, and an output layout that is left to the planner: they are visible to
//! users (the order in the bits of results), so they depend on the problem and the number of ranks alone, not on the
//! exchange, the nodes, the threads, the batch or the machine. Then the layouts between the passes, their memory
//! orders, and which axes share a pass: by the [cost model](crate::cost) of the machine at hand.

mod grids;
mod price;
mod search;
#[cfg(test)]
mod tests;

use grids::GridLayouts;
use price::{Placed, Prices};
use search::{Grids, PartialRecipe, RecipeSearch, TIE, by_cost};

use crate::choice::{Choice, Compress, Overlap, RAW};
use crate::cost::{Machine, Setting, predict};
use crate::error::{Error, Invalid, Result};
use crate::kind::Scale;
use crate::layout::{Box3, Layout, Order};
use crate::messages::Mechanism;
use crate::problem::Problem;
use crate::recipe::{Recipe, Step};
use crate::schedule::{AxisTransform, Direction, stages};
use ferrier_kernel::Precision;

/// Recipes of a search whose times are predicted pass by pass.
const PREDICTED: usize = 8;

/// An order of the axes must be better than the first one by more than this.
const HARDLY: f64 = 1.03;

/// An order that takes so many times as long as another one, for one of the two ways of moving data, is not taken.
const HOPELESS: f64 = 1.6;

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

/// The recipe that takes least time on these ranks of a machine. The order of the axes, and an output layout that is
/// left to the planner, are those of [`design`].
///
/// # Errors
/// Errors of [`Problem::check`] and [`Problem::layouts`]; [`Error::Choice`] for a number of ranks, a grid or an
/// order of axes that does not fit the problem.
pub fn design_on(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    setting: &Setting<'_>,
    (ranks, machine): (usize, &Machine),
) -> Result<Designed> {
    let inner = check(problem, choice, ranks)?;
    let (input, output) = problem.layouts(ranks)?;
    let order = output.as_ref().map_or(problem.output.order, Layout::order);
    let parts: Vec<usize> =
        [Some(&input), output.as_ref()].into_iter().flatten().flat_map(Layout::parts).collect();
    let layouts = GridLayouts {
        choice,
        inner,
        order,
        parts,
        groups: setting.grouped(inner),
        known: Default::default(),
    };
    let search = |prices, choice, [any_order, groups]: [bool; 2], output: Option<&Layout>| RecipeSearch {
        problem,
        choice,
        inner,
        order,
        any_order,
        groups,
        prices,
        input: Placed::new(input.clone(), problem.is_real()),
        output: output.map(|output| Placed::new(output.clone(), problem.has_real_spectrum())),
        columns: problem.sphere_columns(),
        layouts: &layouts,
        grids: Grids::default(),
    };
    let recipe = |partial: PartialRecipe, fuses: bool| {
        let layouts = (input.clone(), partial.placed.array.layout);
        let fused = fuses.then_some(partial.fused);
        Recipe { fused, ..assemble(problem, choice, precision, layouts, partial.steps) }
    };
    // The visible decisions, by default constants and for one array; of the choice by what constrains layouts.
    let layouts_only = Choice {
        axes: choice.axes.clone(),
        decomposition: choice.decomposition,
        ranks: choice.ranks,
        grid: choice.grid,
        ..Choice::default()
    };
    let (assumed, nodes) = (Machine::default(), (0..ranks).collect::<Vec<_>>());
    let shared = Setting::new(Mechanism::SharedMemory).ranks_per_host(ranks);
    let sent = Setting::new(Mechanism::Messages).nodes(&nodes).ranks_per_host(1);
    let [near, far] = [&shared, &sent].map(|setting| {
        let prices = Prices { machine: &assumed, setting, precision, batch: 1 };
        search(prices, &layouts_only, [false; 2], output.as_ref())
    });
    let listed = |axes: Vec<usize>| {
        let transforms = transforms(problem, choice, precision, &input, &axes);
        (axes, transforms)
    };
    let orders: Vec<(Vec<usize>, Vec<AxisTransform>)> = near.axis_orders()?.into_iter().map(listed).collect();
    let (axes, transforms) = &orders[best_order(&orders, [&near, &far])];
    // An output that is left to the planner is where the last transform leaves it.
    let open = output.is_none();
    let ending = open.then(|| far.recipes(axes, transforms, f64::INFINITY).into_iter().next()).flatten();
    let output = output.or_else(|| ending.as_ref().map(|partial| partial.placed.array.layout.clone()));
    // The layouts, by the machine at hand.
    let prices = Prices { machine, setting, precision, batch: problem.batch };
    let search = search(prices, choice, [prices.shares(), true], output.as_ref());
    // Tiles are chosen for a recipe, not the other way round.
    let seconds = |recipe: &Recipe| {
        let whole = Recipe { overlap: Overlap::default(), ..recipe.clone() };
        let of = |direction| predict(&whole, direction, false, setting, machine).seconds();
        (of(Direction::Forward) + of(Direction::Backward)) / 2.0
    };
    let found = search.recipes(axes, transforms, f64::INFINITY).into_iter();
    // Lines that were made contiguous are stored in the order of the output after the last transform.
    let any_end = !open || choice.reorder == Some(true);
    let mut found: Vec<PartialRecipe> =
        found.filter(|partial| any_end || ends_with_transform(&partial.steps)).take(PREDICTED).collect();
    if found.is_empty() {
        found.extend(ending);
    }
    let found: Vec<(Recipe, f64)> = found
        .into_iter()
        .map(|partial| {
            let recipe = recipe(partial, search.fuses());
            let seconds = seconds(&recipe);
            (recipe, seconds)
        })
        .collect();
    let mut found = by_cost(found, |(_, seconds)| *seconds);
    if prices.shares() {
        longest_runs_first(&mut found, order);
    }
    let mut found = found.into_iter();
    let (recipe, seconds) = found.next().ok_or_else(|| {
        let message = "no grid of ranks is of the chosen path";
        Error::Choice(Invalid::new("path", message).got(format!("{:?}", choice.decomposition)))
    })?;
    Ok(Designed { recipe, seconds, rejected: found.collect() })
}

/// The order that is best where ranks share memory and where they send messages: of the times of both, relative to
/// those of the orders that are best for each, the smallest sum. The first, which transforms contiguous lines first, is
/// kept if another one is hardly better.
fn best_order(orders: &[(Vec<usize>, Vec<AxisTransform>)], searches: [&RecipeSearch<'_>; 2]) -> usize {
    if orders.len() == 1 {
        return 0;
    }
    let mut sums = vec![0.0; orders.len()];
    for search in searches {
        let mut least = f64::INFINITY;
        let cost = |(axes, transforms): &(Vec<usize>, Vec<AxisTransform>)| {
            let found = search.recipes(axes, transforms, HOPELESS * least);
            let cost = found.first().map_or(f64::INFINITY, |recipe| recipe.cost);
            least = least.min(cost);
            cost
        };
        let costs: Vec<f64> = orders.iter().map(cost).collect();
        sums.iter_mut()
            .zip(&costs)
            .for_each(|(sum, cost)| *sum += if least > 0.0 { cost / least } else { 1.0 });
    }
    let least = (0..orders.len()).min_by(|&one, &other| sums[one].total_cmp(&sums[other])).unwrap_or(0);
    if sums[0] <= sums[least] * HARDLY { 0 } else { least }
}

/// Of recipes that take as long as the first, puts the one first whose layouts have the longest runs in memory, up to a
/// page, and the fewest memory orders besides `order`: what the model does not know favours those.
fn longest_runs_first(found: &mut [(Recipe, f64)], order: Order) {
    let Some(least) = found.iter().map(|(_, seconds)| *seconds).reduce(f64::min) else { return };
    let merit = |recipe: &Recipe| {
        let layouts = || {
            recipe.steps.iter().filter_map(|step| match step {
                Step::Reshape { to, .. } => Some(to),
                Step::Transform { .. } => None,
            })
        };
        let element = 2 * recipe.precision.bytes();
        let run = layouts().map(|layout| layout.run() * element).min().unwrap_or(usize::MAX);
        (run.min(4096), std::cmp::Reverse(layouts().filter(|layout| layout.order() != order).count()))
    };
    let equal = (0..found.len()).filter(|&at| found[at].1 <= least * TIE);
    // Of equal merits the first: `max_by_key` gives the last.
    if let Some(best) = equal.rev().max_by_key(|&at| merit(&found[at].0)) {
        found[..=best].rotate_right(1);
    }
}

/// Whether no data moves between ranks after the last transform.
fn ends_with_transform(steps: &[Step]) -> bool {
    let last =
        steps.iter().rposition(|step| matches!(step, Step::Transform { .. })).map_or(0, |last| last + 1);
    !steps[last..].iter().any(|step| matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes()))
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

/// The transforms of `forward` in this order of the axes.
fn transforms(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    input: &Layout,
    axes: &[usize],
) -> Vec<AxisTransform> {
    // They do not depend on the distribution: as on one rank.
    let whole = Layout::trusted(input.shape(), vec![Box3::whole(input.shape())], input.order());
    let kinds = problem.kinds();
    let steps = axes.iter().map(|&axis| Step::Transform { axis, kind: kinds[axis] }).collect();
    let recipe = assemble(problem, choice, precision, (whole.clone(), whole), steps);
    let stages = stages(&recipe, Direction::Forward, false);
    stages.into_iter().filter_map(|stage| stage.transform).collect()
}

fn assemble(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    (input, output): (Layout, Layout),
    steps: Vec<Step>,
) -> Recipe {
    Recipe {
        shape: problem.shape,
        kinds: problem.kinds(),
        real: problem.is_real(),
        keep: problem.keep,
        support: problem.support,
        sphere: problem.sphere,
        ortho: [problem.scale_forward, problem.scale_backward].map(|scale| scale == Scale::Symmetric),
        precision,
        batch: problem.batch,
        scale_forward: problem.scale_forward.factor(problem.points()),
        scale_backward: problem.scale_backward.factor(problem.points()),
        operators: problem.operators,
        long: problem.long.then_some(problem.shape[1] * problem.shape[2]),
        sign: problem.sign,
        input,
        output,
        steps,
        exchange: choice.exchange.clone().unwrap_or_default(),
        codec: RAW.into(),
        compress: choice.compress.unwrap_or(Compress::BetweenRanks),
        kernel: choice.kernel.clone().unwrap_or_default(),
        fuse: choice.fuse,
        fused: None,
        overlap: choice.overlap.clone().unwrap_or_default(),
        memory: choice.memory,
    }
}
