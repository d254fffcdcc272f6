//! Passes bound to memory: threads claim blocks of lines and transform them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::arrays::Arrays;
use super::copy::Copy;
use super::line_op::LineOp;
use super::lines::{LineGrid, Side};
use super::plane_store::{PlaneStore, PlaneWriter};
use super::tables::KernelTables;
use super::worker::{Extras, PollCounter, WorkerState, run_block};
use crate::exec::backend::{PassEnds, PollPolicy};
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::fence;
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece, width};
use ferrier_plan::lowering::{MemoryPolicy, RankContext};
use ferrier_plan::modes::IndexRun;
use ferrier_plan::schedule::AxisTransform;

/// The work of a pass.
enum Work<T> {
    /// This rank has no data in this pass.
    Nothing,
    /// Lines along one axis; any thread may take any block.
    Lines(Box<LineGrid<T>>),
    /// Two axes: `first` transforms each plane into scratch (or into the target), `second` transforms it
    /// to the target, or in scratch, from which it is copied to the target.
    Planes(Box<Planes<T>>),
    /// Three axes or more, array by array.
    Arrays(Box<Arrays<T>>),
}

/// Two axes, plane by plane.
struct Planes<T> {
    first: LineGrid<T>,
    second: LineGrid<T>,
    /// Scalars of the plane in scratch.
    plane: usize,
    plane_store: Option<PlaneStore>,
}

impl<T: Real> Work<T> {
    /// Sets whether stores stream and whether blocks are staged.
    fn set_memory_policy(&mut self, memory_policy: MemoryPolicy) {
        match self {
            Work::Nothing => {}
            Work::Lines(grid) => {
                grid.stream = memory_policy.stream;
                grid.staging_len = if memory_policy.staging { grid.staging_len } else { 0 };
            }
            // A plane is one run of memory, which hardware prefetches: staging does not pay.
            Work::Planes(planes) => {
                planes.second.stream = memory_policy.stream;
                (planes.first.staging_len, planes.second.staging_len) = (0, 0);
            }
            Work::Arrays(arrays) => arrays.set_memory_policy(memory_policy),
        }
    }
}

/// A pass of one rank.
pub struct PassWork<T> {
    work: Work<T>,
    /// The first block (or plane) that no thread has claimed.
    next: AtomicUsize,
}

impl<T: Real> PassWork<T> {
    /// Binds a pass to this rank's memory.
    pub(super) fn new(ends: &PassEnds<'_>, tables: &mut KernelTables<T>) -> Result<Self> {
        let PassEnds { context, pass, arrive, arrays, from, to, .. } = ends;
        let mut work = match &pass.transforms[..] {
            _ if arrive.is_empty() => Work::Nothing,
            [] => {
                let along = pass.leave.layout.order().fastest();
                let lines = LineOp::Lines(Arc::new(Copy { width: width(pass.leave.real) }));
                let all = IndexRun::whole(arrive.hi[along]);
                let [from_side, to_side] =
                    [from, to].map(|pieces| Side::even(pieces, &all, width(pass.leave.real)));
                let axes = Axes::choose(along, from, to);
                let grid = LineGrid::new(axes, arrive, from_side, to_side, lines, (arrays, None));
                Work::Lines(Box::new(grid))
            }
            [transform] => {
                let axes = transform.axes().unwrap_or_else(|| Axes::choose(transform.axis, from, to));
                let [from, to] = Side::of(transform, from, to);
                let domain = transform.lines_in(arrive);
                let arrays = (arrays, context.memory_policy.block);
                let line_op = tables.line_op(transform)?;
                Work::Lines(Box::new(LineGrid::across(axes, &domain, from, to, line_op, arrays)))
            }
            [one, two] => planes(context, (arrive, arrays), from, to, [one, two], tables)?,
            _ => Work::Arrays(Box::new(Arrays::new(ends, tables)?)),
        };
        work.set_memory_policy(context.memory_policy);
        Ok(PassWork { work, next: AtomicUsize::new(0) })
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.scratch(),
            Work::Planes(planes) => planes.plane + planes.first.scratch().max(planes.second.scratch()),
            Work::Arrays(arrays) => arrays.scratch(),
        }
    }

    /// Blocks of lines in all.
    fn blocks(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.blocks,
            Work::Planes(planes) => planes.first.blocks + planes.second.blocks,
            Work::Arrays(arrays) => arrays.blocks(),
        }
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.most_strips(),
            Work::Planes(planes) => planes.first.most_strips().max(planes.second.most_strips()),
            Work::Arrays(arrays) => arrays.most_strips(),
        }
    }

    /// Runs the pass on all threads of the pool.
    ///
    /// # Safety
    /// Every worker has the pointers of this call and scratch of its own, and
    /// no other thread or rank writes to what the pass loads or accesses what it stores.
    pub(super) unsafe fn run(
        &self,
        pool: &Pool,
        workers: SendPtr<WorkerState<T>>,
        policy: &PollPolicy<'_>,
        extras: Extras<'_, T>,
    ) {
        self.next.store(0, Ordering::Relaxed);
        pool.run(&|thread| {
            // SAFETY: one worker per thread of the pool.
            let worker = unsafe { &mut *workers.get().add(thread) };
            // Only the calling thread may use MPI.
            let mut polls =
                PollCounter::new(policy, if thread == 0 { self.blocks() / pool.threads() } else { 0 });
            match &self.work {
                Work::Nothing => {}
                // SAFETY: this function's contract.
                Work::Lines(grid) => unsafe {
                    self.run_lines(grid, worker, pool.threads(), &mut polls, extras);
                },
                // SAFETY: this function's contract.
                Work::Planes(planes) => unsafe { self.run_planes(planes, worker, &mut polls, extras) },
                // SAFETY: this function's contract.
                Work::Arrays(arrays) => unsafe { arrays.run(&self.next, worker, &mut polls, extras) },
            }
            fence();
        });
    }

    /// Threads claim runs of neighbouring blocks.
    unsafe fn run_lines(
        &self,
        grid: &LineGrid<T>,
        worker: &mut WorkerState<T>,
        threads: usize,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        let run = (grid.blocks / (threads * 16)).clamp(1, 64);
        // SAFETY: the only one in this pass.
        let scratch = unsafe { worker.scratch_from(0) };
        let (mut first, mut last) = (0, 0);
        // The next run is claimed one block early, so that its first block can be prefetched or staged.
        let mut claim = || {
            if first == last {
                first = self.next.fetch_add(run, Ordering::Relaxed).min(grid.blocks);
                last = grid.blocks.min(first + run);
            }
            first += 1;
            (first <= last).then(|| grid.block(first - 1))
        };
        let mut next = claim();
        while let Some(now) = next {
            next = claim();
            // SAFETY: this function's contract.
            unsafe { run_block(grid, &now, (next.as_ref(), None), worker, scratch, extras) };
            polls.step();
        }
    }

    /// Threads claim planes; each goes through both transforms.
    unsafe fn run_planes(
        &self,
        planes: &Planes<T>,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        let Planes { first, second, plane, plane_store } = planes;
        let (low, high) = first.planes;
        let units = (high - low) * first.batch;
        // SAFETY: the only one in this pass; the plane at the start of the scratch is accessed through strips only.
        let scratch = unsafe { worker.scratch_from(*plane) };
        let mut writer = plane_store
            .as_ref()
            .map(|plane_store| PlaneWriter::new(plane_store, worker.scratch.get().cast_const()));
        loop {
            let unit = self.next.fetch_add(1, Ordering::Relaxed);
            if unit >= units {
                break;
            }
            let (batch, index) = (unit / (high - low), low + unit % (high - low));
            let mut blocks = first.plane_blocks(batch, index).peekable();
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
            for at in second.plane_blocks(batch, index) {
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
    }
}

/// Two axes, plane by plane.
fn planes<T: Real>(
    context: &RankContext<'_>,
    (arrive, arrays): (&Box3, &Range<usize>),
    from: &[Piece],
    to: &[Piece],
    transforms: [&AxisTransform; 2],
    tables: &mut KernelTables<T>,
) -> Result<Work<T>> {
    let [one, two] = transforms.map(|transform| transform.axis);
    let across = 3 - one - two;
    let axes =
        [Axes { along: one, lanes: two, planes: across }, Axes { along: two, lanes: one, planes: across }];
    // The array between the transforms, after the first and before the second.
    let between = transforms[0].after(arrive);
    // Streaming stores bypass the caches, so the target cannot hold the array between the transforms.
    let back = matches!((from, to), ([from], [to]) if (from.rank, from.base, from.offset) == (to.rank, to.base, to.offset));
    let in_target = match to {
        _ if transforms[1].ragged_to.is_some() => false,
        [_] if context.memory_policy.stream && !back && !context.in_place => false,
        [target] => {
            transforms[1].spec.kind.width_in() == width(transforms[1].real) && target.region == between
        }
        _ => false,
    };
    let (pieces, plane) = if in_target {
        (to.to_vec(), 0)
    } else {
        let piece = plane_piece(context, &between, axes[0], transforms[0].real);
        let scalars =
            (between.shape()[one].max(1) * piece.strides[one]).max(between.shape()[two] * piece.strides[two]);
        (vec![piece], scalars.next_multiple_of(64 / context.scalar_bytes))
    };
    let [one, two] = transforms;
    let [before, middle] = Side::of(one, from, &pieces);
    let arrays = (arrays, context.memory_policy.block);
    let domain = one.lines_in(arrive);
    let mut first = LineGrid::new(axes[0], &domain, before, middle, tables.line_op(one)?, arrays);
    let plane_store = match (&pieces[..], two.ragged_to.is_some() || in_target) {
        ([scratch], false) => PlaneStore::new(context, axes[0], scratch, to),
        _ => None,
    };
    let [middle, after] = Side::of(two, &pieces, if plane_store.is_some() { &pieces } else { to });
    let mut second = LineGrid::new(axes[1], &between, middle, after, tables.line_op(two)?, arrays);
    first.near[1] = !in_target;
    second.near = [true, in_target || two.ragged_to.is_some() || plane_store.is_some()];
    Ok(Work::Planes(Box::new(Planes { first, second, plane, plane_store })))
}

/// A plane in a thread's scratch. Its rows lie along the later of the two axes in C order and are padded,
/// to spread columns over the cache's sets.
fn plane_piece(context: &RankContext<'_>, between: &Box3, axes: Axes, real: bool) -> Piece {
    let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
    let order = Order::new([axes.planes, slow, fast]).expect("three different axes");
    let mut strides = Geometry::padded(*between, order, real, context.scalar_bytes, false).strides;
    // All planes of all arrays use the same memory.
    strides[axes.planes] = 0;
    Piece { region: *between, rank: context.ranks, base: Base::In, offset: 0, strides, batch: 0 }
}
