//! From the steps of a recipe to passes over memory, for one direction.
//!
//! Steps between two exchanges form a *group*. A group becomes one pass per axis, one pass for two axes if planes
//! are fused, or one pass for all axes if whole arrays are. The builder decides where every pass loads from and stores to, so that no pass only packs, unpacks or
//! copies unless there is nothing to transform.

use super::stages::{Stage, stages};
use super::transform::{AxisTransform, Direction};
use crate::choice::Tiling;
use crate::layout::Layout;
use crate::messages::Mechanism;
use crate::recipe::{Distribution, Recipe, Step, step_name};

/// An array that a pass loads from or stores to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArraySlot {
    /// The input of the call.
    In,
    /// The output of the call.
    Out,
    /// A work array of the plan.
    Work(usize),
}

/// One end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The box of this rank in an array.
    Own(ArraySlot, Distribution),
    /// The boxes of all ranks in an array.
    Peers(ArraySlot, Distribution),
    /// The message buffers of a reshape, by its index in [`Schedule::reshapes`].
    Message(usize),
}

impl End {
    /// The array and its distribution; `None` for messages.
    fn array(&self) -> Option<(ArraySlot, &Distribution)> {
        match self {
            End::Own(slot, array) | End::Peers(slot, array) => Some((*slot, array)),
            End::Message(_) => None,
        }
    }

    fn work_slot(&self) -> Option<usize> {
        match self.array() {
            Some((ArraySlot::Work(slot), _)) => Some(slot),
            _ => None,
        }
    }
}

/// One pass over memory: load, transform along some axes, store. Two axes go plane by plane, more go array by array.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Whether all ranks synchronise before the pass.
    pub barrier: bool,
    /// Where it loads from.
    pub from: End,
    /// Where it stores to.
    pub to: End,
    /// The transforms, in order; none for a copy.
    pub transforms: Vec<AxisTransform>,
    /// The array before the transforms.
    pub arrive: Distribution,
    /// The array after the transforms.
    pub leave: Distribution,
}

/// A reshape that goes through message buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// The layout before.
    pub from: Layout,
    /// The layout after.
    pub to: Layout,
    /// Whether the array is real.
    pub real: bool,
    /// Description, as in `ferrier::StepTime`.
    pub name: String,
}

impl Reshape {
    /// The ranks that a rank sends to (`sending`) or receives from, itself included, ascending.
    pub fn peers(&self, rank: usize, sending: bool) -> Vec<usize> {
        let (own, others) = if sending { (&self.from, &self.to) } else { (&self.to, &self.from) };
        others.intersections(&own.boxes()[rank]).into_iter().map(|(peer, _)| peer).collect()
    }
}

/// The passes of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The passes, in order.
    pub passes: Vec<Pass>,
    /// The reshapes that go through messages, in order; none for [`Mechanism::SharedMemory`].
    pub reshapes: Vec<Reshape>,
    /// The input of the direction.
    pub input: Distribution,
    /// The output of the direction.
    pub output: Distribution,
    /// As in [`ScheduleOptions`].
    pub alike: bool,
}

/// The part of a recipe between two exchanges.
struct Group {
    transforms: Vec<AxisTransform>,
    arrive: Distribution,
    leave: Distribution,
}

/// Options of [`schedule`].
#[derive(Clone, Copy)]
pub struct ScheduleOptions<'a> {
    /// The direction.
    pub direction: Direction,
    /// Whether input and output are one array.
    pub in_place: bool,
    /// Whether lines of an in-place call can be stored where they were loaded from, as far as the strides of input and
    /// output say: on every rank they are [alike](crate::geometry::Geometry::is_alike).
    pub alike: bool,
    /// Whether an operator is applied after the last transform of `forward`, or before the first one of `backward`.
    /// A round trip always has one.
    pub with_operator: bool,
    /// How data moves between ranks.
    pub mechanism: Mechanism,
    /// Whether ranks may access the inputs and outputs of other ranks. They may always access work arrays.
    pub exposed_ends: bool,
    /// The requested tilings of the reshapes, for messages.
    pub tilings: &'a [Tiling],
    /// Whether these transforms may share a pass: two plane by plane, more array by array.
    pub fuse: &'a dyn Fn(&[AxisTransform], &Distribution) -> bool,
    /// Whether the array before this transform, the first one of a pass, is better a work array than the output.
    pub aside: &'a dyn Fn(&AxisTransform, &Distribution) -> bool,
}

/// The passes of a recipe in one direction. Every rank derives the same schedule.
pub fn schedule(recipe: &Recipe, options: ScheduleOptions<'_>) -> Schedule {
    let (groups, reshapes) = groups(recipe, &stages(recipe, options.direction, options.with_operator));
    let input = groups[0].arrive.clone();
    let output = groups[groups.len() - 1].leave.clone();
    let halved = recipe.padded_axis();
    let mut builder =
        PassBuilder { options, halved, passes: Vec::new(), input: input.clone(), output: output.clone() };
    match options.mechanism {
        Mechanism::Messages | Mechanism::NodeAware => builder.with_messages(&groups),
        Mechanism::SharedMemory => builder.with_shared_memory(&groups),
    }
    let mut passes = builder.passes;
    if matches!(options.mechanism, Mechanism::SharedMemory) {
        add_barriers(&mut passes, options.in_place);
    }
    let reshapes = if matches!(options.mechanism, Mechanism::SharedMemory) { Vec::new() } else { reshapes };
    Schedule { passes, reshapes, input, output, alike: options.alike }
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

struct PassBuilder<'a> {
    options: ScheduleOptions<'a>,
    halved: Option<usize>,
    passes: Vec<Pass>,
    input: Distribution,
    output: Distribution,
}

impl PassBuilder<'_> {
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

    /// A group without transforms at either end needs no pass: the next group loads from the inputs of the other
    /// ranks, the last one stores to their outputs. If inputs and outputs are private to their ranks such a group
    /// is a copy into or out of a work array.
    fn with_shared_memory(&mut self, groups: &[Group]) {
        let needs_no_pass = |group: &Group| self.options.exposed_ends && group.transforms.is_empty();
        let first = usize::from(groups.len() > 1 && needs_no_pass(&groups[0]));
        let last =
            groups.len() - usize::from(groups.len() > first + 1 && needs_no_pass(&groups[groups.len() - 1]));
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
            let next = to.array().map(|(slot, array)| match back {
                Some(_) => End::Own(slot, array.clone()),
                None => End::Peers(slot, array.clone()),
            });
            self.group(i, group, from, to);
            from = next.expect("shared memory has no messages");
        }
    }

    /// The array that the next group loads from: the output if it has the same distribution, which saves a pass,
    /// otherwise a work array.
    fn between(&self, from: &End, array: &Distribution) -> End {
        let to = End::Own(ArraySlot::Out, array.clone());
        if self.options.exposed_ends && *array == self.output && !self.conflict(from, &to) {
            return to;
        }
        End::Own(ArraySlot::Work(free_slot(&[from.work_slot()])), array.clone())
    }

    /// The passes of one group.
    fn group(&mut self, index: usize, group: &Group, from: End, to: End) {
        let counts = self.transforms_per_pass(index, group, [&from, &to]);
        let pass = |from, to, transforms, arrive, leave: &Distribution| Pass {
            barrier: false,
            from,
            to,
            transforms,
            arrive,
            leave: leave.clone(),
        };
        let (mut from, mut arrive) = (from, group.arrive.clone());
        let mut done = 0;
        for (i, &count) in counts.iter().enumerate() {
            let transforms = group.transforms[done..done + count].to_vec();
            done += count;
            let is_last = i + 1 == counts.len();
            let leave = if is_last { group.leave.clone() } else { after(group, done) };
            let target = match group.transforms.get(done) {
                Some(next) if !is_last => self.middle(&from, &to, &leave, next),
                _ => to.clone(),
            };
            let next = target.clone();
            if is_last && self.conflict(&from, &target) {
                // The target is still being loaded from: the lines go through a work array.
                let slot = free_slot(&[from.work_slot()]);
                let detour = End::Own(ArraySlot::Work(slot), leave.clone());
                self.push(pass(from, detour.clone(), transforms, arrive, &leave));
                self.push(pass(detour, target, Vec::new(), leave.clone(), &leave));
                return;
            }
            self.push(pass(from, target, transforms, arrive, &leave));
            (from, arrive) = (next, leave);
        }
    }

    /// Adds a pass, unless it would copy an array onto itself.
    fn push(&mut self, pass: Pass) {
        let idle = pass.transforms.is_empty()
            && match (&pass.from, &pass.to) {
                (End::Own(ArraySlot::In, a), End::Own(ArraySlot::Out, b)) => {
                    self.options.in_place && self.options.alike && a == b
                }
                (a, b) => a == b,
            };
        if !idle {
            self.passes.push(pass);
        }
    }

    /// The array between two passes of a group: the target of the last pass if it has the same distribution and is not to be
    /// left aside for the next transform, otherwise a work array.
    fn middle(&self, from: &End, to: &End, array: &Distribution, next: &AxisTransform) -> End {
        if let End::Own(slot, target) = to
            && target == array
            && !(self.options.aside)(next, array)
        {
            let end = End::Own(*slot, array.clone());
            if !self.conflict(from, &end) {
                return end;
            }
        }
        // A work array, and the input of an in-place call, may be overwritten: less memory, which caches may hold.
        if let End::Own(slot, source) = from
            && source == array
            && (matches!(slot, ArraySlot::Work(_)) || (self.options.in_place && *slot == ArraySlot::In))
        {
            return End::Own(*slot, array.clone());
        }
        End::Own(ArraySlot::Work(free_slot(&[from.work_slot(), to.work_slot()])), array.clone())
    }

    /// The number of transforms of each pass of a group.
    fn transforms_per_pass(&self, index: usize, group: &Group, ends: [&End; 2]) -> Vec<usize> {
        // Axes along which the reshapes before and after the group are cut are not fused.
        let tiling = |reshape: usize| self.options.tilings.get(reshape).or(self.options.tilings.last());
        let reshapes = [index.checked_sub(1), Some(index)];
        let cuts: Vec<usize> = reshapes
            .iter()
            .flatten()
            .filter_map(|&reshape| tiling(reshape).filter(|tiling| tiling.tile > 0)?.cut)
            .collect();
        let transforms = &group.transforms;
        let order = group.leave.layout.order();
        let (slowest, fastest) = (order.axes()[0], order.fastest());
        let fits = |first: usize| {
            let pair = &transforms[first..first + 2];
            let planes = 3 - pair[0].axis - pair[1].axis;
            // Columns are formed from planes of axes 1 and 2.
            let ragged =
                pair.iter().any(|transform| transform.ragged_from.is_some() || transform.ragged_to.is_some());
            // The planes of the pair must be separate in memory, or lie side by side, so that they go in bundles.
            !(ragged && planes != 0)
                && (transforms.len() == 2 || planes == slowest || planes == fastest)
                && !pair.iter().any(|transform| cuts.contains(&transform.axis))
                && (self.options.fuse)(pair, &group.leave)
        };
        if transforms.len() > 2
            && !self.conflict(ends[0], ends[1])
            && one_area(transforms)
            && !transforms.iter().any(|transform| cuts.contains(&transform.axis))
            && (self.options.fuse)(transforms, &group.leave)
        {
            return vec![transforms.len()];
        }
        let mut counts = Vec::new();
        let mut done = 0;
        while done < transforms.len() {
            counts.push(if done + 1 < transforms.len() && fits(done) { 2 } else { 1 });
            done += counts[counts.len() - 1];
        }
        if counts.is_empty() { vec![0] } else { counts }
    }

    /// Whether this pass would overwrite elements that it, or another rank, has yet to load.
    fn conflict(&self, from: &End, to: &End) -> bool {
        let (Some((source, before)), Some((target, after))) = (from.array(), to.array()) else {
            return false;
        };
        let same = self.memory(source) == self.memory(target);
        let alike = source == target || self.options.alike;
        same && !(alike && self.lines_return(before, after))
    }

    /// In an in-place call, input and output are one array.
    fn memory(&self, slot: ArraySlot) -> ArraySlot {
        if self.options.in_place && slot == ArraySlot::In { ArraySlot::Out } else { slot }
    }

    /// Whether each line is stored exactly where it was loaded from.
    fn lines_return(&self, before: &Distribution, after: &Distribution) -> bool {
        if before == after {
            return true;
        }
        // A real line and its spectrum share a padded row.
        let Some(halved) = self.halved else { return false };
        let rows =
            |array: &Distribution| array.layout.order().fastest() == halved && array.layout.is_whole(halved);
        before.real != after.real
            && rows(before)
            && rows(after)
            && before.layout.with_axis(halved, 1) == after.layout.with_axis(halved, 1)
    }
}

/// The work arrays of other ranks that a group loaded from, if it can store back to them: the next group must need
/// the lines on those ranks.
fn returning(from: &End, group: &Group, next: &Group) -> Option<End> {
    let End::Peers(slot @ ArraySlot::Work(_), source) = from else { return None };
    let whole = |array: &Distribution| (array.layout.shape(), array.real);
    let same = whole(&group.arrive) == whole(&group.leave) && whole(&group.leave) == whole(source);
    let needed = source.layout.boxes() == next.arrive.layout.boxes();
    (same && needed && !group.transforms.is_empty()).then(|| End::Peers(*slot, source.clone()))
}

/// Whether all arrays between these transforms can use the same memory in turn: each line returns to its place, because
/// elements have one width and lines keep their number.
fn one_area(transforms: &[AxisTransform]) -> bool {
    let plain = |transform: &AxisTransform| {
        let even = transform.ragged_from.is_none() && transform.ragged_to.is_none();
        even && transform.columns.is_none()
    };
    let between = &transforms[..transforms.len() - 1];
    transforms.iter().all(plain) && between.iter().all(|transform| transform.real == transforms[0].real)
}

/// The array after the first `done` transforms of a group.
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

/// Accesses since the last barrier, to own arrays and to those of other ranks.
#[derive(Default)]
struct Hazards {
    own_reads: Vec<ArraySlot>,
    own_writes: Vec<ArraySlot>,
    peer_reads: Vec<ArraySlot>,
    peer_writes: Vec<ArraySlot>,
}

/// Adds a barrier before every pass that conflicts with loads or stores of another rank.
fn add_barriers(passes: &mut [Pass], in_place: bool) {
    let memory = |slot: ArraySlot| if in_place && slot == ArraySlot::In { ArraySlot::Out } else { slot };
    let mut since = Hazards::default();
    for pass in passes {
        let access = |end: &End| match end {
            End::Own(slot, _) => (memory(*slot), false),
            End::Peers(slot, _) => (memory(*slot), true),
            End::Message(_) => unreachable!("shared memory has no messages"),
        };
        let ((source, reads_peers), (target, writes_peers)) = (access(&pass.from), access(&pass.to));
        let wait = since.peer_writes.contains(&source)
            || (reads_peers && since.own_writes.contains(&source))
            || since.peer_reads.contains(&target)
            || since.peer_writes.contains(&target)
            || (writes_peers && (since.own_reads.contains(&target) || since.own_writes.contains(&target)));
        if wait {
            pass.barrier = true;
            since = Hazards::default();
        }
        if reads_peers { &mut since.peer_reads } else { &mut since.own_reads }.push(source);
        if writes_peers { &mut since.peer_writes } else { &mut since.own_writes }.push(target);
    }
}
