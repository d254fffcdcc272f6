//! From a problem and a choice to a recipe: a pure function.
//!
//! A dynamic program over the axes: for each order of the axes it extends partial recipes from the input layout to
//! the output layout, one axis at a time. An axis that is not split is transformed in the current layout;
//! otherwise all pencil and slab grids (and the output layout itself) are candidates for the layout to reshape to.
//! Of partial recipes that end in the same layout the cheapest is kept. The cost is predicted from bytes,
//! messages and imbalance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::choice::{Choice, Compress, Decomposition, RAW};
use crate::error::{Error, Invalid, Result};
use crate::kind::{Kind, Scale};
use crate::layout::{Box3, Layout, Order, factor_pairs, grid_boxes};
use crate::modes::{Columns, transformed};
use crate::problem::Problem;
use crate::recipe::{Recipe, Step};
use crate::speeds::MachineSpeeds;
use ferrier_kernel::Precision;

/// Ranks that the cost of a reshape is computed from: all of up to so many, a sample of more.
const SAMPLED_RANKS: usize = 256;

/// The cheapest recipe for this problem on this many ranks by these speeds. An output layout that is left to the
/// planner does not depend on the speeds: it is the one of the default speeds.
///
/// Names of exchange and kernel are copied from the choice, empty if it has none; no codec is chosen.
///
/// # Errors
/// Errors of [`Problem::check`] and [`Problem::layouts`]; [`Error::Choice`] for a number of ranks, a grid or an
/// order of axes that does not fit the problem.
pub fn design(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: usize,
    speeds: &MachineSpeeds,
) -> Result<Recipe> {
    let recipe = cheapest(problem, choice, precision, ranks, *speeds)?;
    if problem.layouts(ranks)?.1.is_none() && *speeds != MachineSpeeds::default() {
        let default = cheapest(problem, choice, precision, ranks, MachineSpeeds::default())?;
        return Ok(if default.output == recipe.output { recipe } else { default });
    }
    Ok(recipe)
}

fn cheapest(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: usize,
    speeds: MachineSpeeds,
) -> Result<Recipe> {
    problem.check()?;
    let (input, output) = problem.layouts(ranks)?;
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
    let order = output.as_ref().map_or(problem.output.order, Layout::order);
    let search = RecipeSearch {
        problem,
        decomposition: choice.decomposition,
        grid: choice.grid,
        inner,
        order,
        precision,
        speeds,
        output: output.as_ref(),
        columns: problem.sphere_columns(),
        grids: RefCell::default(),
    };
    let best = search.cheapest(&input, choice.axes.as_deref())?;
    let recipe = Recipe {
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
        input,
        output: best.layout,
        steps: best.steps,
        exchange: choice.exchange.clone().unwrap_or_default(),
        codec: RAW.into(),
        compress: choice.compress.unwrap_or(Compress::BetweenRanks),
        kernel: choice.kernel.clone().unwrap_or_default(),
        fuse: choice.fuse,
        overlap: choice.overlap.clone().unwrap_or_default(),
        memory: choice.memory,
    };
    Ok(recipe)
}

struct RecipeSearch<'a> {
    problem: &'a Problem,
    decomposition: Option<Decomposition>,
    grid: Option<[usize; 2]>,
    /// Number of ranks that hold data between the first and the last reshape.
    inner: usize,
    /// Memory order of the layouts between steps, and of the output.
    order: Order,
    precision: Precision,
    speeds: MachineSpeeds,
    output: Option<&'a Layout>,
    columns: Option<Columns>,
    /// Candidates by the shape of the array and the axis to transform next: many partial recipes share them.
    grids: Grids,
}

type Grids = RefCell<HashMap<([usize; 3], usize), Rc<[Candidate]>>>;

/// A layout in which an axis can be transformed, before and after the transform.
#[derive(Clone)]
struct Candidate {
    before: Layout,
    after: Layout,
    /// Elements of the largest box before and after.
    largest: [usize; 2],
}

/// A partial recipe.
#[derive(Clone)]
struct PartialRecipe {
    steps: Vec<Step>,
    /// The array after the steps.
    layout: Layout,
    real: bool,
    /// Predicted seconds of the steps.
    cost: f64,
}

impl RecipeSearch<'_> {
    fn cheapest(&self, input: &Layout, forced: Option<&[usize]>) -> Result<PartialRecipe> {
        let orders = self.axis_orders(input, forced)?;
        let start = PartialRecipe {
            steps: Vec::new(),
            layout: input.clone(),
            real: self.problem.is_real(),
            cost: 0.0,
        };
        let mut best: Option<PartialRecipe> = None;
        for axes in orders {
            let bound = best.as_ref().map_or(f64::INFINITY, |best: &PartialRecipe| best.cost);
            for candidate in self.complete(start.clone(), &axes, bound) {
                // Ties keep the first order, which transforms contiguous lines first.
                if best.as_ref().is_none_or(|best| candidate.cost < best.cost * (1.0 - 1e-9)) {
                    best = Some(candidate);
                }
            }
        }
        Ok(best.expect("there is at least one order of the axes"))
    }

    /// Orders of the axes to try; the first one transforms the fastest axis in memory first. The halved axis of a
    /// real transform comes before complex ones in all orders.
    fn axis_orders(&self, input: &Layout, forced: Option<&[usize]>) -> Result<Vec<Vec<usize>>> {
        // A complex axis of one point needs no transform, except the one that forms columns.
        let idle = |axis: usize| {
            let single = self.problem.shape[axis] == 1 && self.problem.kinds()[axis] == Kind::Complex;
            single && !(axis == 1 && self.columns.is_some())
        };
        let listed = &self.problem.axes;
        let legal = |axes: &[usize]| self.problem.is_legal_order(axes);
        // The order of the two factors of a long transform is fixed.
        let long = self.problem.long.then_some(&[1, 2][..]);
        if let Some(axes) = forced.or(long) {
            let fail =
                |message: String| Err(Error::Choice(Invalid::new("axes", message).got(format!("{axes:?}"))));
            let mut sorted = (axes.to_vec(), listed.clone());
            sorted.0.sort_unstable();
            sorted.1.sort_unstable();
            if sorted.0 != sorted.1 {
                return fail(format!(
                    "the order of the axes must list each of {listed:?} once; got {axes:?}"
                ));
            }
            if !legal(axes) && self.columns.is_some() {
                return fail(format!(
                    "the columns of a sphere need axes 2, 1, 0 in this order; got {axes:?}"
                ));
            }
            if !legal(axes) && long.is_some() {
                return fail(format!("a long transform goes by axes [1, 2]; got {axes:?}"));
            }
            if !legal(axes) {
                return fail(format!(
                    "the halved axis {} of a real transform comes first, ahead of complex ones; got {axes:?}",
                    self.problem.halved
                ));
            }
            return Ok(vec![axes.iter().copied().filter(|&axis| !idle(axis)).collect()]);
        }
        let mut fastest_first =
            if self.problem.reproducible { Order::C.axes() } else { input.order().axes() };
        fastest_first.reverse();
        let mut all = permutations(fastest_first);
        for axes in &mut all {
            axes.retain(|&axis| listed.contains(&axis) && !idle(axis));
            if self.columns.is_some() {
                axes.sort_unstable_by(|a, b| b.cmp(a));
            }
            let halved = axes.iter().position(|&axis| self.problem.real && axis == self.problem.halved);
            if let Some(at) = halved.filter(|_| !legal(axes)) {
                axes[..=at].rotate_right(1);
            }
        }
        let mut seen = Vec::new();
        all.retain(|axes| {
            !seen.contains(axes) && {
                seen.push(axes.clone());
                true
            }
        });
        if self.problem.reproducible {
            all.truncate(1);
        }
        Ok(all)
    }

    /// The cheapest recipe that transforms `axes` in this order, for each layout after the last transform; those
    /// whose transforms cost more than `bound` are left out.
    fn complete(&self, start: PartialRecipe, axes: &[usize], bound: f64) -> Vec<PartialRecipe> {
        let mut partials = vec![start];
        for &axis in axes {
            let mut next: Vec<PartialRecipe> = Vec::new();
            for partial in &partials {
                for candidate in &*self.candidates(partial, axis) {
                    let cost = partial.cost
                        + self.reshape_cost(&partial.layout, &candidate.before, partial.real)
                        + self.transform_cost(candidate, axis, partial.real);
                    if cost > bound {
                        continue;
                    }
                    let extended = || self.extended(partial.clone(), candidate, axis, cost);
                    match next.iter_mut().find(|other| other.layout == candidate.after) {
                        Some(other) if other.cost <= cost => {}
                        Some(other) => *other = extended(),
                        None => next.push(extended()),
                    }
                }
            }
            partials = next;
        }
        partials
            .into_iter()
            .map(|partial| match self.output {
                Some(output) => self.reshaped(partial, &output.clone()),
                None => {
                    let local = partial.layout.clone().with_order(self.order);
                    self.reshaped(partial, &local)
                }
            })
            .collect()
    }

    /// Layouts in which `axis` can be transformed next.
    fn candidates(&self, partial: &PartialRecipe, axis: usize) -> Rc<[Candidate]> {
        if partial.layout.is_whole(axis) && self.inner_fits(&partial.layout) {
            return [self.candidate(partial.layout.clone(), axis)].into();
        }
        let shape = partial.layout.shape();
        let known = self.grids.borrow().get(&(shape, axis)).cloned();
        known.unwrap_or_else(|| {
            let found = self.grids_for(shape, partial.layout.ranks(), axis).into_iter();
            let found: Rc<[Candidate]> = found.map(|layout| self.candidate(layout, axis)).collect();
            self.grids.borrow_mut().insert((shape, axis), found.clone());
            found
        })
    }

    fn candidate(&self, before: Layout, axis: usize) -> Candidate {
        let after = transformed(&before, axis, &self.problem.modes(axis), self.columns.as_ref());
        Candidate { largest: [before.largest(), after.largest()], before, after }
    }

    /// Grids of ranks in which `axis` is whole, and the output layout if it is.
    fn grids_for(&self, shape: [usize; 3], ranks: usize, axis: usize) -> Vec<Layout> {
        let others: Vec<usize> = (0..3).filter(|&a| a != axis).collect();
        let mut found = Vec::new();
        for (p, q) in factor_pairs(self.inner) {
            let is_slab = p == 1 || q == 1;
            let allowed = match self.decomposition {
                None => true,
                Some(Decomposition::Slab) => is_slab,
                Some(Decomposition::Pencil) => !is_slab || factor_pairs(self.inner).count() <= 2,
            };
            if allowed && self.grid.is_none_or(|grid| grid == [p, q]) {
                let mut grid = [1; 3];
                (grid[others[0]], grid[others[1]]) = (p, q);
                let boxes = grid_boxes(shape, grid, ranks);
                if !is_slab {
                    // The grid in column-major order of ranks: more data may stay on its rank.
                    let mut transposed = boxes.clone();
                    (0..p * q).for_each(|rank| transposed[rank] = boxes[rank % p * q + rank / p]);
                    found.push(Layout::trusted(shape, transposed, self.order));
                }
                found.push(Layout::trusted(shape, boxes, self.order));
            }
        }
        let smallest = found.iter().map(Layout::largest).min().unwrap_or(0);
        found.retain(|layout| layout.largest() <= 2 * smallest);
        // The output layout itself, if this axis is the last one whose length changes.
        if let Some(output) = self.output.filter(|output| output.is_whole(axis) && self.inner_fits(output)) {
            let before = output.with_axis(axis, shape[axis]);
            if before.shape() == shape {
                found.push(before);
            }
        }
        found
    }

    /// Whether only inner ranks hold data; other layouts are for input and output only.
    fn inner_fits(&self, layout: &Layout) -> bool {
        layout.boxes()[self.inner..].iter().all(Box3::is_empty)
    }

    /// A partial recipe with one more axis, whose cost is `cost` then.
    fn extended(
        &self,
        partial: PartialRecipe,
        candidate: &Candidate,
        axis: usize,
        cost: f64,
    ) -> PartialRecipe {
        let mut extended = moved(partial, &candidate.before);
        let kind = self.problem.kinds()[axis];
        extended.steps.push(Step::Transform { axis, kind });
        extended.layout = candidate.after.clone();
        extended.real &= kind != Kind::Real;
        extended.cost = cost;
        extended
    }

    /// Predicted seconds of a transform of an array that is real or not.
    fn transform_cost(&self, candidate: &Candidate, axis: usize, real: bool) -> f64 {
        let real_after = real && self.problem.kinds()[axis] != Kind::Real;
        let [before, after] = candidate.largest;
        // The array before is read, the array after is written; the speed counts both.
        (self.bytes(before, real) + self.bytes(after, real_after)) / 2.0 / self.speeds.memory_bytes_s
    }

    fn reshaped(&self, mut partial: PartialRecipe, to: &Layout) -> PartialRecipe {
        partial.cost += self.reshape_cost(&partial.layout, to, partial.real);
        moved(partial, to)
    }

    fn bytes(&self, elements: usize, real: bool) -> f64 {
        elements as f64 * (self.precision.bytes() * if real { 1 } else { 2 } * self.problem.batch) as f64
    }

    /// Predicted seconds of the busiest rank, sending or receiving.
    fn reshape_cost(&self, from: &Layout, to: &Layout, real: bool) -> f64 {
        if from == to {
            return 0.0;
        }
        let seconds = |[elements, messages]: [usize; 2]| {
            self.bytes(elements, real) / self.speeds.wire_bytes_s + self.speeds.latency_s * messages as f64
        };
        let of_rank = |rank| seconds(from.sent(to, rank)).max(seconds(to.sent(from, rank)));
        sample(from.ranks()).map(of_rank).fold(0.0, f64::max)
    }
}

/// A partial recipe with a reshape, unless the array is in that layout; its cost stays.
fn moved(mut partial: PartialRecipe, to: &Layout) -> PartialRecipe {
    if partial.layout != *to {
        let from = std::mem::replace(&mut partial.layout, to.clone());
        partial.steps.push(Step::Reshape { from, to: to.clone() });
    }
    partial
}

/// The ranks that the cost of a reshape is computed from. A constant stride would select the same column in every
/// row of a grid, so samples are spaced by the golden ratio.
fn sample(ranks: usize) -> impl Iterator<Item = usize> {
    let count = ranks.min(SAMPLED_RANKS);
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    (0..count).map(move |i| match count == ranks {
        true => i,
        false => ((i as f64 * golden).fract() * ranks as f64) as usize,
    })
}

fn permutations([a, b, c]: [usize; 3]) -> Vec<Vec<usize>> {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]].map(Vec::from).to_vec()
}
