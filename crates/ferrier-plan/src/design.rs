//! From a problem and a choice to a recipe: a pure function.
//!
//! The planner walks from the input layout to the output layout, one axis at
//! a time. An axis that every rank has whole is transformed where it lies;
//! for any other one, all pencil and slab grids (and the output layout itself)
//! are candidates for the layout to reshape to. The cheapest walk by predicted
//! bytes, messages and imbalance wins.

use crate::choice::RAW;
use crate::error::Invalid;
use crate::layout::{factor_pairs, grid_boxes};
use crate::modes::{Columns, transformed};
use crate::{
    Box3, Choice, Compress, Decomposition, Error, Kind, Layout, MachineSpeeds, Order, Precision, Problem,
    Recipe, Result, Scale, Step,
};

/// Pairs of ranks that are looked at to judge a reshape: all of 128 ranks, a sample of more.
const PAIRS: usize = 1 << 14;

/// The recipe for this problem on this many ranks, judged by these speeds. An output that is left to the planner
/// lies where the default speeds put it, whatever they are.
///
/// Names of exchange and kernel are taken as they are, empty ones where the choice has none; no codec is chosen.
///
/// # Errors
/// Whatever is wrong with the problem, its layouts or the choice.
pub fn design(
    problem: &Problem,
    choice: &Choice,
    precision: Precision,
    ranks: usize,
    speeds: &MachineSpeeds,
) -> Result<Recipe> {
    let recipe = judged(problem, choice, precision, ranks, *speeds)?;
    if problem.layouts(ranks)?.1.is_none() && *speeds != MachineSpeeds::default() {
        let usual = judged(problem, choice, precision, ranks, MachineSpeeds::default())?;
        return Ok(if usual.output == recipe.output { recipe } else { usual });
    }
    Ok(recipe)
}

fn judged(
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
    let walker = Walker {
        problem,
        path: choice.path,
        grid: choice.grid,
        inner,
        order,
        precision,
        speeds,
        output: output.as_ref(),
        columns: problem.sphere_columns(),
    };
    let walk = walker.best(&input, choice.axes.as_deref())?;
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
        output: walk.layout,
        steps: walk.steps,
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

struct Walker<'a> {
    problem: &'a Problem,
    path: Option<Decomposition>,
    grid: Option<[usize; 2]>,
    inner: usize,
    order: Order,
    precision: Precision,
    speeds: MachineSpeeds,
    output: Option<&'a Layout>,
    columns: Option<Columns>,
}

/// A walk so far: the steps, where they lead, what they cost.
#[derive(Clone)]
struct Walk {
    steps: Vec<Step>,
    layout: Layout,
    real: bool,
    cost: f64,
}

impl Walker<'_> {
    fn best(&self, input: &Layout, forced: Option<&[usize]>) -> Result<Walk> {
        let orders = self.axis_orders(input, forced)?;
        let start =
            Walk { steps: Vec::new(), layout: input.clone(), real: self.problem.is_real(), cost: 0.0 };
        let mut best: Option<Walk> = None;
        for axes in orders {
            let bound = best.as_ref().map_or(f64::INFINITY, |best: &Walk| best.cost);
            for walk in self.walks(start.clone(), &axes, bound) {
                // A clear gain is wanted: equal walks keep the order that suits memory best.
                if best.as_ref().is_none_or(|best| walk.cost < best.cost * (1.0 - 1e-9)) {
                    best = Some(walk);
                }
            }
        }
        Ok(best.expect("there is at least one order of the axes"))
    }

    /// Orders to try, the one that takes the fastest axis in memory first
    /// ahead. The halved axis of a real transform comes before complex ones in all.
    fn axis_orders(&self, input: &Layout, forced: Option<&[usize]>) -> Result<Vec<Vec<usize>>> {
        // A complex axis of one point is its own transform, but not that which makes columns.
        let idle = |axis: usize| {
            let single = self.problem.shape[axis] == 1 && self.problem.kinds()[axis] == Kind::Complex;
            single && !(axis == 1 && self.columns.is_some())
        };
        let listed = &self.problem.axes;
        let legal = |axes: &[usize]| self.problem.is_legal_order(axes);
        // The two factors of a long transform have their order.
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

    /// The cheapest walk through `axes` for each layout it can end its last
    /// transform in, then on to the output; none that costs more than `bound`.
    fn walks(&self, start: Walk, axes: &[usize], bound: f64) -> Vec<Walk> {
        let mut fronts = vec![start];
        for &axis in axes {
            let mut next: Vec<Walk> = Vec::new();
            for walk in &fronts {
                for candidate in self.candidates(walk, axis) {
                    let moved = self.transformed(self.reshaped(walk.clone(), &candidate), axis);
                    if moved.cost > bound {
                        continue;
                    }
                    match next.iter_mut().find(|other| other.layout == moved.layout) {
                        Some(other) if other.cost <= moved.cost => {}
                        Some(other) => *other = moved,
                        None => next.push(moved),
                    }
                }
            }
            fronts = next;
        }
        fronts
            .into_iter()
            .map(|walk| match self.output {
                Some(output) => self.reshaped(walk, &output.clone()),
                None => {
                    let local = walk.layout.clone().with_order(self.order);
                    self.reshaped(walk, &local)
                }
            })
            .collect()
    }

    /// Layouts in which `axis` can be transformed next.
    fn candidates(&self, walk: &Walk, axis: usize) -> Vec<Layout> {
        if walk.layout.is_whole(axis) && self.inner_fits(&walk.layout) {
            return vec![walk.layout.clone()];
        }
        let (shape, ranks) = (walk.layout.shape(), walk.layout.ranks());
        let others: Vec<usize> = (0..3).filter(|&a| a != axis).collect();
        let mut found = Vec::new();
        for (p, q) in factor_pairs(self.inner) {
            let is_slab = p == 1 || q == 1;
            let allowed = match self.path {
                None => true,
                Some(Decomposition::Slab) => is_slab,
                Some(Decomposition::Pencil) => !is_slab || factor_pairs(self.inner).count() <= 2,
            };
            if allowed && self.grid.is_none_or(|grid| grid == [p, q]) {
                let mut grid = [1; 3];
                (grid[others[0]], grid[others[1]]) = (p, q);
                let boxes = grid_boxes(shape, grid, ranks);
                if !is_slab {
                    // Rows and columns of ranks may change places: then a rank may keep more of what it has.
                    let mut turned = boxes.clone();
                    (0..p * q).for_each(|rank| turned[rank] = boxes[rank % p * q + rank / p]);
                    found.push(Layout::trusted(shape, turned, self.order));
                }
                found.push(Layout::trusted(shape, boxes, self.order));
            }
        }
        let even = found.iter().map(Layout::largest).min().unwrap_or(0);
        found.retain(|layout| layout.largest() <= 2 * even);
        // The output itself, seen before this axis changes its length, the last one that does.
        if let Some(output) = self.output.filter(|output| output.is_whole(axis) && self.inner_fits(output)) {
            let before = output.with_axis(axis, shape[axis]);
            if before.shape() == shape {
                found.push(before);
            }
        }
        found
    }

    /// With fewer ranks inside than outside, layouts that use more are only for the ends.
    fn inner_fits(&self, layout: &Layout) -> bool {
        layout.boxes()[self.inner..].iter().all(Box3::is_empty)
    }

    fn transformed(&self, mut walk: Walk, axis: usize) -> Walk {
        let kind = self.problem.kinds()[axis];
        walk.steps.push(Step::Transform { axis, kind });
        let before = self.bytes(walk.layout.largest(), walk.real);
        walk.layout = transformed(&walk.layout, axis, &self.problem.modes(axis), self.columns.as_ref());
        walk.real &= kind != Kind::Real;
        // Half is read and half is written.
        walk.cost +=
            (before + self.bytes(walk.layout.largest(), walk.real)) / 2.0 / self.speeds.memory_bytes_s;
        walk
    }

    fn reshaped(&self, mut walk: Walk, to: &Layout) -> Walk {
        if walk.layout == *to {
            return walk;
        }
        walk.cost += self.reshape_cost(&walk.layout, to, walk.real);
        walk.steps.push(Step::Reshape { from: walk.layout, to: to.clone() });
        walk.layout = to.clone();
        walk
    }

    fn bytes(&self, elements: usize, real: bool) -> f64 {
        elements as f64 * (self.precision.bytes() * if real { 1 } else { 2 } * self.problem.batch) as f64
    }

    /// Time of the busiest rank, sending or receiving.
    fn reshape_cost(&self, from: &Layout, to: &Layout, real: bool) -> f64 {
        let one_way = |own: &Box3, rank: usize, theirs: &[Box3]| {
            let (mut volume, mut messages) = (0, 0);
            for (peer, other) in theirs.iter().enumerate() {
                if own.lo[0] < other.hi[0] && other.lo[0] < own.hi[0] && peer != rank {
                    let shared = own.intersect(other).volume();
                    volume += shared;
                    messages += usize::from(shared > 0);
                }
            }
            self.bytes(volume, real) / self.speeds.wire_bytes_s + self.speeds.latency_s * messages as f64
        };
        sample(from.ranks())
            .map(|rank| {
                let sent = one_way(&from.boxes()[rank], rank, to.boxes());
                sent.max(one_way(&to.boxes()[rank], rank, from.boxes()))
            })
            .fold(0.0, f64::max)
    }
}

/// Ranks to look at. An even stride would meet the same place of every row of
/// a grid, so samples are spread by the golden ratio.
fn sample(ranks: usize) -> impl Iterator<Item = usize> {
    let count = ranks.min((PAIRS / ranks).max(4));
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    (0..count).map(move |i| match count == ranks {
        true => i,
        false => ((i as f64 * golden).fract() * ranks as f64) as usize,
    })
}

fn permutations([a, b, c]: [usize; 3]) -> Vec<Vec<usize>> {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]].map(Vec::from).to_vec()
}
