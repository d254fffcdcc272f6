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
use super::tail::Tail;
use super::worker::{CallAddresses, Extras, PollCounter, WorkerState, run_block};
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
    /// Scalars of scratch per thread.
    fn scratch(&self) -> usize {
        match self {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.scratch(),
            Work::Planes(planes) => planes.scratch(),
            Work::Arrays(arrays) => arrays.scratch(),
        }
    }

    /// Blocks of lines in all.
    fn blocks(&self) -> usize {
        match self {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.blocks,
            Work::Planes(planes) => planes.first.blocks + planes.second.blocks,
            Work::Arrays(arrays) => arrays.blocks(),
        }
    }

    /// What threads claim.
    fn units(&self) -> usize {
        match self {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.blocks,
            Work::Planes(planes) => planes.units(),
            Work::Arrays(arrays) => arrays.batch(),
        }
    }

    /// The most strips of a line.
    fn most_strips(&self) -> usize {
        match self {
            Work::Nothing => 0,
            Work::Lines(grid) => grid.most_strips(),
            Work::Planes(planes) => planes.most_strips(),
            Work::Arrays(arrays) => arrays.most_strips(),
        }
    }

    /// Does the units that one of so many threads claims.
    ///
    /// # Safety
    /// As for [`PassWork::run`].
    unsafe fn run(
        &self,
        claims: Claims<'_>,
        threads: usize,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        extras: Extras<'_, T>,
    ) {
        // SAFETY: this function's contract.
        unsafe {
            match self {
                Work::Nothing => {}
                Work::Lines(grid) => run_lines(grid, worker, (claims, threads), polls, extras),
                Work::Planes(planes) => planes.run(claims, worker, polls, extras),
                Work::Arrays(arrays) => arrays.run(claims, worker, polls, extras),
            }
        }
    }

    /// Sets whether stores stream and whether blocks are staged.
    fn set_memory_policy(&mut self, memory_policy: MemoryPolicy) {
        match self {
            Work::Nothing => {}
            Work::Lines(grid) => {
                (grid.stream, grid.prefetch) = (memory_policy.stream, memory_policy.prefetch);
                grid.staging_len = if memory_policy.staging { grid.staging_len } else { 0 };
            }
            // A plane is one run of memory, which hardware prefetches: staging does not pay.
            Work::Planes(planes) => {
                planes.second.stream = memory_policy.stream;
                planes.set_prefetch(memory_policy.prefetch);
                (planes.first.staging_len, planes.second.staging_len) = (0, 0);
            }
            Work::Arrays(arrays) => arrays.set_memory_policy(memory_policy),
        }
    }
}

/// A pass of one rank.
pub struct PassWork<T> {
    work: Work<T>,
    /// The last arrays of a batch, if they do not go as a whole.
    tail: Option<Box<Tail<T>>>,
    help: Option<Help<T>>,
}

/// How ranks that share memory help each other with a pass.
struct Help<T> {
    /// Counts the units of this rank that are claimed.
    counter: usize,
    /// The same pass of other ranks, with their counters.
    peers: Vec<(usize, Work<T>)>,
}

impl<T: Real> PassWork<T> {
    /// Binds a pass to this rank's memory.
    pub(super) fn new(ends: &PassEnds<'_>, tables: &mut KernelTables<T>) -> Result<Self> {
        let PassEnds { context, pass, arrive, arrays, from, to, .. } = ends;
        let mut tail = None;
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
            _ => {
                let whole;
                (whole, tail) = Tail::new(ends, tables)?;
                Work::Arrays(Box::new(Arrays::new(ends, &whole, tables)?))
            }
        };
        work.set_memory_policy(context.memory_policy);
        Ok(PassWork { work, tail: tail.map(Box::new), help: None })
    }

    /// Ranks help each other with this pass: `peers` are the passes of those that this rank helps when its own is done.
    /// `counter`: counts the claims of this rank's units.
    pub(super) fn set_help(&mut self, counter: usize, peers: Vec<(usize, PassWork<T>)>) {
        let peers = peers.into_iter().map(|(counter, peer)| (counter, peer.work)).collect();
        self.help = Some(Help { counter, peers });
    }

    /// The counter of this rank's units.
    pub(super) fn counter(&self) -> Option<usize> {
        self.help.as_ref().map(|help| help.counter)
    }

    /// This rank's work and that of the ranks that it helps.
    fn all(&self) -> impl Iterator<Item = &Work<T>> {
        let peers = self.help.iter().flat_map(|help| help.peers.iter().map(|(_, work)| work));
        std::iter::once(&self.work).chain(peers)
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        let tail = self.tail.as_ref().map(|tail| tail.scratch());
        self.all().map(Work::scratch).chain(tail).max().unwrap_or(0)
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        let tail = self.tail.as_ref().map(|tail| tail.most_strips());
        self.all().map(Work::most_strips).chain(tail).max().unwrap_or(0)
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
        if matches!(self.work, Work::Nothing) && self.help.is_none() {
            return;
        }
        let begun = shares.begin();
        pool.run(&|thread| {
            let shares = begun;
            // SAFETY: one worker per thread of the pool.
            let worker = unsafe { &mut *workers.get().add(thread) };
            worker.begin_call(thread, addresses);
            shares.enter(thread);
            // Only the calling thread may use MPI.
            let mut polls =
                PollCounter::new(policy, if thread == 0 { self.work.blocks() / pool.threads() } else { 0 });
            let counted =
                self.help.as_ref().and_then(|help| shares.claims_of(help.counter, self.work.units(), false));
            let helps = counted.is_some();
            let claims = counted.unwrap_or_else(|| shares.claims(thread, self.work.units()));
            // SAFETY: this function's contract.
            unsafe { self.work.run(claims, pool.threads(), worker, &mut polls, extras) };
            for (counter, work) in self.help.iter().filter(|_| helps).flat_map(|help| &help.peers) {
                if let Some(claims) = shares.claims_of(*counter, work.units(), true) {
                    // SAFETY: this function's contract, which the rank whose pass this is has, too: ranks come to the
                    // pass after a barrier and leave it to one.
                    unsafe { work.run(claims, pool.threads(), worker, &mut polls, extras) };
                }
            }
            if let Some(Tail { planes, .. }) = self.tail.as_deref() {
                let claims = shares.claims_after(thread, planes.units());
                // SAFETY: this function's contract.
                unsafe { planes.run(claims, worker, &mut polls, (extras.0, 1.0)) };
            }
            fence();
        });
        let Some(Tail { lines, .. }) = self.tail.as_deref() else { return };
        let begun = shares.begin();
        pool.run(&|thread| {
            // SAFETY: one worker per thread of the pool.
            let worker = unsafe { &mut *workers.get().add(thread) };
            begun.enter(thread);
            let mut polls =
                PollCounter::new(policy, if thread == 0 { lines.blocks / pool.threads() } else { 0 });
            let claims = (begun.claims(thread, lines.blocks), pool.threads());
            // SAFETY: this function's contract; all planes are stored.
            unsafe { run_lines(lines, worker, claims, &mut polls, extras) };
        });
    }
}

/// Transforms the blocks that one of so many threads claims, some neighbours at a time.
///
/// # Safety
/// As for [`PassWork::run`].
unsafe fn run_lines<T: Real>(
    grid: &LineGrid<T>,
    worker: &mut WorkerState<T>,
    (mut claims, threads): (Claims<'_>, usize),
    polls: &mut PollCounter<'_>,
    extras: Extras<'_, T>,
) {
    let run = (grid.blocks / (threads * 16)).clamp(1, 64);
    // SAFETY: the only one in this pass.
    let scratch = unsafe { worker.scratch_from(0) };
    let (mut claimed, lead) = (0..0, grid.lead(&worker.bases));
    // The next run of its own units is claimed one block early, so that its first block can be prefetched or staged.
    let mut claim = |busy: bool| {
        if claimed.is_empty() {
            claimed = if busy { claims.ahead(run)? } else { claims.next(run)? };
        }
        claimed.next().map(|block| grid.block(block, lead))
    };
    let mut next = claim(false);
    while let Some(now) = next {
        next = claim(true);
        // SAFETY: this function's contract.
        unsafe { run_block(grid, &now, (next.as_ref().into(), None), worker, scratch, extras) };
        polls.step();
        next = next.or_else(|| claim(false));
    }
}
