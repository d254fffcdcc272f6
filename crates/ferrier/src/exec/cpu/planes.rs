//! Two axes in one pass: planes go through both transforms while they are in cache.
//!
//! Planes across the fastest axis share cache lines, so they go in *bundles*: planes side by side, whose rows are
//! whole cache lines. Blocks of a bundle have their lines side by side along that axis.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::lines::{BlockLen, LineGrid};
use super::plane_store::{PlaneStore, PlaneWriter};
use super::side::Side;
use super::tables::KernelTables;
use super::worker::{Extras, PollCounter, WorkerState, run_block};
use crate::{Box3, Order, Real, Result};
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece};
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
    bundle: Option<Bundle>,
}

/// Planes that lie side by side.
struct Bundle {
    /// How many go together.
    planes: usize,
    /// Scalars from one to the next in scratch.
    step: usize,
}

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
        let (pieces, area) = if in_target {
            (to.to_vec(), 0)
        } else {
            let (piece, area) = scratch_piece(context, &between, across, bundle, transforms[0].real);
            (vec![piece], area)
        };
        let bundle = bundle.map(|planes| Bundle { planes, step: pieces[0].strides[across] });
        let [one, two] = transforms;
        let [before, middle] = Side::of(one, from, &pieces);
        let block = match &bundle {
            None => BlockLen::Best(context.memory_policy.block),
            Some(bundle) => BlockLen::Exactly(bundle.planes),
        };
        let arrays = (arrays, block);
        let domain = one.lines_in(arrive);
        let mut first = LineGrid::new(axes[0], &domain, before, middle, tables.line_op(one)?, arrays);
        let plane_store = match (&pieces[..], two.ragged_to.is_some() || in_target || bundle.is_some()) {
            ([scratch], false) => PlaneStore::new(context, (axes[0], arrays.0.start), scratch, to),
            _ => None,
        };
        let [middle, after] = Side::of(two, &pieces, if plane_store.is_some() { &pieces } else { to });
        let mut second = LineGrid::new(axes[1], &between, middle, after, tables.line_op(two)?, arrays);
        first.near[1] = !in_target;
        second.spreads = bundle.is_some();
        second.near = [true, in_target || two.ragged_to.is_some() || plane_store.is_some()];
        Ok(Planes { first, second, area, plane_store, bundle })
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        self.area + self.first.scratch().max(self.second.scratch())
    }

    /// Units in turn, each through both transforms.
    ///
    /// # Safety
    /// As for `PassWork::run`.
    pub unsafe fn run(
        &self,
        next_unit: &AtomicUsize,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        let Planes { first, second, area, plane_store, bundle } = self;
        let start = worker.scratch.get();
        // SAFETY: the only one in this pass; planes at the start of the scratch are accessed through strips only.
        let scratch = unsafe { worker.scratch_from(*area) };
        let mut writer =
            plane_store.as_ref().map(|plane_store| PlaneWriter::new(plane_store, start.cast_const()));
        let (low, high) = if bundle.is_some() { first.lanes } else { first.planes };
        let together = bundle.as_ref().map_or(1, |bundle| bundle.planes);
        let units = (high - low).div_ceil(together);
        let lead = if bundle.is_some() { 0 } else { second.lead(&worker.bases) };
        loop {
            let unit = next_unit.fetch_add(1, Ordering::Relaxed);
            if unit >= units * first.batch {
                break;
            }
            let (batch, number) = match first.interleaved || second.interleaved {
                true => (unit % first.batch, unit / first.batch),
                false => (unit / units, unit % units),
            };
            let index = low + number * together;
            let planes = index..high.min(index + together);
            if let Some(bundle) = bundle {
                // The first plane of the bundle is at the start of the scratch.
                worker.bases.set_scratch(start.wrapping_sub((index - low) * bundle.step));
            }
            let all = 0..usize::MAX;
            let (lanes, planes) = if bundle.is_some() { (planes, all) } else { (all, planes) };
            let mut blocks = first.blocks_in(batch, lanes.clone(), planes.clone()).peekable();
            while let Some(at) = blocks.next() {
                let next = blocks.peek();
                let stream_copy = writer.as_mut().map(|writer| {
                    writer.make_room(at.lane + at.lanes, next.map_or(0, |next| next.lane + next.lanes));
                    &writer.stream_copy
                });
                // SAFETY: this function's contract; planes are disjoint.
                unsafe { run_block(first, &at, (next, stream_copy), worker, scratch, (extras.0, 1.0)) };
                polls.step();
            }
            // Rows of the previous plane that `first` did not replace are stored before `second` overwrites them.
            writer.iter_mut().for_each(PlaneWriter::finish);
            for at in second.blocks_after(lead, batch, (lanes, planes)) {
                // SAFETY: as above.
                unsafe { run_block(second, &at, (None, None), worker, scratch, extras) };
                polls.step();
            }
            if let Some(writer) = &mut writer {
                // SAFETY: as above; the plane is at the start of the scratch.
                unsafe { writer.begin(&worker.bases, batch, index) };
            }
        }
        writer.iter_mut().for_each(PlaneWriter::finish);
        worker.bases.set_scratch(start);
    }
}

/// The planes of a unit in a thread's scratch, padded to spread over the cache's sets, and their scalars: side by
/// side in a bundle, else rows along the later of the two axes in C order.
fn scratch_piece(
    context: &RankContext<'_>,
    between: &Box3,
    across: usize,
    bundle: Option<usize>,
    real: bool,
) -> (Piece, usize) {
    let (slow, fast) = ((across == 0) as usize, if across == 2 { 1 } else { 2 });
    let mut unit = *between;
    unit.hi[across] = unit.lo[across] + bundle.unwrap_or(1);
    let order = if bundle.is_some() { [slow, fast, across] } else { [across, slow, fast] };
    let order = Order::new(order).expect("three different axes");
    let Geometry { mut strides, volume, .. } =
        Geometry::padded(unit, order, real, context.scalar_bytes, false);
    if bundle.is_none() {
        // Every plane of every array uses the same memory.
        strides[across] = 0;
    }
    let (rank, base) = Base::scratch(context.ranks);
    let piece = Piece { region: *between, rank, base, offset: 0, strides, batch: 0 };
    (piece, volume.next_multiple_of(64 / context.scalar_bytes))
}
