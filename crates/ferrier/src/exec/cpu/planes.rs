//! Two axes in one pass: planes go through both transforms while they are in cache.
//!
//! Planes across the fastest axis share cache lines, so they go in *bundles*: planes side by side, whose rows are
//! whole cache lines. Blocks of a bundle have their lines side by side along that axis. Small planes go together, too:
//! one of them is worth no call of a kernel, or its rows do not fill vectors.

use std::ops::Range;

use super::lines::{BlockLen, LineGrid};
use super::plane_store::{PlaneStore, PlaneWriter};
use super::shares::Claims;
use super::side::Side;
use super::tables::KernelTables;
use super::worker::{Ahead, Extras, PollCounter, WorkerState, run_block, run_planes};
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::{Repeat, Strip};
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece, width};
use ferrier_plan::lowering::RankContext;
use ferrier_plan::schedule::{AxisTransform, bundle_of};

/// Two axes: `first` transforms the planes of a unit into scratch (or straight into the target), `second` transforms
/// them to the target, or back into scratch, from where they are copied to the target.
pub(super) struct Planes<T> {
    pub first: LineGrid<T>,
    pub second: LineGrid<T>,
    /// Scalars of a unit's planes in scratch.
    area: usize,
    plane_store: Option<PlaneStore>,
    unit: Unit,
    /// Repeats a block of each transform in every plane of a unit, where rows are lines side by side.
    repeats: [Option<Repeat>; 2],
    /// Scalars of an element of the source of each transform.
    widths: [usize; 2],
}

/// The planes that go together.
#[derive(Clone, Copy)]
struct Unit {
    /// How many.
    planes: usize,
    /// Scalars from one to the next in scratch.
    step: usize,
    /// Whether they lie side by side: a bundle.
    bundle: bool,
}

/// Points of planes that are worth a call of the kernel.
const UNIT_POINTS: usize = 1024;

impl<T: Real> Planes<T> {
    /// Planes of `arrive` (arrays of the batch), through both transforms.
    pub fn new(
        context: &RankContext<'_>,
        (arrive, arrays): (&Box3, &Range<usize>),
        [from, to]: [&[Piece]; 2],
        transforms: [&AxisTransform; 2],
        tables: &mut KernelTables<T>,
    ) -> Result<Self> {
        let [one, two] = transforms.map(|transform| transform.axis);
        let across = 3 - one - two;
        // The array between the transforms, after the first and before the second.
        let between = transforms[0].after(arrive);
        let room = (context.scalar_bytes, context.memory_policy.bundle_bytes);
        let bundle = bundle_of([from, to], &between, transforms, room);
        let axes = match bundle {
            None => [
                Axes { along: one, lanes: two, planes: across },
                Axes { along: two, lanes: one, planes: across },
            ],
            Some(_) => [
                Axes { along: one, lanes: across, planes: two },
                Axes { along: two, lanes: across, planes: one },
            ],
        };
        // Streaming stores bypass the caches, so the target cannot hold the array between the transforms.
        let back = matches!((from, to), ([from], [to]) if (from.rank, from.base, from.offset) == (to.rank, to.base, to.offset));
        let in_target = match to {
            _ if bundle.is_some() || transforms[1].ragged_to.is_some() => false,
            [_] if context.memory_policy.stream && !back && !context.in_place => false,
            [target] => transforms[1].real_before == transforms[1].real && target.region == between,
            _ => false,
        };
        let ragged = transforms.iter().any(|transform| transform.axes().is_some());
        let together = match bundle {
            Some(planes) => planes,
            None if ragged => 1,
            None => {
                let shape = between.shape();
                let of_thread = (shape[across] * arrays.len()).div_ceil(context.memory_policy.threads.max(1));
                let element = width(transforms[0].real) * context.scalar_bytes;
                small_planes(&shape, across, element, of_thread)
            }
        };
        let mut unit = Unit { planes: together, step: 0, bundle: bundle.is_some() };
        let [first_op, second_op] = [tables.line_op(transforms[0])?, tables.line_op(transforms[1])?];
        // The copy slows down lines whose butterflies do not fill vectors by as much as it saves.
        let streams = match two < one {
            true => second_op.streams_rows() || !first_op.streams_lines(),
            false => second_op.streams_lines(),
        };
        let store = |unit: Unit| {
            let (scratch, area) = scratch_piece(context, &between, across, unit, transforms[0].real);
            // Planes of two real points have as many columns before as after a transform, but other elements.
            let changes = transforms[1].real_before != transforms[1].real;
            let whole = transforms[1].ragged_to.is_some() || unit.bundle || changes;
            let plane_store =
                (!whole).then(|| PlaneStore::new(context, (axes[0], arrays.start), &scratch, to, streams));
            (vec![scratch], area, plane_store.flatten())
        };
        let (pieces, area, plane_store) = match in_target {
            true => (to.to_vec(), 0, None),
            false => match store(unit) {
                (_, _, Some(_)) if unit.planes > 1 => {
                    unit.planes = 1;
                    store(unit)
                }
                stored => stored,
            },
        };
        unit.step = if in_target { 0 } else { pieces[0].strides[across] };
        let [one, two] = transforms;
        let [before, middle] = Side::of(one, from, &pieces);
        let block = match unit.bundle {
            false => BlockLen::Best(context.memory_policy.block, 1),
            true => BlockLen::Exactly(unit.planes),
        };
        let arrays = (arrays, block);
        let domain = one.lines_in(arrive);
        let mut first = LineGrid::new(axes[0], &domain, before, middle, first_op, arrays);
        let [middle, after] = Side::of(two, &pieces, if plane_store.is_some() { &pieces } else { to });
        let mut second = LineGrid::new(axes[1], &between, middle, after, second_op, arrays);
        first.near[1] = !in_target;
        second.spreads = unit.bundle;
        second.near = [true, in_target || two.ragged_to.is_some() || plane_store.is_some()];
        // Rows that do not fill a vector go with those of other planes.
        let fill = |grid: &LineGrid<T>, source: &[Piece]| {
            let lanes = grid.lanes.1 - grid.lanes.0;
            unit.planes > 1
                && !unit.bundle
                && lanes * 2 * context.scalar_bytes >= 64
                && matches!(source, [piece] if piece.strides[grid.lane_axis()] == 2)
        };
        let repeats = [
            first.repeat().filter(|_| fill(&first, from)),
            second.repeat().filter(|_| second.near[1] && fill(&second, &pieces)),
        ];
        let widths = transforms.map(|transform| width(transform.real_before));
        Ok(Planes { first, second, area, plane_store, unit, repeats, widths })
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        self.area + self.first.scratch().max(self.second.scratch())
    }

    /// Sets whether the next block and the target are prefetched.
    pub fn set_prefetch(&mut self, prefetch: bool) {
        (self.first.prefetch, self.second.prefetch) = (prefetch, prefetch);
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        self.first.most_strips().max(self.second.most_strips())
    }

    /// First and last plane.
    fn range(&self) -> (usize, usize) {
        if self.unit.bundle { self.first.lanes } else { self.first.planes }
    }

    /// Units of one array.
    fn units_of_array(&self) -> usize {
        let (low, high) = self.range();
        (high - low).div_ceil(self.unit.planes)
    }

    /// Units of all arrays.
    pub fn units(&self) -> usize {
        self.units_of_array() * self.first.batch
    }

    /// The units that the thread claims, each through both transforms.
    ///
    /// # Safety
    /// As for `PassWork::run`.
    pub unsafe fn run(
        &self,
        mut claims: Claims<'_>,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        let Planes { first, second, area, plane_store, .. } = self;
        let Unit { step, bundle, .. } = self.unit;
        let start = worker.scratch.get();
        // SAFETY: the only one in this pass; planes at the start of the scratch are accessed through strips only.
        let scratch = unsafe { worker.scratch_from(*area) };
        let mut writer =
            plane_store.as_ref().map(|plane_store| PlaneWriter::new(plane_store, start.cast_const()));
        let (low, _) = self.range();
        let lead = if bundle { 0 } else { second.lead(&worker.bases) };
        let mut claimed = None;
        while let Some(Range { start: unit, .. }) = claimed.take().or_else(|| claims.next(1)) {
            let (batch, [lanes, planes]) = self.parts(unit);
            let index = if bundle { lanes.start } else { planes.start };
            // The first plane of the unit is at the start of the scratch.
            worker.bases.set_scratch(start.wrapping_sub((index - low) * step));
            let [first_repeats, second_repeats] = self.repeats;
            if let Some(repeat) = first_repeats {
                // SAFETY: this function's contract; planes are disjoint.
                unsafe { repeat_blocks(first, batch, (&planes, repeat), worker, scratch, 1.0) };
            }
            let rest = if first_repeats.is_some() { 0..0 } else { planes.clone() };
            let mut blocks = first.blocks_in(batch, lanes.clone(), rest).peekable();
            while let Some(at) = blocks.next() {
                let next = blocks.peek();
                let stream_copy = writer.as_mut().map(|writer| {
                    writer.make_room(at.lane + at.lanes, next.map_or(0, |next| next.lane + next.lanes));
                    &writer.stream_copy
                });
                // SAFETY: this function's contract; planes are disjoint.
                unsafe {
                    run_block(first, &at, (next.into(), stream_copy), worker, scratch, (extras.0, 1.0))
                };
                polls.step();
            }
            // Rows of the previous plane that `first` did not replace are stored before `second` overwrites them.
            writer.iter_mut().for_each(PlaneWriter::finish);
            if let Some(repeat) = second_repeats {
                // SAFETY: as above.
                unsafe { repeat_blocks(second, batch, (&planes, repeat), worker, scratch, extras.1) };
                continue;
            }
            // Rows are stored behind the second transform if they are its lines, else behind the first one of the next plane.
            let behind = writer.as_ref().is_some_and(|writer| !writer.by_rows());
            let mut blocks = second.blocks_after(lead, batch, (lanes, planes)).peekable();
            while let Some(at) = blocks.next() {
                let mut ahead = Ahead::Nothing;
                if blocks.peek().is_none() {
                    claimed = claims.ahead(1);
                    // SAFETY: the worker has the addresses of this call.
                    let line =
                        claimed.as_ref().and_then(|next| unsafe { self.first_block(next.start, worker) });
                    ahead = line.map_or(Ahead::Nothing, Ahead::Line);
                }
                let writer = writer.as_mut().filter(|_| behind);
                let stream_copy = writer.map(|writer| {
                    if at.lane == second.lanes.0 {
                        // SAFETY: as above; the plane is at the start of the scratch.
                        unsafe { writer.begin(&worker.bases, batch, index) };
                    }
                    writer.make_room(0, at.lane);
                    &writer.stream_copy
                });
                // SAFETY: as above.
                unsafe { run_block(second, &at, (ahead, stream_copy), worker, scratch, extras) };
                polls.step();
            }
            match &mut writer {
                Some(writer) if behind => writer.finish(),
                // SAFETY: as above; the plane is at the start of the scratch.
                Some(writer) => unsafe { writer.begin(&worker.bases, batch, index) },
                None => {}
            }
        }
        writer.iter_mut().for_each(PlaneWriter::finish);
        worker.bases.set_scratch(start);
    }
}

impl<T: Real> Planes<T> {
    /// The array of a unit, its lanes and its planes.
    fn parts(&self, unit: usize) -> (usize, [Range<usize>; 2]) {
        let ((low, high), units) = (self.range(), self.units_of_array());
        let (batch, number) = match self.first.interleaved || self.second.interleaved {
            true => (unit % self.first.batch, unit / self.first.batch),
            false => (unit / units, unit % units),
        };
        let index = low + number * self.unit.planes;
        let (planes, all) = (index..high.min(index + self.unit.planes), 0..usize::MAX);
        (batch, if self.unit.bundle { [planes, all] } else { [all, planes] })
    }

    /// The source of a unit's first block as one line of the second transform, where the block is one run of memory that is
    /// prefetched. Later blocks are prefetched while the block before is transformed.
    ///
    /// # Safety
    /// The worker has the addresses of this call.
    unsafe fn first_block(&self, unit: usize, worker: &mut WorkerState<T>) -> Option<Strip<T>> {
        let grid = &self.first;
        if !grid.prefetch || grid.near[0] || self.repeats[0].is_some() {
            return None;
        }
        let (batch, [lanes, planes]) = self.parts(unit);
        let at = grid.blocks_in(batch, lanes, planes).next()?;
        // SAFETY: this function's contract.
        let strip = unsafe { worker.source(grid, &at) }?;
        let (row, pitch) = (strip.len * self.widths[0], strip.lane as usize);
        let runs =
            strip.step == self.widths[0] as isize && at.rows == 1 && row <= pitch && pitch <= row + row / 4;
        let len = (pitch * (at.lanes - 1) + row) / self.widths[1];
        let step = self.widths[1] as isize;
        runs.then_some(Strip { ptr: strip.ptr, len, step, ..Strip::default() })
    }
}

/// Transforms the blocks of the first plane in every plane of a unit.
///
/// # Safety
/// As for [`run_planes`].
unsafe fn repeat_blocks<T: Real>(
    grid: &LineGrid<T>,
    batch: usize,
    (planes, repeat): (&Range<usize>, Repeat),
    worker: &mut WorkerState<T>,
    scratch: &mut [T],
    factor: f64,
) {
    let repeat = Repeat { count: planes.len(), ..repeat };
    for at in grid.blocks_in(batch, 0..usize::MAX, planes.start..planes.start + 1) {
        // SAFETY: this function's contract.
        unsafe { run_planes(grid, &at, (repeat, None), worker, scratch, factor) };
    }
}

/// Planes that go together because one of them is small, at most those that a thread has; or because rows do not fill cache
/// lines.
fn small_planes(shape: &[usize; 3], across: usize, element: usize, of_thread: usize) -> usize {
    let fastest = if across == 2 { 1 } else { 2 };
    let points = shape.iter().product::<usize>() / shape[across].max(1);
    let fill = 64usize.div_ceil((shape[fastest] * element).max(1));
    (UNIT_POINTS / points.max(1)).min(of_thread).max(fill).clamp(1, shape[across].max(1))
}

/// The planes of a unit in a thread's scratch, and their scalars: side by side in a bundle, else rows along the later of the
/// two axes in C order.
fn scratch_piece(
    context: &RankContext<'_>,
    between: &Box3,
    across: usize,
    Unit { planes, bundle, .. }: Unit,
    real: bool,
) -> (Piece, usize) {
    let (slow, fast) = ((across == 0) as usize, if across == 2 { 1 } else { 2 });
    let mut unit = *between;
    unit.hi[across] = unit.lo[across] + planes;
    let order = if bundle { [slow, fast, across] } else { [across, slow, fast] };
    let order = Order::new(order).expect("three different axes");
    let Geometry { mut strides, volume, .. } = Geometry::in_scratch(unit, order, real, context.scalar_bytes);
    if !bundle && planes == 1 {
        // Every plane of every array uses the same memory.
        strides[across] = 0;
    }
    let (rank, base) = Base::scratch(context.ranks);
    let piece = Piece { region: *between, rank, base, offset: 0, strides, batch: 0 };
    (piece, volume.next_multiple_of(64 / context.scalar_bytes))
}
