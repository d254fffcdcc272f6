//! What a thread needs to transform blocks of lines: strips, scratch, and when to poll.

use std::cell::Cell;

use super::bases::{Bases, apart};
use super::block_at::BlockAt;
use super::lines::LineGrid;
use crate::Real;
use crate::exec::backend::PollPolicy;
use crate::exec::operator::Operator;
use crate::machine::SendPtr;
use crate::transport::Exposed;
use ferrier_kernel::{LineBlock, Repeat, StoreHint, StreamCopy, Strip};

/// The addresses of a call. Each thread takes its own when it first runs a pass of the call: what it uses is then in the
/// caches of its core.
pub(super) struct CallAddresses<T> {
    exposed: Vec<Exposed>,
    /// The scratch of the first thread; those of the others follow, `scratch_len` scalars apart.
    scratch: SendPtr<T>,
    scratch_len: usize,
    /// The number of the call, from 1.
    call: usize,
}

impl<T> CallAddresses<T> {
    /// Room for the addresses of so many ranks.
    pub fn new(ranks: usize) -> Self {
        let (exposed, scratch) = (Vec::with_capacity(ranks), SendPtr(std::ptr::null_mut()));
        CallAddresses { exposed, scratch, scratch_len: 0, call: 0 }
    }

    /// Begins a call.
    pub fn set(&mut self, exposed: &[Exposed], scratch: *mut T, scratch_len: usize) {
        self.exposed.clear();
        self.exposed.extend_from_slice(exposed);
        (self.scratch, self.scratch_len) = (SendPtr(scratch), scratch_len);
        self.call += 1;
    }
}

/// One thread's memory: strips and scratch.
pub(super) struct WorkerState<T> {
    from: Vec<Strip<T>>,
    to: Vec<Strip<T>>,
    ahead: Vec<Strip<T>>,
    pub bases: Bases<T>,
    pub scratch: SendPtr<T>,
    scratch_len: usize,
    /// The staged lines of the next block, if they were staged.
    staged: Option<Staged<T>>,
    /// The number of the call whose addresses these are.
    call: usize,
    /// Keeps neighbours on other cache lines.
    _apart: [u64; 16],
}

/// Lines of a block in a staging buffer.
#[derive(Clone, Copy)]
struct Staged<T> {
    /// Index of the buffer.
    buffer: usize,
    /// Where they were copied from.
    source: *mut T,
}

// SAFETY: a worker is used by one thread at a time; its pointers are used only inside
// `PassWork::run`, whose contract says that they are valid.
unsafe impl<T: Send> Send for WorkerState<T> {}

impl<T: Real> WorkerState<T> {
    /// Room for `strips` strips and the exposed pointers of `ranks` ranks. `window`: this rank's, or null.
    pub fn new(strips: usize, ranks: usize, window: *mut T) -> Self {
        WorkerState {
            from: apart(strips),
            to: apart(strips),
            ahead: apart(strips),
            bases: Bases::new(ranks, window),
            scratch: SendPtr(std::ptr::null_mut()),
            scratch_len: 0,
            staged: None,
            call: 0,
            _apart: [0; 16],
        }
    }

    /// Takes the addresses of a call, once.
    pub fn begin_call(&mut self, thread: usize, addresses: &CallAddresses<T>) {
        if self.call == addresses.call {
            return;
        }
        self.call = addresses.call;
        self.scratch_len = addresses.scratch_len;
        let scratch = addresses.scratch.get().wrapping_add(thread * self.scratch_len);
        self.bases.set(&addresses.exposed, scratch);
        self.scratch = SendPtr(scratch);
        self.staged = None;
    }

    /// The source of a block, if it is one strip.
    ///
    /// # Safety
    /// The worker has the addresses of this call.
    pub unsafe fn source(&mut self, grid: &LineGrid<T>, at: &BlockAt) -> Option<Strip<T>> {
        // SAFETY: this function's contract.
        unsafe { grid.strips(at, false, &self.bases, &mut self.ahead) };
        if let [strip] = self.ahead[..] { Some(strip) } else { None }
    }

    /// The scratch from scalar `start` on.
    ///
    /// # Safety
    /// One such slice exists at a time; it is used in the call whose pointers were set.
    pub unsafe fn scratch_from<'a>(&self, start: usize) -> &'a mut [T] {
        // SAFETY: the scratch is this worker's alone, and as long as `begin_call` was told.
        unsafe { std::slice::from_raw_parts_mut(self.scratch.get().add(start), self.scratch_len - start) }
    }
}

/// Spreads the polls of a thread over the blocks that it transforms.
pub(super) struct PollCounter<'a> {
    poll: &'a (dyn Fn() + Sync),
    /// Blocks between two polls; 0: none.
    every: usize,
    left: usize,
}

impl<'a> PollCounter<'a> {
    /// For a thread that transforms so many blocks.
    pub fn new(policy: &PollPolicy<'a>, blocks: usize) -> Self {
        let every = if policy.times == 0 || blocks == 0 { 0 } else { blocks.div_ceil(policy.times + 1) };
        PollCounter { poll: policy.poll, every, left: every }
    }

    pub fn step(&mut self) {
        if self.every > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.left = self.every;
                (self.poll)();
            }
        }
    }
}

/// Arguments of a call: an operator for passes that have one, and the factor that the last pass applies.
pub(super) type Extras<'a, T> = (Option<&'a dyn Operator<T>>, f64);

/// What a thread accesses next, which is prefetched while it transforms a block.
pub(super) enum Ahead<'a, T> {
    /// Nothing that is known.
    Nothing,
    /// The next block of the same grid.
    Block(&'a BlockAt),
    /// Memory, as one line of any length.
    Line(Strip<T>),
}

impl<'a, T> From<Option<&'a BlockAt>> for Ahead<'a, T> {
    fn from(next: Option<&'a BlockAt>) -> Self {
        next.map_or(Ahead::Nothing, Ahead::Block)
    }
}

/// Transforms a block of lines.
///
/// # Safety
/// The worker has the pointers of this call and scratch of its own, and no other thread or rank writes to what the
/// block loads or accesses what it stores.
pub(super) unsafe fn run_block<T: Real>(
    grid: &LineGrid<T>,
    at: &BlockAt,
    (next, stream_copy): (Ahead<'_, T>, Option<&Cell<StreamCopy<T>>>),
    worker: &mut WorkerState<T>,
    scratch: &mut [T],
    (operator, factor): Extras<'_, T>,
) {
    let (block_area, scratch) = scratch.split_at_mut(grid.sparse_scratch());
    let (scratch, staging) = scratch.split_at_mut(grid.line_op_scratch());
    let staging = [0, grid.staging_len].map(|at| staging[at..].as_mut_ptr());
    let lines = at.lines();
    let staged = worker.staged.take();
    // SAFETY: the bases are those of this call.
    unsafe {
        match (&grid.sparse[0], staged) {
            (_, Some(Staged { buffer, .. })) => {
                worker.from.clear();
                worker.from.push(grid.line_op.loader().staged(staging[buffer], lines));
            }
            (None, None) => grid.strips(at, false, &worker.bases, &mut worker.from),
            (Some(sparse), None) => {
                sparse.gather(at, &worker.bases, block_area);
                sparse.strips(block_area.as_mut_ptr(), lines, &mut worker.from);
            }
        }
        match &grid.sparse[1] {
            None => grid.strips(at, true, &worker.bases, &mut worker.to),
            Some(sparse) => sparse.strips(block_area.as_mut_ptr(), lines, &mut worker.to),
        }
    }
    // Lines that are in cache are not prefetched.
    let [near_from, near_to] = grid.near;
    worker.ahead.clear();
    let mut ahead_lines = 0;
    match next {
        Ahead::Block(next) if !near_from && (grid.prefetch || grid.staging_len > 0) => {
            ahead_lines = next.lines();
            // SAFETY: as above.
            unsafe { grid.strips(next, false, &worker.bases, &mut worker.ahead) };
        }
        Ahead::Line(line) => {
            ahead_lines = 1;
            worker.ahead.push(line);
        }
        Ahead::Block(_) | Ahead::Nothing => {}
    }
    let source = staged.map(|staged| staged.source).or(worker.from.first().map(|strip| strip.ptr));
    let in_place = source == worker.to.first().map(|strip| strip.ptr);
    let store = match () {
        () if near_to || in_place => StoreHint::Plain,
        () if grid.stream => StoreHint::Stream,
        () if grid.prefetch => StoreHint::Prefetch,
        () => StoreHint::Plain,
    };
    let other = staged.map_or(0, |staged| 1 - staged.buffer);
    let block = LineBlock {
        ahead: &worker.ahead,
        ahead_lines,
        staging: if grid.staging_len > 0 { staging[other] } else { std::ptr::null_mut() },
        from_staging: staged.is_some() || grid.spreads,
        store,
        stream_copy,
        factor,
        ..LineBlock::new(lines, &worker.from, &worker.to)
    };
    // SAFETY: strips lie inside the arrays of this function's contract; scratch was sized for this grid.
    let staged_next = unsafe { grid.line_op.run(&block, || grid.spot(at), operator, scratch) };
    let source = worker.ahead.first().map_or(std::ptr::null_mut(), |strip| strip.ptr);
    worker.staged = staged_next.then_some(Staged { buffer: other, source });
    if let Some(sparse) = &grid.sparse[1] {
        // SAFETY: as for the strips.
        unsafe { sparse.scatter(at, &worker.bases, block_area) };
    }
}

/// Transforms a block in every plane, where all planes repeat it; `soon` is prefetched meanwhile.
///
/// # Safety
/// As for [`run_block`], for every plane; the grid has this [`repeat`](LineGrid::repeat).
pub(super) unsafe fn run_planes<T: Real>(
    grid: &LineGrid<T>,
    at: &BlockAt,
    (repeat, soon): (Repeat, Option<Strip<T>>),
    worker: &mut WorkerState<T>,
    scratch: &mut [T],
    factor: f64,
) {
    // SAFETY: the bases are those of this call.
    unsafe {
        grid.strips(at, false, &worker.bases, &mut worker.from);
        grid.strips(at, true, &worker.bases, &mut worker.to);
    }
    worker.ahead.clear();
    worker.ahead.extend(soon);
    let store = if grid.stream && !grid.near[1] { StoreHint::Stream } else { StoreHint::Plain };
    let (ahead, ahead_lines) = (&worker.ahead[..], worker.ahead.len());
    let block =
        LineBlock { ahead, ahead_lines, store, factor, ..LineBlock::new(at.lanes, &worker.from, &worker.to) };
    // SAFETY: strips lie inside arrays that the caller vouches for, scratch was sized for this grid.
    unsafe { grid.line_op.loader().run_repeated(&block, repeat, scratch) };
}
