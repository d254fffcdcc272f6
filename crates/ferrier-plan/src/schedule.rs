//! From the steps of a recipe to passes over memory, for one direction.
//!
//! Steps between two exchanges form a *group*; a group becomes one pass per
//! axis, or one for two axes where planes are fused. Here it is decided where
//! every pass loads from and stores to, so that no pass only packs, unpacks
//! or copies unless there is nothing to transform. Pure: every rank derives
//! the same schedule, with the others' memory in it.

use std::sync::Arc;

use crate::geometry::Axes;
use crate::messages::Mechanism;
use crate::modes::{Columns, IndexRun, Ragged, total_len};
use crate::recipe::{Distribution, Recipe, Step, step_name};
use crate::stages::{Stage, stages};
use crate::{Box3, Layout, Tiling};
use ferrier_kernel::LinesSpec;

/// Which way through the steps of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
    /// Forward up to the last transform, which turns into its own inverse
    /// while its lines are in cache, and back.
    RoundTrip,
}

/// An array that a pass loads from or stores to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArraySlot {
    /// The caller's input.
    In,
    /// The caller's output.
    Out,
    /// One of the plan's two work arrays.
    Work(usize),
}

/// One end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// This rank's part of an array.
    Own(ArraySlot, Distribution),
    /// All ranks' parts of an array.
    Peers(ArraySlot, Distribution),
    /// The buffers of a reshape, by its number.
    Message(usize),
}

impl End {
    fn home(&self) -> Option<(ArraySlot, &Distribution)> {
        match self {
            End::Own(home, state) | End::Peers(home, state) => Some((*home, state)),
            End::Message(_) => None,
        }
    }

    fn slot(&self) -> Option<usize> {
        match self.home() {
            Some((ArraySlot::Work(slot), _)) => Some(slot),
            _ => None,
        }
    }
}

/// What must have happened before a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Nothing,
    Barrier,
}

/// A transform of one axis in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisTransform {
    pub axis: usize,
    pub spec: LinesSpec,
    pub name: String,
    /// What arrays hold of its lines before and after; the rest is zero, or dropped.
    pub from: Vec<IndexRun>,
    pub to: Vec<IndexRun>,
    /// The same where it differs from line to line: `from` or `to` is then
    /// the box around all of them.
    pub ragged_from: Option<Arc<Ragged>>,
    pub ragged_to: Option<Arc<Ragged>>,
    /// What merges lines along it into columns, or takes them apart.
    pub columns: Option<Arc<Columns>>,
    /// Is what it leaves real?
    pub real: bool,
    /// What else is done to the lines while they are in cache.
    pub fused_op: Option<FusedOp>,
}

/// Something pointwise that is done to the lines of a leg in cache.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedOp {
    pub op: PointwiseOp,
    pub position: OpPosition,
    /// What there is of the lines meanwhile.
    pub runs: Vec<IndexRun>,
    /// The same where it differs from line to line; the rest is zero.
    pub ragged: Option<Arc<Ragged>>,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointwiseOp {
    /// The operator of the call.
    Called,
    /// The factors between the two halves of a transform of `points` points.
    Twiddles { points: usize, backward: bool },
}

/// Before or after the transform, or between it and another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpPosition {
    Before,
    After,
    Between(LinesSpec),
}

impl AxisTransform {
    /// What becomes of a rank's box.
    pub fn after(&self, part: &Box3) -> Box3 {
        match &self.columns {
            Some(columns) if self.ragged_to.is_some() => columns.merged(part),
            Some(columns) => columns.apart(part, total_len(&self.to)),
            None => part.with_axis(self.axis, total_len(&self.to)),
        }
    }

    /// Does it change what a rank has along this axis?
    pub fn moves(&self, axis: usize) -> bool {
        axis == self.axis || (self.columns.is_some() && axis == 2)
    }

    /// How its lines must be taken, where they lie unevenly.
    pub fn axes(&self) -> Option<Axes> {
        let between = self.fused_op.as_ref().and_then(|fused_op| fused_op.ragged.as_ref());
        let ragged = self.ragged_from.as_ref().or(self.ragged_to.as_ref()).or(between)?;
        Some(Axes { along: self.axis, lanes: ragged.lanes, planes: 3 - self.axis - ragged.lanes })
    }

    /// Of what there is before and after, that in which lines along the axis lie side by side.
    pub fn lines_in(&self, part: &Box3) -> Box3 {
        let apart = self.columns.is_some() && self.ragged_from.is_some();
        if apart { self.after(part) } else { *part }
    }
}

/// One pass over memory: load, transform along up to two axes, store.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    pub before: Before,
    pub from: End,
    pub to: End,
    pub transforms: Vec<AxisTransform>,
    /// What each rank has before and after.
    pub arrive: Distribution,
    pub leave: Distribution,
}

/// A reshape that goes through buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    pub from: Layout,
    pub to: Layout,
    pub real: bool,
    pub name: String,
}

/// The passes of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub passes: Vec<Pass>,
    pub reshapes: Vec<Reshape>,
    pub input: Distribution,
    pub output: Distribution,
}

/// The part of a recipe between two exchanges.
struct Group {
    transforms: Vec<AxisTransform>,
    arrive: Distribution,
    leave: Distribution,
}

/// How a schedule is to be made.
#[derive(Clone, Copy)]
pub struct ScheduleOptions<'a> {
    pub direction: Direction,
    pub in_place: bool,
    /// Is there an operator after the last transform of `forward`, before the first one of
    /// `backward`? (On a round trip there always is.)
    pub with_operator: bool,
    pub mechanism: Mechanism,
    /// May ranks fused_op each other's inputs and outputs? Work arrays they may always.
    pub exposed_ends: bool,
    /// What is asked for the reshapes, where they go by messages.
    pub tilings: &'a [Tiling],
    /// May these two legs share a pass, plane by plane?
    pub fuse: &'a dyn Fn(&[AxisTransform], &Distribution) -> bool,
}

pub fn schedule(recipe: &Recipe, options: ScheduleOptions<'_>) -> Schedule {
    let (groups, reshapes) = groups(recipe, &stages(recipe, options.direction, options.with_operator));
    let input = groups[0].arrive.clone();
    let output = groups[groups.len() - 1].leave.clone();
    let halved = recipe.padded_axis();
    let mut maker =
        Maker { options, halved, passes: Vec::new(), input: input.clone(), output: output.clone() };
    match options.mechanism {
        Mechanism::Messages | Mechanism::NodeAware => maker.with_messages(&groups),
        Mechanism::SharedMemory => maker.with_shared_memory(&groups),
    }
    let mut passes = maker.passes;
    if matches!(options.mechanism, Mechanism::SharedMemory) {
        add_barriers(&mut passes, options.in_place);
    }
    let reshapes = if matches!(options.mechanism, Mechanism::SharedMemory) { Vec::new() } else { reshapes };
    Schedule { passes, reshapes, input, output }
}

fn groups(recipe: &Recipe, stages: &[Stage]) -> (Vec<Group>, Vec<Reshape>) {
    let (mut groups, mut reshapes) = (Vec::new(), Vec::new());
    let first =
        stages.first().map_or_else(|| recipe.distributions().swap_remove(0), |stage| stage.before.clone());
    let mut group = Group { transforms: Vec::new(), arrive: first.clone(), leave: first };
    for Stage { step, before, after, transform } in stages {
        match step {
            Step::Transform { .. } => {
                group.transforms.extend(transform.clone());
                let order = group.leave.layout.order();
                group.leave =
                    Distribution { layout: after.layout.clone().with_order(order), real: after.real };
            }
            Step::Reshape { from, to } if from.boxes() == to.boxes() => {
                group.leave.layout = group.leave.layout.with_order(to.order());
            }
            Step::Reshape { from, to } => {
                let name = step_name(step, before.real);
                reshapes.push(Reshape { from: from.clone(), to: to.clone(), real: before.real, name });
                groups.push(group);
                group = Group { transforms: Vec::new(), arrive: after.clone(), leave: after.clone() };
            }
        }
    }
    groups.push(group);
    (groups, reshapes)
}

struct Maker<'a> {
    options: ScheduleOptions<'a>,
    halved: Option<usize>,
    passes: Vec<Pass>,
    input: Distribution,
    output: Distribution,
}

impl Maker<'_> {
    fn with_messages(&mut self, groups: &[Group]) {
        for (i, group) in groups.iter().enumerate() {
            let from = match i.checked_sub(1) {
                None => End::Own(ArraySlot::In, self.input.clone()),
                Some(reshape) => End::Message(reshape),
            };
            let to = if i + 1 == groups.len() {
                End::Own(ArraySlot::Out, self.output.clone())
            } else {
                End::Message(i)
            };
            self.group(i, group, from, to);
        }
    }

    /// Groups that transform nothing vanish at both ends: the next stage loads
    /// straight from the neighbours' inputs, the last one stores straight to
    /// their outputs. Where those are private to their ranks such a group is a
    /// pass of its own, into or out of a work array.
    fn with_shared_memory(&mut self, groups: &[Group]) {
        let vanishes = |group: &Group| self.options.exposed_ends && group.transforms.is_empty();
        let first = usize::from(groups.len() > 1 && vanishes(&groups[0]));
        let last =
            groups.len() - usize::from(groups.len() > first + 1 && vanishes(&groups[groups.len() - 1]));
        let mut from = match first {
            0 => End::Own(ArraySlot::In, self.input.clone()),
            _ => End::Peers(ArraySlot::In, self.input.clone()),
        };
        for (i, group) in groups.iter().enumerate().take(last).skip(first) {
            let back = groups[..last].get(i + 1).and_then(|next| returning(&from, group, next));
            let to = if let Some(back) = &back {
                back.clone()
            } else if i + 1 < last {
                self.between(&from, &group.leave)
            } else if last < groups.len() {
                End::Peers(ArraySlot::Out, self.output.clone())
            } else {
                End::Own(ArraySlot::Out, self.output.clone())
            };
            let next = to.home().map(|(home, state)| match back {
                Some(_) => End::Own(home, state.clone()),
                None => End::Peers(home, state.clone()),
            });
            self.group(i, group, from, to);
            from = next.expect("shared memory has no wires");
        }
    }

    /// An array that the group after this one will load from: the output
    /// where it has the right form, which saves a pass, else a work array.
    fn between(&self, from: &End, state: &Distribution) -> End {
        let to = End::Own(ArraySlot::Out, state.clone());
        if self.options.exposed_ends && *state == self.output && !self.conflict(from, &to) {
            return to;
        }
        End::Own(ArraySlot::Work(free_slot(&[from.slot()])), state.clone())
    }

    /// The passes of one group.
    fn group(&mut self, number: usize, group: &Group, from: End, to: End) {
        let packs = self.packs(number, group);
        let before = Before::Nothing;
        let (mut from, mut arrive) = (from, group.arrive.clone());
        let mut done = 0;
        for (i, &pack) in packs.iter().enumerate() {
            let transforms = group.transforms[done..done + pack].to_vec();
            done += pack;
            let is_last = i + 1 == packs.len();
            let leave = if is_last { group.leave.clone() } else { after(group, done) };
            let target = if is_last { to.clone() } else { self.middle(&from, &to, &leave) };
            let next = target.clone();
            if is_last && self.conflict(&from, &target) {
                // The caller's array cannot take the lines while it is being read: by way of a work array.
                let slot = free_slot(&[from.slot()]);
                let detour = End::Own(ArraySlot::Work(slot), leave.clone());
                self.push(Pass {
                    before,
                    from,
                    to: detour.clone(),
                    transforms,
                    arrive,
                    leave: leave.clone(),
                });
                let copy = Pass {
                    before,
                    from: detour,
                    to: target,
                    transforms: Vec::new(),
                    arrive: leave.clone(),
                    leave: leave.clone(),
                };
                self.push(copy);
                return;
            }
            self.push(Pass { before, from, to: target, transforms, arrive, leave: leave.clone() });
            (from, arrive) = (next, leave);
        }
    }

    /// A pass that would load every value from where it stores it is none.
    fn push(&mut self, pass: Pass) {
        let idle = pass.transforms.is_empty()
            && match (&pass.from, &pass.to) {
                (End::Own(ArraySlot::In, a), End::Own(ArraySlot::Out, b)) => self.options.in_place && a == b,
                (a, b) => a == b,
            };
        if !idle {
            self.passes.push(pass);
        }
    }

    /// Where the lines wait between two passes of a group: in the array they
    /// go to in the end where that has room for them, else in a work array.
    fn middle(&self, from: &End, to: &End, state: &Distribution) -> End {
        if let End::Own(home, target) = to
            && target == state
        {
            let end = End::Own(*home, state.clone());
            if !self.conflict(from, &end) {
                return end;
            }
        }
        // A work array, and in place the input, may be written back to: less memory, which caches may hold.
        if let End::Own(home, source) = from
            && source == state
            && (matches!(home, ArraySlot::Work(_)) || (self.options.in_place && *home == ArraySlot::In))
        {
            return End::Own(*home, state.clone());
        }
        End::Own(ArraySlot::Work(free_slot(&[from.slot(), to.slot()])), state.clone())
    }

    /// How many legs each pass takes.
    fn packs(&self, number: usize, group: &Group) -> Vec<usize> {
        // What the reshapes before and after the group are cut along is not fused.
        let wish = |reshape: usize| self.options.tilings.get(reshape).or(self.options.tilings.last());
        let reshapes = [number.checked_sub(1), Some(number)];
        let cuts: Vec<usize> = reshapes
            .iter()
            .flatten()
            .filter_map(|&reshape| wish(reshape).filter(|wish| wish.tile > 0)?.cut)
            .collect();
        let transforms = &group.transforms;
        let slowest = group.leave.layout.order().axes()[0];
        let fits = |first: usize| {
            let pair = &transforms[first..first + 2];
            let planes = 3 - pair[0].axis - pair[1].axis;
            // Columns are made of planes of the axes that they are not along.
            let ragged =
                pair.iter().any(|transform| transform.ragged_from.is_some() || transform.ragged_to.is_some());
            // The planes of the pair must lie apart in memory.
            !(ragged && planes != 0)
                && (transforms.len() == 2 || planes == slowest)
                && !pair.iter().any(|transform| cuts.contains(&transform.axis))
                && (self.options.fuse)(pair, &group.leave)
        };
        let mut packs = Vec::new();
        let mut done = 0;
        while done < transforms.len() {
            packs.push(if done + 1 < transforms.len() && fits(done) { 2 } else { 1 });
            done += packs[packs.len() - 1];
        }
        if packs.is_empty() { vec![0] } else { packs }
    }

    /// Would this pass overwrite what it, or another rank, still has to load?
    fn conflict(&self, from: &End, to: &End) -> bool {
        let (Some((source, before)), Some((target, after))) = (from.home(), to.home()) else { return false };
        let same = self.memory(source) == self.memory(target);
        same && !self.lines_return(before, after)
    }

    /// In place, input and output are one array.
    fn memory(&self, home: ArraySlot) -> ArraySlot {
        if self.options.in_place && home == ArraySlot::In { ArraySlot::Out } else { home }
    }

    /// Is each line stored exactly where it was loaded from?
    fn lines_return(&self, before: &Distribution, after: &Distribution) -> bool {
        if before == after {
            return true;
        }
        // A real line in a padded row and its spectrum share that row.
        let Some(halved) = self.halved else { return false };
        let rows =
            |state: &Distribution| state.layout.order().fastest() == halved && state.layout.is_whole(halved);
        before.real != after.real
            && rows(before)
            && rows(after)
            && before.layout.with_axis(halved, 1) == after.layout.with_axis(halved, 1)
    }
}

/// Where a group stores its lines if those go back to the neighbours' work
/// arrays that they came from: where the next group wants them there.
fn returning(from: &End, group: &Group, next: &Group) -> Option<End> {
    let End::Peers(home @ ArraySlot::Work(_), state) = from else { return None };
    let whole = |state: &Distribution| (state.layout.shape(), state.real);
    let same = whole(&group.arrive) == whole(&group.leave) && whole(&group.leave) == whole(state);
    let there = state.layout.boxes() == next.arrive.layout.boxes();
    (same && there && !group.transforms.is_empty()).then(|| End::Peers(*home, state.clone()))
}

/// The array after the first `done` legs of a group.
fn after(group: &Group, done: usize) -> Distribution {
    let mut layout = group.arrive.layout.clone().with_order(group.leave.layout.order());
    let mut real = group.arrive.real;
    for transform in &group.transforms[..done] {
        layout = layout.map(|part| transform.after(part));
        real = transform.real;
    }
    Distribution { layout, real }
}

fn free_slot(taken: &[Option<usize>]) -> usize {
    (0..).find(|slot| !taken.contains(&Some(*slot))).expect("slots do not run out")
}

/// What ranks did to each other's arrays since the last barrier.
#[derive(Default)]
struct Hazards {
    own_reads: Vec<ArraySlot>,
    own_writes: Vec<ArraySlot>,
    peer_reads: Vec<ArraySlot>,
    peer_writes: Vec<ArraySlot>,
}

/// Puts a barrier before every pass that could meet another rank's loads or stores.
fn add_barriers(passes: &mut [Pass], in_place: bool) {
    let name = |home: ArraySlot| if in_place && home == ArraySlot::In { ArraySlot::Out } else { home };
    let mut since = Hazards::default();
    for pass in passes {
        let side = |end: &End| match end {
            End::Own(home, _) => (name(*home), false),
            End::Peers(home, _) => (name(*home), true),
            End::Message(_) => unreachable!("shared memory has no wires"),
        };
        let ((source, reads_peers), (target, writes_peers)) = (side(&pass.from), side(&pass.to));
        let wait = since.peer_writes.contains(&source)
            || (reads_peers && since.own_writes.contains(&source))
            || since.peer_reads.contains(&target)
            || since.peer_writes.contains(&target)
            || (writes_peers && (since.own_reads.contains(&target) || since.own_writes.contains(&target)));
        if wait {
            pass.before = Before::Barrier;
            since = Hazards::default();
        }
        if reads_peers { &mut since.peer_reads } else { &mut since.own_reads }.push(source);
        if writes_peers { &mut since.peer_writes } else { &mut since.own_writes }.push(target);
    }
}
