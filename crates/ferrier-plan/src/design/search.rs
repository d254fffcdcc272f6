//! The search for the layouts of a recipe.
//!
//! A dynamic program over the passes: it extends partial recipes by one pass, which transforms one axis or, plane by
//! plane, two. The layout of a pass is the one that the array is in, if its axes are whole there, or any grid of ranks
//! in which they are, or the output layout. Of partial recipes that end in the same layout the cheapest is kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::grids::GridLayouts;
use super::price::{CandidatePass, Placed, Prices};
use crate::choice::{Choice, MemoryUse};
use crate::error::{Error, Invalid, Result};
use crate::geometry::width;
use crate::kind::Kind;
use crate::layout::{Box3, Layout, Order};
use crate::modes::{Columns, transformed};
use crate::problem::Problem;
use crate::recipe::Step;
use crate::schedule::AxisTransform;

/// Bytes of the largest plane that is transformed along two axes in one pass, unless the setting has less.
const LARGEST_PLANE: usize = 4 << 20;

pub(super) struct RecipeSearch<'a> {
    pub problem: &'a Problem,
    pub choice: &'a Choice,
    /// Number of ranks that hold data between the first and the last reshape.
    pub inner: usize,
    /// Memory order of the layouts between steps, and of an output that is left to the planner.
    pub order: Order,
    /// Whether layouts between steps may have other memory orders.
    pub any_order: bool,
    pub prices: Prices<'a>,
    pub input: Placed,
    /// `None`: left to the planner.
    pub output: Option<Placed>,
    pub columns: Option<Columns>,
    /// Whether ranks of a grid may be in the order of their nodes and sockets.
    pub groups: bool,
    /// Layouts of rank grids.
    pub layouts: &'a GridLayouts<'a>,
    /// Candidates by the shape of the array, whether it is real, and the axes to transform next: many partial recipes
    /// share them.
    pub grids: Grids,
}

pub(super) type Grids = RefCell<HashMap<([usize; 3], bool, Vec<usize>), Rc<[Candidate]>>>;

/// A layout in which the next axis can be transformed.
#[derive(Clone)]
pub(super) struct Candidate {
    arrive: Placed,
    /// After the next axis, and after the next two if they may share a pass.
    leave: [Option<Placed>; 2],
}

/// A partial recipe.
#[derive(Clone)]
pub(super) struct PartialRecipe {
    pub steps: Vec<Step>,
    /// Pairs of axes that share a pass.
    pub fused: Vec<[usize; 2]>,
    /// The array after the steps.
    pub placed: Placed,
    /// Predicted seconds of the steps.
    pub cost: f64,
}

impl RecipeSearch<'_> {
    /// Orders of the axes to try; the first one transforms the fastest axis in memory first. The halved axis of a
    /// real transform comes before complex ones in all orders.
    pub fn axis_orders(&self) -> Result<Vec<Vec<usize>>> {
        let forced = self.choice.axes.as_deref();
        // A complex axis of one point needs no transform, except the one that forms columns. Where values are real before
        // and no other axis makes them complex, it does.
        let kinds = self.problem.kinds();
        let single = |axis: usize| self.problem.shape[axis] == 1 && kinds[axis] == Kind::Complex;
        let widens = self.problem.real_input && !(0..3).any(|axis| kinds[axis].is_fourier() && !single(axis));
        let idle = |axis: usize| single(axis) && !widens && !(axis == 1 && self.columns.is_some());
        let listed = &self.problem.axes;
        let legal = |axes: &[usize]| self.problem.is_legal_order(axes);
        // The order of the two factors of a long transform is fixed.
        let long = self.problem.long.then_some(&[1, 2][..]);
        if let Some(given) = forced.or(long) {
            // Axes without a transform may be left out, as they are in the order of a recipe.
            let left_out = listed.iter().filter(|axis| idle(**axis) && !given.contains(axis));
            let mut axes: Vec<usize> = given.iter().chain(left_out).copied().collect();
            if let Some(message) = self.why_not(&axes) {
                let message = format!("{message}; got {given:?}");
                return Err(Error::Choice(Invalid::new("axes", message).got(format!("{given:?}"))));
            }
            axes.retain(|&axis| !idle(axis));
            return Ok(vec![axes]);
        }
        let mut fastest_first =
            if self.problem.reproducible { Order::C.axes() } else { self.input.array.layout.order().axes() };
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

    /// What is wrong with this order of all axes, if anything.
    fn why_not(&self, axes: &[usize]) -> Option<String> {
        let listed = &self.problem.axes;
        let sorted = |axes: &[usize]| {
            let mut axes = axes.to_vec();
            axes.sort_unstable();
            axes
        };
        if sorted(axes) != sorted(listed) {
            return Some(format!("the order of the axes must list each of {listed:?} once"));
        }
        if self.problem.is_legal_order(axes) {
            return None;
        }
        Some(if self.columns.is_some() {
            "the columns of a sphere need axes 2, 1, 0 in this order".into()
        } else if self.problem.long {
            "a long transform goes by axes [1, 2]".into()
        } else {
            let halved = self.problem.halved;
            format!("the halved axis {halved} of a real transform comes first, ahead of complex ones")
        })
    }

    /// Recipes that transform `axes` in this order, one for each layout of the last pass: the cheapest first. Those
    /// that cost more than `bound` are left out.
    pub fn recipes(&self, axes: &[usize], transforms: &[AxisTransform], bound: f64) -> Vec<PartialRecipe> {
        let start =
            PartialRecipe { steps: Vec::new(), fused: Vec::new(), placed: self.input.clone(), cost: 0.0 };
        if axes.is_empty() {
            let cost = self.output.as_ref().map_or(0.0, |output| self.prices.reshape(&self.input, output));
            return vec![self.finished(PartialRecipe { cost, ..start })];
        }
        let mut partials: Vec<Vec<PartialRecipe>> = vec![Vec::new(); axes.len() + 1];
        partials[0].push(start);
        for done in 0..axes.len() {
            for partial in std::mem::take(&mut partials[done]) {
                for candidate in self.candidates(&partial, &axes[done..]) {
                    for (count, leave) in candidate.leave.iter().enumerate() {
                        let (Some(leave), last) = (leave, done + count + 1) else { continue };
                        let pass = CandidatePass {
                            transforms: &transforms[done..last],
                            before: &partial.placed,
                            first: done == 0,
                            arrive: &candidate.arrive,
                            leave,
                            output: self.output.as_ref().filter(|_| last == axes.len()),
                        };
                        let cost = partial.cost + self.prices.pass(&pass);
                        if cost > bound {
                            continue;
                        }
                        let layout = &leave.array.layout;
                        let known =
                            partials[last].iter().position(|other| other.placed.array.layout == *layout);
                        if known.is_some_and(|known| partials[last][known].cost <= cost) {
                            continue;
                        }
                        let extended =
                            self.extended(&partial, &candidate.arrive, leave, &axes[done..last], cost);
                        match known {
                            Some(known) => partials[last][known] = extended,
                            None => partials[last].push(extended),
                        }
                    }
                }
            }
        }
        let complete = partials.pop().unwrap_or_default();
        let complete = by_cost(complete, |partial| partial.cost);
        complete.into_iter().map(|partial| self.finished(partial)).collect()
    }

    /// A partial recipe with one more pass, whose cost is `cost` then.
    fn extended(
        &self,
        partial: &PartialRecipe,
        arrive: &Placed,
        leave: &Placed,
        axes: &[usize],
        cost: f64,
    ) -> PartialRecipe {
        let mut extended = partial.clone();
        moved(&mut extended, arrive);
        let kinds = self.problem.kinds();
        extended.steps.extend(axes.iter().map(|&axis| Step::Transform { axis, kind: kinds[axis] }));
        if let [one, two] = *axes {
            extended.fused.push([one, two]);
        }
        (extended.placed, extended.cost) = (leave.clone(), cost);
        extended
    }

    /// A recipe whose array is in the output layout.
    fn finished(&self, mut partial: PartialRecipe) -> PartialRecipe {
        let output = self.output.clone().unwrap_or_else(|| {
            let array = &partial.placed.array;
            Placed::new(array.layout.clone().with_order(self.order), array.real)
        });
        moved(&mut partial, &output);
        partial
    }

    /// Layouts in which the first of `axes` can be transformed next.
    fn candidates(&self, partial: &PartialRecipe, axes: &[usize]) -> Vec<Candidate> {
        let array = &partial.placed.array;
        let mut found = Vec::new();
        if array.layout.is_whole(axes[0]) && self.inner_fits(&array.layout) {
            let placed = match self.reorders() {
                true => {
                    let layout = with_contiguous(&array.layout, axes[0]);
                    Placed::with_busiest(layout, array.real, partial.placed.busiest)
                }
                false => partial.placed.clone(),
            };
            found.push(self.candidate(placed, axes));
            // A reshape that is not needed costs more than it saves if it sends messages.
            if !self.prices.shares() {
                return found;
            }
        }
        let key = (array.layout.shape(), array.real, axes.to_vec());
        let known = self.grids.borrow().get(&key).cloned();
        let grids = known.unwrap_or_else(|| {
            let layout = &array.layout;
            let placed = self.grids_for(layout.shape(), array.real, layout.ranks(), axes[0]);
            let grids: Rc<[Candidate]> =
                placed.into_iter().map(|placed| self.candidate(placed, axes)).collect();
            self.grids.borrow_mut().insert(key, grids.clone());
            grids
        });
        found.extend(grids.iter().filter(|grid| grid.arrive.array != *array).cloned());
        found
    }

    fn candidate(&self, arrive: Placed, axes: &[usize]) -> Candidate {
        let one = self.after(&arrive, axes[0]);
        let two = axes.get(1).filter(|&&axis| self.may_fuse(&arrive, &one, [axes[0], axis]));
        let two = two.map(|&axis| self.after(&one, axis));
        Candidate { arrive, leave: [Some(one), two] }
    }

    fn after(&self, placed: &Placed, axis: usize) -> Placed {
        let (array, modes) = (&placed.array, self.problem.modes(axis));
        let layout = transformed(&array.layout, axis, &modes, self.columns.as_ref());
        let real = array.real && !self.problem.kinds()[axis].is_fourier();
        match layout.has_boxes_of(&array.layout) {
            true => Placed::with_busiest(layout, real, placed.busiest),
            false => Placed::new(layout, real),
        }
    }

    /// Whether the schedule can transform both axes in one pass; `between` is the array after the first.
    fn may_fuse(&self, arrive: &Placed, between: &Placed, [one, two]: [usize; 2]) -> bool {
        let (layout, third) = (&arrive.array.layout, 3 - one - two);
        let listed = &self.problem.axes;
        let element = width(between.array.real) * self.prices.precision.bytes();
        let shape = between.array.layout.shape();
        let plane = shape[one] * shape[two] * element;
        let limit = self.prices.setting.plane_bytes.min(LARGEST_PLANE);
        // Of a group of three transforms two are fused if planes are separate in memory, or if they lie side by side in rows
        // that are too long for planes of their own.
        let order = layout.order();
        let long = order.fastest() == third && shape[one].min(shape[two]) * shape[third] * element > limit;
        let three = layout.is_whole(third) && listed.contains(&third);
        let apart = !three || order.axes()[0] == third || long;
        self.fuses() && !self.reorders() && layout.is_whole(two) && apart && plane <= limit
    }

    /// Whether the search decides which axes share a pass; the schedule decides for spheres.
    pub fn fuses(&self) -> bool {
        self.choice.fuse.is_none() && self.choice.memory == MemoryUse::Fast && self.columns.is_none()
    }

    /// Whether axes are transformed only where their lines are contiguous; columns of a sphere have one memory order.
    fn reorders(&self) -> bool {
        self.choice.reorder == Some(true) && self.columns.is_none()
    }

    /// Grids of ranks in which `axis` is whole, and the output layout if it is.
    fn grids_for(&self, shape: [usize; 3], real: bool, ranks: usize, axis: usize) -> Vec<Placed> {
        let made = self.layouts.of(shape, ranks, axis);
        let mut found: Vec<Placed> = made
            .iter()
            .filter(|grid| !(grid.transposed && self.prices.shares()) && (self.groups || !grid.grouped))
            .map(|grid| Placed::with_busiest(grid.layout.clone(), real, grid.busiest))
            .collect();
        if self.reorders() {
            let contiguous = |placed: &Placed| {
                Placed::with_busiest(with_contiguous(&placed.array.layout, axis), real, placed.busiest)
            };
            return found.iter().map(contiguous).collect();
        }
        if self.any_order && self.choice.reorder.is_none() {
            let reordered = |placed: &Placed| {
                let layout = with_long_runs(&placed.array.layout)?;
                Some(Placed::with_busiest(layout, real, placed.busiest))
            };
            let reordered: Vec<Placed> = found.iter().filter_map(reordered).collect();
            found.extend(reordered);
        }
        // The output layout itself, if this axis is the last one whose length changes.
        let output = self.output.as_ref().map(|output| &output.array.layout);
        if let Some(output) = output.filter(|output| output.is_whole(axis) && self.inner_fits(output)) {
            let before = output.with_axis(axis, shape[axis]);
            if before.shape() == shape {
                found.push(Placed::new(before, real));
            }
        }
        found
    }

    /// Whether only inner ranks hold data; other layouts are for input and output only.
    fn inner_fits(&self, layout: &Layout) -> bool {
        layout.boxes()[self.inner..].iter().all(Box3::is_empty)
    }
}

/// Differences of predicted times that mean nothing.
pub(super) const TIE: f64 = 1.02;

/// The cheapest first; of those that are as cheap, the one that was found first: slabs before pencils.
pub(super) fn by_cost<T>(mut list: Vec<T>, cost: impl Fn(&T) -> f64) -> Vec<T> {
    let least = list.iter().map(&cost).fold(f64::INFINITY, f64::min);
    let best = list.iter().position(|item| cost(item) <= least * TIE).unwrap_or(0);
    list.get_mut(..=best).into_iter().for_each(|first| first.rotate_right(1));
    list.get_mut(1..).into_iter().for_each(|rest| rest.sort_by(|a, b| cost(a).total_cmp(&cost(b))));
    list
}

/// The same boxes in the memory order with the longest runs: split axes are the slowest. `None` if they are.
fn with_long_runs(layout: &Layout) -> Option<Layout> {
    let mut axes = layout.order().axes();
    axes.sort_by_key(|&axis| layout.is_whole(axis));
    let order = Order::new(axes).ok().filter(|order| *order != layout.order())?;
    Some(layout.clone().with_order(order))
}

/// The same boxes in the memory order in which this axis is the fastest.
fn with_contiguous(layout: &Layout, axis: usize) -> Layout {
    let mut axes = layout.order().axes();
    axes.sort_by_key(|&own| own == axis);
    layout.clone().with_order(Order::new(axes).unwrap_or(layout.order()))
}

/// Adds a reshape, unless the array is in that layout.
fn moved(partial: &mut PartialRecipe, to: &Placed) {
    let from = std::mem::replace(&mut partial.placed, to.clone()).array.layout;
    if from != to.array.layout {
        partial.steps.push(Step::Reshape { from, to: to.array.layout.clone() });
    }
}

fn permutations([a, b, c]: [usize; 3]) -> Vec<Vec<usize>> {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]].map(Vec::from).to_vec()
}
