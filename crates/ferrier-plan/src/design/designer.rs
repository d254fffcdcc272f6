//! The two stages of a design: what users see, and the layouts between the passes.

use super::grids::GridLayouts;
use super::price::{Placed, Prices};
use super::search::{Grids, PartialRecipe, RecipeSearch, TIE, by_cost};
use crate::choice::{Choice, Compress, Overlap, RAW};
use crate::cost::{Machine, Setting, predict};
use crate::error::Result;
use crate::geometry::width;
use crate::kind::Scale;
use crate::layout::{Box3, Layout, Order};
use crate::lowering::MemoryPolicy;
use crate::messages::Mechanism;
use crate::problem::Problem;
use crate::recipe::{Recipe, Step};
use crate::schedule::{AxisTransform, Direction, stages};
use ferrier_kernel::Precision;

/// Recipes of a search whose times are predicted pass by pass.
const PREDICTED: usize = 8;

/// An order of the axes must be better than the first one by more than this.
const HARDLY: f64 = 1.03;

/// The same where both are predicted for the machine at hand: about the error of predictions.
const CLEARLY: f64 = 1.1;

/// An order that takes so many times as long as another one, for one of the two ways of moving data, is not taken.
const HOPELESS: f64 = 1.6;

/// What a design is for.
#[derive(Clone)]
pub(super) struct Designer<'a> {
    pub problem: &'a Problem,
    pub choice: &'a Choice,
    pub precision: Precision,
    pub ranks: usize,
    pub machine: &'a Machine,
    pub input: Layout,
    /// `None`: left to the planner.
    pub output: Option<Layout>,
}

/// The decisions that users see.
pub(super) struct Visible {
    axes: Vec<usize>,
    transforms: Vec<AxisTransform>,
    output: Option<Layout>,
    /// Whether the output was left to the planner.
    pub open: bool,
    /// The recipe whose end such an output is.
    ending: Option<PartialRecipe>,
}

impl Designer<'_> {
    fn order(&self) -> Order {
        self.output.as_ref().map_or(self.problem.output.order, Layout::order)
    }

    /// The grids of so many ranks.
    pub fn grids<'b>(&'b self, inner: usize, setting: &Setting<'_>) -> GridLayouts<'b> {
        let ends = [Some(&self.input), self.output.as_ref()].into_iter().flatten();
        GridLayouts {
            choice: self.choice,
            inner,
            order: self.order(),
            parts: ends.flat_map(Layout::parts).collect(),
            groups: setting.grouped(inner),
            known: Default::default(),
        }
    }

    fn search<'b>(
        &'b self,
        prices: Prices<'b>,
        choice: &'b Choice,
        [any_order, groups]: [bool; 2],
        output: Option<&Layout>,
        layouts: &'b GridLayouts<'b>,
    ) -> RecipeSearch<'b> {
        let problem = self.problem;
        RecipeSearch {
            problem,
            choice,
            inner: layouts.inner,
            order: self.order(),
            any_order,
            groups,
            prices,
            input: Placed::new(self.input.clone(), problem.is_real()),
            output: output.map(|output| Placed::new(output.clone(), problem.has_real_spectrum())),
            columns: problem.sphere_columns(),
            layouts,
            grids: Grids::default(),
        }
    }

    /// The decisions that users see, for one array and by what of the choice constrains layouts.
    ///
    /// An output that is left to the planner, and the order of the axes where `here` is `None`, are those of constants that
    /// do not change. Else the order is the one that is predicted to be fastest in this setting on the machine at hand.
    pub fn visible(&self, layouts: &[&GridLayouts<'_>], here: Option<&Setting<'_>>) -> Result<Visible> {
        let Designer { problem, choice, precision, ranks, .. } = *self;
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
            self.search(prices, &layouts_only, [false; 2], self.output.as_ref(), layouts[0])
        });
        let listed = |axes: Vec<usize>| {
            let transforms = transforms(problem, choice, precision, &self.input, &axes);
            (axes, transforms)
        };
        let mut orders: Vec<(Vec<usize>, Vec<AxisTransform>)> =
            near.axis_orders()?.into_iter().map(listed).collect();
        // An output that is left to the planner is where the last transform leaves it.
        let open = self.output.is_none();
        let best = match here.filter(|_| !open) {
            Some(setting) => self.fastest_order(&orders, &layouts_only, setting, layouts),
            None => best_order(&orders, [&near, &far]),
        };
        let (axes, transforms) = orders.swap_remove(best);
        let ending =
            open.then(|| far.recipes(&axes, &transforms, f64::INFINITY).into_iter().next()).flatten();
        let left = || ending.as_ref().map(|partial| partial.placed.array.layout.clone());
        let output = self.output.clone().or_else(left);
        Ok(Visible { axes, transforms, output, open, ending })
    }

    /// The setting of these nodes that orders of the axes are compared in: that of the fastest exchange, with all cores busy.
    pub fn usual<'s>(&self, setting: &Setting<'s>) -> Setting<'s> {
        let machine = self.machine;
        let one_node = setting.nodes.iter().all(|node| *node == setting.nodes[0]);
        let mechanism = if one_node { Mechanism::SharedMemory } else { Mechanism::Messages };
        let here = setting.ranks_on_host(0, self.ranks).max(1);
        let threads = (machine.cores / here).max(1);
        let hosts = (self.ranks / here).max(1);
        let problem = self.problem;
        let side = |shape: [usize; 3], real| {
            shape.iter().product::<usize>() * width(real) / hosts * self.precision.bytes()
        };
        let ends = [
            side(problem.shape(), problem.is_real()),
            side(problem.spectrum_shape(), problem.has_real_spectrum()),
        ];
        let policy = MemoryPolicy {
            stream: machine.streams_arrays(self.ranks, ends),
            staging: machine.stages(threads, here * threads),
            bundle_bytes: setting.memory_policy.bundle_bytes,
            threads,
            ..MemoryPolicy::default()
        };
        Setting::new(mechanism)
            .nodes(setting.nodes)
            .ranks_per_host(setting.ranks_per_host)
            .threads(threads)
            .plane_bytes(setting.plane_bytes)
            .memory_policy(policy)
    }

    /// Of these orders the one whose best recipe is predicted to be fastest. The first, which transforms contiguous lines
    /// first, is kept if another one is hardly better.
    fn fastest_order(
        &self,
        orders: &[(Vec<usize>, Vec<AxisTransform>)],
        choice: &Choice,
        setting: &Setting<'_>,
        layouts: &[&GridLayouts<'_>],
    ) -> usize {
        if orders.len() == 1 {
            return 0;
        }
        let single = self.problem.clone().batch(1);
        let alone = Designer { problem: &single, choice, ..self.clone() };
        let seconds = |(axes, transforms): &(Vec<usize>, Vec<AxisTransform>)| {
            let visible = Visible {
                axes: axes.clone(),
                transforms: transforms.clone(),
                output: self.output.clone(),
                open: false,
                ending: None,
            };
            let best = |layouts: &&GridLayouts<'_>| {
                alone.recipes(&visible, setting, layouts).first().map(|(_, seconds)| *seconds)
            };
            layouts.iter().filter_map(best).fold(f64::INFINITY, f64::min)
        };
        let seconds: Vec<f64> = orders.iter().map(seconds).collect();
        let least =
            (0..orders.len()).min_by(|&one, &other| seconds[one].total_cmp(&seconds[other])).unwrap_or(0);
        if seconds[0] <= seconds[least] * CLEARLY { 0 } else { least }
    }

    /// The recipes that are predicted to be fastest on the machine at hand, the best first, and their seconds.
    pub fn recipes(
        &self,
        visible: &Visible,
        setting: &Setting<'_>,
        layouts: &GridLayouts<'_>,
    ) -> Vec<(Recipe, f64)> {
        let Designer { problem, choice, precision, machine, .. } = *self;
        let prices = Prices { machine, setting, precision, batch: problem.batch };
        let flags = [prices.shares(), true];
        let search = self.search(prices, choice, flags, visible.output.as_ref(), layouts);
        let found = search.recipes(&visible.axes, &visible.transforms, f64::INFINITY).into_iter();
        // Lines that were made contiguous are stored in the order of the output after the last transform.
        let any_end = !visible.open || choice.reorder == Some(true);
        let ends = |partial: &PartialRecipe| any_end || ends_with_transform(&partial.steps);
        let mut found: Vec<PartialRecipe> = found.filter(ends).take(PREDICTED).collect();
        if found.is_empty() {
            found.extend(visible.ending.clone());
        }
        let predicted = |partial: PartialRecipe| {
            let ends = (self.input.clone(), partial.placed.array.layout);
            let fused = search.fuses().then_some(partial.fused);
            let recipe = Recipe { fused, ..assemble(problem, choice, precision, ends, partial.steps) };
            // Tiles are chosen for a recipe, not the other way round.
            let whole = Recipe { overlap: Overlap::default(), ..recipe.clone() };
            (recipe, mean_seconds(&whole, setting, machine))
        };
        let found: Vec<(Recipe, f64)> = found.into_iter().map(predicted).collect();
        let mut found = by_cost(found, |(_, seconds)| *seconds);
        if prices.shares() {
            longest_runs_first(&mut found, self.order());
        }
        found
    }
}

/// Predicted seconds, of `forward` and `backward` on average.
pub(super) fn mean_seconds(recipe: &Recipe, setting: &Setting<'_>, machine: &Machine) -> f64 {
    let of = |direction| predict(recipe, direction, false, setting, machine).seconds();
    (of(Direction::Forward) + of(Direction::Backward)) / 2.0
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
