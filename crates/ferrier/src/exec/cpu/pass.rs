//! Passes bound to memory: threads claim blocks of lines and transform them.

use std::sync::Arc;

use super::arrays::Arrays;
use super::copy::Copy;
use super::line_op::LineOp;
use super::lines::{BlockLen, LineGrid};
use super::planes::Planes;
use super::shares::{Claims, Shares};
use super::side::Side;
use super::tables::KernelTables;
use super::worker::{CallAddresses, Extras, PollCounter, WorkerState, prefetch_block, run_block};
use crate::exec::backend::{PassEnds, PollPolicy};
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::{Real, Result};
use ferrier_kernel::fence;
use ferrier_plan::geometry::{Axes, width};
use ferrier_plan::lowering::MemoryPolicy;
use ferrier_plan::modes::IndexRun;

/// The work of a pass.
enum Work<T> {
    /// This rank has no data in this pass.
    Nothing,
    /// Lines along one axis; any thread may take any block.
    Lines(Box<LineGrid<T>>),
    /// Two axes, a few planes at a time.
    Planes(Box<Planes<T>>),
    /// Three axes or more, array by array.
    Arrays(Box<Arrays<T>>),
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
                let block = BlockLen::Best(None, context.memory_policy.threads);
                let grid = LineGrid::new(axes, arrive, from_side, to_side, lines, (arrays, block));
                Work::Lines(Box::new(grid))
            }
            [transform] => {
                let axes = transform.axes().unwrap_or_else(|| Axes::choose(transform.axis, from, to));
                let [from, to] = Side::of(transform, from, to);
                let domain = transform.lines_in(arrive);
                let block = BlockLen::Best(context.memory_policy.block, context.memory_policy.threads);
                let arrays = (arrays, ends.sub_tile.map_or(block, BlockLen::SubTile));
                let line_op = tables.line_op(transform)?;
                Work::Lines(Box::new(LineGrid::across(axes, &domain, from, to, line_op, arrays)))
            }
            [one, two] => {
                let planes = Planes::new(context, (arrive, arrays), [from, to], [one, two], tables)?;
                Work::Planes(Box::new(planes))
            }
            _ => Work::Arrays(Box::new(Arrays::new(ends, tables)?)),
        };
        work.set_memory_policy(context.memory_policy);
        Ok(PassWork { work })
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        match &self.work {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.scratch(),
            Work::Planes(planes) => planes.scratch(),
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
    /// There is a worker for each thread of the pool, the addresses are those of this call with scratch for each thread,
    /// and no other thread or rank writes to what the pass loads or accesses what it stores.
    pub(super) unsafe fn run(
        &self,
        (pool, shares): (&Pool, &mut Shares),
        (workers, addresses): (SendPtr<WorkerState<T>>, &CallAddresses<T>),
        policy: &PollPolicy<'_>,
        extras: Extras<'_, T>,
    ) {
        if matches!(self.work, Work::Nothing) {
            return;
        }
        let shares = shares.begin();
        pool.run(&|thread| {
            // SAFETY: one worker per thread of the pool.
            let worker = unsafe { &mut *workers.get().add(thread) };
            worker.begin_call(thread, addresses);
            // Only the calling thread may use MPI.
            let mut polls =
                PollCounter::new(policy, if thread == 0 { self.blocks() / pool.threads() } else { 0 });
            match &self.work {
                Work::Nothing => {}
                // SAFETY: this function's contract.
                Work::Lines(grid) => unsafe {
                    let run = (grid.blocks / (pool.threads() * 16)).clamp(1, 64);
                    let claims = shares.claims(thread, grid.blocks);
                    run_lines(grid, worker, (claims, run), &mut polls, extras);
                },
                // SAFETY: this function's contract.
                Work::Planes(planes) => unsafe {
                    planes.run(shares.claims(thread, planes.units()), worker, &mut polls, extras);
                },
                // SAFETY: this function's contract.
                Work::Arrays(arrays) => unsafe {
                    arrays.run(shares.claims(thread, arrays.batch()), worker, &mut polls, extras);
                },
            }
            fence();
        });
    }
}

/// Transforms the blocks that the thread claims, `run` neighbours at a time.
///
/// # Safety
/// As for [`PassWork::run`].
unsafe fn run_lines<T: Real>(
    grid: &LineGrid<T>,
    worker: &mut WorkerState<T>,
    (mut claims, run): (Claims<'_>, usize),
    polls: &mut PollCounter<'_>,
    extras: Extras<'_, T>,
) {
    // SAFETY: the only one in this pass.
    let scratch = unsafe { worker.scratch_from(0) };
    let (mut claimed, lead) = (0..0, grid.lead(&worker.bases));
    // The next run is claimed one block early, so that its first block can be prefetched or staged.
    let mut claim = || {
        if claimed.is_empty() {
            claimed = claims.next(run)?;
        }
        claimed.next().map(|block| grid.block(block, lead))
    };
    let mut next = claim();
    if let Some(first) = &next {
        // SAFETY: this function's contract.
        unsafe { prefetch_block(grid, first, worker) };
    }
    while let Some(now) = next {
        next = claim();
        // SAFETY: this function's contract.
        unsafe { run_block(grid, &now, (next.as_ref(), None), worker, scratch, extras) };
        polls.step();
    }
}
