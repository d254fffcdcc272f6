//! Passes, ready to run: blocks of lines shared out over threads.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::block_at::BlockAt;
use super::copy::Copy;
use super::line_op::LineOp;
use super::lines::{LineGrid, Side};
use super::plane_store::{PlaneStore, PlaneWriter};
use super::tables::KernelTables;
use crate::exec::backend::{PassEnds, PollPolicy};
use crate::exec::operator::Operator;
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::{LineBlock, StoreHint, StreamCopy, Strip, fence};
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece, width};
use ferrier_plan::lowering::{MemoryPolicy, RankContext};
use ferrier_plan::modes::IndexRun;
use ferrier_plan::schedule::AxisTransform;

/// The work of a pass.
enum Work<T> {
    /// This rank has nothing here.
    Nothing,
    /// Lines along one axis, any block by any thread.
    Lines(Box<LineGrid<T>>),
    /// Two axes: `first` transforms each plane into scratch (or straight into the target), `second` transforms it
    /// to the target, or back into scratch, from where it is copied to the target.
    Planes(Box<Planes<T>>),
}

/// Two axes, plane by plane.
struct Planes<T> {
    first: LineGrid<T>,
    second: LineGrid<T>,
    /// Numbers of the plane in scratch.
    plane: usize,
    plane_store: Option<PlaneStore>,
}

impl<T> Work<T> {
    /// Says how memory is handled.
    fn handle(&mut self, memory_policy: MemoryPolicy) {
        match self {
            Work::Nothing => {}
            Work::Lines(grid) => {
                grid.stream = memory_policy.stream;
                grid.staging_len = if memory_policy.staging { grid.staging_len } else { 0 };
            }
            // Planes come in one piece, which processors fetch by themselves.
            Work::Planes(planes) => {
                planes.second.stream = memory_policy.stream;
                (planes.first.staging_len, planes.second.staging_len) = (0, 0);
            }
        }
    }
}

/// A pass of one rank.
pub struct PassWork<T> {
    work: Work<T>,
    /// The next block that no thread has taken.
    next: AtomicUsize,
}

/// One thread's memory: strips and scratch.
pub(super) struct WorkerState<T> {
    from: Vec<Strip<T>>,
    to: Vec<Strip<T>>,
    ahead: Vec<Strip<T>>,
    bases: Vec<*mut T>,
    scratch: SendPtr<T>,
    scratch_len: usize,
    /// Which staging_len the next block was taken along in, if it was.
    staged: Option<usize>,
}

// SAFETY: a worker is used by one thread at a time; its pointers are only used
// inside a pass, whose caller vouches for them.
unsafe impl<T: Send> Send for WorkerState<T> {}

impl<T> WorkerState<T> {
    /// Room for `strips` strips and the exposed pointers of `ranks` ranks.
    pub fn new(strips: usize, ranks: usize) -> Self {
        WorkerState {
            from: Vec::with_capacity(strips),
            to: Vec::with_capacity(strips),
            ahead: Vec::with_capacity(strips),
            bases: Vec::with_capacity(ranks * crate::transport::EXPOSED + 1),
            scratch: SendPtr(std::ptr::null_mut()),
            scratch_len: 0,
            staged: None,
        }
    }

    /// The pointers of this call.
    pub fn set(&mut self, bases: &[*mut T], scratch: *mut T, scratch_len: usize) {
        self.bases.clear();
        self.bases.extend_from_slice(bases);
        // Planes in scratch count from one more base.
        self.bases.push(scratch);
        self.scratch = SendPtr(scratch);
        self.scratch_len = scratch_len;
        self.staged = None;
    }
}

/// Spreads the polls of a thread over the blocks that it transforms.
fn poll_counter<'a>(policy: &PollPolicy<'a>, blocks: usize) -> PollCounter<'a> {
    let every = if policy.times == 0 || blocks == 0 { 0 } else { blocks.div_ceil(policy.times + 1) };
    PollCounter { poll: policy.poll, every, left: every }
}

struct PollCounter<'a> {
    poll: &'a (dyn Fn() + Sync),
    /// Blocks between two polls; 0: none.
    every: usize,
    left: usize,
}

impl PollCounter<'_> {
    fn step(&mut self) {
        if self.every > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.left = self.every;
                (self.poll)();
            }
        }
    }
}

/// What a call brings: an operator for passes that have one, and a factor of the result for the last pass.
type Extras<'a, T> = (Option<&'a dyn Operator<T>>, f64);

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
                let [from, to] = sides(transform, from, to);
                let domain = transform.lines_in(arrive);
                let arrays = (arrays, context.memory_policy.block);
                let line_op = tables.line_op(transform)?;
                Work::Lines(Box::new(LineGrid::across(axes, &domain, from, to, line_op, arrays)))
            }
            [one, two] => planes(context, (arrive, arrays), from, to, [one, two], tables)?,
            _ => unreachable!("a pass has at most two transforms"),
        };
        work.handle(context.memory_policy);
        Ok(PassWork { work, next: AtomicUsize::new(0) })
    }

    /// Numbers of scratch a thread needs.
    pub fn scratch(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.scratch(),
            Work::Planes(planes) => planes.plane + planes.first.scratch().max(planes.second.scratch()),
        }
    }

    /// Blocks of lines in all.
    fn blocks(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.blocks,
            Work::Planes(planes) => planes.first.blocks + planes.second.blocks,
        }
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.most_strips(),
            Work::Planes(planes) => planes.first.most_strips().max(planes.second.most_strips()),
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
            // Only the thread that called may talk to MPI.
            let mut polls =
                poll_counter(policy, if thread == 0 { self.blocks() / pool.threads() } else { 0 });
            match &self.work {
                Work::Nothing => {}
                // SAFETY: this function's contract.
                Work::Lines(grid) => unsafe {
                    self.run_lines(grid, worker, pool.threads(), &mut polls, extras);
                },
                // SAFETY: this function's contract.
                Work::Planes(planes) => unsafe { self.run_planes(planes, worker, &mut polls, extras) },
            }
            fence();
        });
    }

    /// Blocks in runs of neighbours, handed out in turn.
    unsafe fn run_lines(
        &self,
        grid: &LineGrid<T>,
        worker: &mut WorkerState<T>,
        threads: usize,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        let run = (grid.blocks / (threads * 16)).clamp(1, 64);
        // SAFETY: the worker's scratch is its own.
        let scratch = unsafe { std::slice::from_raw_parts_mut(worker.scratch.get(), worker.scratch_len) };
        let (mut first, mut last) = (0, 0);
        // The next run is claimed before this one ends: its first block comes in meanwhile.
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

    /// Planes in turn, each through both transforms.
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
        // SAFETY: the worker's scratch is its own; the plane at its start is accessed through strips only.
        let scratch = unsafe {
            std::slice::from_raw_parts_mut(worker.scratch.get().add(*plane), worker.scratch_len - plane)
        };
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
            // What was not overwritten row by row is copied out before it is overwritten.
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

/// # Safety
/// As for [`PassWork::run`].
unsafe fn run_block<T: Real>(
    grid: &LineGrid<T>,
    at: &BlockAt,
    (next, stream_copy): (Option<&BlockAt>, Option<&Cell<StreamCopy<T>>>),
    worker: &mut WorkerState<T>,
    scratch: &mut [T],
    (operator, factor): Extras<'_, T>,
) {
    let (block_area, scratch) = scratch.split_at_mut(grid.sparse_scratch());
    let (scratch, staging) = scratch.split_at_mut(grid.line_op_scratch());
    let staging = [0, grid.staging_len].map(|at| staging[at..].as_mut_ptr());
    let lanes = at.lanes;
    let staged = worker.staged.take();
    // SAFETY: the bases are those of this call.
    unsafe {
        match (&grid.sparse[0], staged) {
            (_, Some(number)) => {
                worker.from.clear();
                worker.from.push(grid.line_op.loader().staged(staging[number], lanes));
            }
            (None, None) => grid.strips(at, false, &worker.bases, &mut worker.from),
            (Some(sparse), None) => {
                sparse.gather(at, &worker.bases, block_area);
                sparse.strips(block_area.as_mut_ptr(), lanes, &mut worker.from);
            }
        }
        match &grid.sparse[1] {
            None => grid.strips(at, true, &worker.bases, &mut worker.to),
            Some(sparse) => sparse.strips(block_area.as_mut_ptr(), lanes, &mut worker.to),
        }
    }
    // What is near needs no fetching.
    let [near_from, near_to] = grid.near;
    match next {
        // SAFETY: as above.
        Some(next) if !near_from => unsafe { grid.strips(next, false, &worker.bases, &mut worker.ahead) },
        _ => worker.ahead.clear(),
    }
    let in_place = worker.from.first().map(|strip| strip.ptr) == worker.to.first().map(|strip| strip.ptr);
    let store = match () {
        () if near_to || in_place => StoreHint::Plain,
        () if grid.stream => StoreHint::Stream,
        () => StoreHint::Prefetch,
    };
    let other = staged.map_or(0, |number| 1 - number);
    let block = LineBlock {
        ahead: &worker.ahead,
        ahead_lines: next.map_or(0, |next| next.lanes),
        staging: if grid.staging_len > 0 { staging[other] } else { std::ptr::null_mut() },
        from_staging: staged.is_some(),
        store,
        stream_copy,
        factor,
        ..LineBlock::new(lanes, &worker.from, &worker.to)
    };
    // SAFETY: strips lie inside arrays that the caller vouches for, scratch was sized for this grid.
    let taken = unsafe { grid.line_op.run(&block, || grid.spot(at), operator, scratch) };
    worker.staged = taken.then_some(other);
    if let Some(sparse) = &grid.sparse[1] {
        // SAFETY: as for the strips.
        unsafe { sparse.scatter(at, &worker.bases, block_area) };
    }
}

/// The two sides of a transform.
fn sides<'a>(transform: &'a AxisTransform, from: &'a [Piece], to: &'a [Piece]) -> [Side<'a>; 2] {
    let (width_in, width_out) = (transform.spec.kind.width_in(), transform.spec.kind.width_out());
    [
        Side { pieces: from, runs: &transform.from, ragged: transform.ragged_from.as_ref(), width: width_in },
        Side { pieces: to, runs: &transform.to, ragged: transform.ragged_to.as_ref(), width: width_out },
    ]
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
    // The array between the transforms: the first is done, the second is not.
    let between = transforms[0].after(arrive);
    // What is written past the caches cannot be the array between the transforms.
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
        let numbers =
            (between.shape()[one].max(1) * piece.strides[one]).max(between.shape()[two] * piece.strides[two]);
        (vec![piece], numbers.next_multiple_of(64 / context.scalar_bytes))
    };
    let [one, two] = transforms;
    let [before, middle] = sides(one, from, &pieces);
    let arrays = (arrays, context.memory_policy.block);
    let domain = one.lines_in(arrive);
    let mut first = LineGrid::new(axes[0], &domain, before, middle, tables.line_op(one)?, arrays);
    let plane_store = match (&pieces[..], two.ragged_to.is_some() || in_target) {
        ([scratch], false) => PlaneStore::new(context, axes[0], scratch, to),
        _ => None,
    };
    let [middle, after] = sides(two, &pieces, if plane_store.is_some() { &pieces } else { to });
    let mut second = LineGrid::new(axes[1], &between, middle, after, tables.line_op(two)?, arrays);
    first.near[1] = !in_target;
    second.near = [true, in_target || two.ragged_to.is_some() || plane_store.is_some()];
    Ok(Work::Planes(Box::new(Planes { first, second, plane, plane_store })))
}

/// A plane in a thread's scratch: rows along the first transform's axis or the
/// other, whichever comes last in C order, spread over the cache's sets.
fn plane_piece(context: &RankContext<'_>, between: &Box3, axes: Axes, real: bool) -> Piece {
    let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
    let order = Order::new([axes.planes, slow, fast]).expect("three different axes");
    let mut strides = Geometry::padded(*between, order, real, context.scalar_bytes, false).strides;
    // Every plane of every array uses the same memory.
    strides[axes.planes] = 0;
    Piece { region: *between, rank: context.ranks, base: Base::In, offset: 0, strides, batch: 0 }
}
