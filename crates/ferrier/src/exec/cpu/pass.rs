//! Passes, ready to run: blocks of lines shared out over threads.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::copy::Copy;
use super::line_op::LineOp;
use super::lines::{BlockAt, LineGrid, Side};
use super::plane_store::{PlaneStore, PlaneWriter};
use crate::exec::operator::Operator;
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::{LineBlock, LineKind, StoreHint, StreamCopy, Strip, fence};
use ferrier_plan::geometry::Axes;
use ferrier_plan::geometry::{Base, Geometry, Piece, width};
use ferrier_plan::lowering::{MemoryPolicy, MessageEnd, RankContext, WorkspaceLayout};
use ferrier_plan::modes::IndexRun;
use ferrier_plan::order::PassPart;
use ferrier_plan::schedule::{self, AxisTransform, FusedOp, Pass, Schedule};

/// The name of a pass that transforms nothing.
const COPY: &str = "copy";

/// The work of a pass.
enum Work<T> {
    /// This rank has nothing here.
    Nothing,
    /// Lines along one axis, any block by any thread.
    Lines(Box<LineGrid<T>>),
    /// Two axes: each plane through `first` into scratch (or straight into
    /// the target) and through `second` to its place, or back into scratch and out of there.
    Planes(Box<Planes<T>>),
}

/// Two axes, plane by plane.
struct Planes<T> {
    first: LineGrid<T>,
    second: LineGrid<T>,
    /// Numbers of the plane in scratch.
    plane: usize,
    outlet: Option<PlaneStore>,
}

impl<T> Work<T> {
    /// Says how memory is handled.
    fn handle(&mut self, memory_policy: MemoryPolicy) {
        match self {
            Work::Nothing => {}
            Work::Lines(grid) => {
                grid.stream = memory_policy.stream;
                grid.pocket = if memory_policy.staging { grid.pocket } else { 0 };
            }
            // Planes come in one piece, which processors fetch by themselves.
            Work::Planes(planes) => {
                planes.second.stream = memory_policy.stream;
                (planes.first.pocket, planes.second.pocket) = (0, 0);
            }
        }
    }
}

/// A pass of one rank.
pub(crate) struct BoundPass<T> {
    pub name: String,
    /// Bytes loaded and stored.
    pub bytes: u64,
    /// Floating-point operations by the usual count, 5 n log2 n a line.
    pub flops: f64,
    work: Work<T>,
    next: AtomicUsize,
}

/// One thread's memory: strips and scratch.
pub(crate) struct WorkerState<T> {
    from: Vec<Strip<T>>,
    to: Vec<Strip<T>>,
    ahead: Vec<Strip<T>>,
    bases: Vec<*mut T>,
    scratch: SendPtr<T>,
    scratch_len: usize,
    /// Which pocket the next block was taken along in, if it was.
    pocketed: Option<usize>,
}

// SAFETY: a hand is used by one thread at a time; its pointers are only used
// inside a pass, whose caller vouches for them.
unsafe impl<T: Send> Send for WorkerState<T> {}

impl<T> WorkerState<T> {
    /// Room for `strips` strips and the lent pointers of `ranks` ranks.
    pub fn new(strips: usize, ranks: usize) -> Self {
        WorkerState {
            from: Vec::with_capacity(strips),
            to: Vec::with_capacity(strips),
            ahead: Vec::with_capacity(strips),
            bases: Vec::with_capacity(ranks * crate::transport::EXPOSED + 1),
            scratch: SendPtr(std::ptr::null_mut()),
            scratch_len: 0,
            pocketed: None,
        }
    }

    /// The start of its scratch.
    pub fn scratch(&self) -> *mut T {
        self.scratch.get()
    }

    /// The pointers of this call.
    pub fn set(&mut self, bases: &[*mut T], scratch: *mut T, scratch_len: usize) {
        self.bases.clear();
        self.bases.extend_from_slice(bases);
        // Planes in scratch count from one more base.
        self.bases.push(scratch);
        self.scratch = SendPtr(scratch);
        self.scratch_len = scratch_len;
        self.pocketed = None;
    }
}

/// What a pass does besides: it looks after what flies, `times` times.
pub(crate) struct PollPolicy<'a> {
    pub look: &'a (dyn Fn() + Sync),
    pub times: usize,
}

impl<'a> PollPolicy<'a> {
    /// For a thread that will go through so many blocks.
    fn pace(&self, blocks: usize) -> PollCounter<'a> {
        let every = if self.times == 0 || blocks == 0 { 0 } else { blocks.div_ceil(self.times + 1) };
        PollCounter { look: self.look, every, left: every }
    }
}

struct PollCounter<'a> {
    look: &'a (dyn Fn() + Sync),
    /// Blocks between two looks; 0: never.
    every: usize,
    left: usize,
}

impl PollCounter<'_> {
    fn step(&mut self) {
        if self.every > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.left = self.every;
                (self.look)();
            }
        }
    }
}

/// Makes the lines of a leg, or takes them from those made before.
pub(crate) type MakeLines<'a, T> = &'a mut dyn FnMut(&AxisTransform) -> Result<LineOp<T>>;

impl<T: Real> BoundPass<T> {
    /// Binds a pass of a schedule to this rank's memory.
    pub fn new(
        site: &RankContext<'_>,
        schedule: &Schedule,
        areas: &WorkspaceLayout,
        pass: &Pass,
        part: PassPart,
        make: MakeLines<'_, T>,
    ) -> Result<Self> {
        let arrive = pass.arrive.layout.boxes()[site.rank];
        let leave = pass.leave.layout.boxes()[site.rank];
        let (arrive, leave) =
            (site.part_of(schedule, pass, part, &arrive), site.part_of(schedule, pass, part, &leave));
        let arrays = site.arrays(part.batch_chunk);
        let side = |sending: bool| MessageEnd {
            sending,
            batch_chunk: part.batch_chunk,
            tile: if sending { part.to } else { part.from },
        };
        let from = site.pieces(schedule, areas, &pass.from, (&arrive, &arrays), side(false));
        let to = site.pieces(schedule, areas, &pass.to, (&leave, &arrays), side(true));
        let work = match &pass.transforms[..] {
            _ if arrive.is_empty() => Work::Nothing,
            [] => {
                let along = pass.leave.layout.order().fastest();
                let lines = LineOp::Lines(Arc::new(Copy { width: width(pass.leave.real) }));
                let all = IndexRun::whole(arrive.hi[along]);
                let sides = [&from, &to].map(|pieces| Side::even(pieces, &all, width(pass.leave.real)));
                let axes = Axes::choose(along, &from, &to);
                Work::Lines(Box::new(LineGrid::new(
                    axes,
                    &arrive,
                    sides[0],
                    sides[1],
                    lines,
                    (&arrays, None),
                )))
            }
            [transform] => {
                let axes = transform.axes().unwrap_or_else(|| Axes::choose(transform.axis, &from, &to));
                let [from, to] = sides(transform, &from, &to);
                let domain = transform.lines_in(&arrive);
                let arrays = (&arrays, site.memory_policy.block);
                Work::Lines(Box::new(LineGrid::across(axes, &domain, from, to, make(transform)?, arrays)))
            }
            [one, two] => planes(site, (&arrive, &arrays), &from, &to, [one, two], make)?,
            _ => unreachable!("a pass has at most two transforms"),
        };
        let numbers = |part: &Box3, real: bool| (part.volume() * width(real) * arrays.len()) as u64;
        let bytes = (numbers(&arrive, pass.arrive.real) + numbers(&leave, pass.leave.real))
            * site.scalar_bytes as u64;
        let mut now = arrive;
        let count = |transform| flops(transform, &mut now) * arrays.len() as f64;
        let flops = pass.transforms.iter().map(count).sum();
        let name = match &pass.transforms[..] {
            [] => COPY.to_string(),
            transforms => {
                transforms.iter().map(|transform| transform.name.as_str()).collect::<Vec<_>>().join(" + ")
            }
        };
        let mut work = work;
        work.handle(site.memory_policy);
        Ok(BoundPass { name, bytes, flops, work, next: AtomicUsize::new(0) })
    }

    /// Does it transform nothing?
    pub fn is_copy(&self) -> bool {
        self.name == COPY
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
    /// Every hand has the pointers of this call and scratch of its own, and
    /// nobody else writes to what the pass loads or touches what it stores to.
    pub unsafe fn run(
        &self,
        pool: &Pool,
        hands: SendPtr<WorkerState<T>>,
        care: &PollPolicy<'_>,
        operator: Option<&dyn Operator<T>>,
    ) {
        self.next.store(0, Ordering::Relaxed);
        pool.run(&|thread| {
            // SAFETY: one hand per thread of the pool.
            let hand = unsafe { &mut *hands.get().add(thread) };
            // Only the thread that called may talk to MPI.
            let mut pace = care.pace(if thread == 0 { self.blocks() / pool.threads() } else { 0 });
            match &self.work {
                Work::Nothing => {}
                // SAFETY: the caller's word.
                Work::Lines(grid) => unsafe {
                    self.run_lines(grid, hand, pool.threads(), &mut pace, operator);
                },
                // SAFETY: the caller's word.
                Work::Planes(planes) => unsafe { self.run_planes(planes, hand, &mut pace, operator) },
            }
            fence();
        });
    }

    /// Blocks in runs of neighbours, handed out in turn.
    unsafe fn run_lines(
        &self,
        grid: &LineGrid<T>,
        hand: &mut WorkerState<T>,
        threads: usize,
        pace: &mut PollCounter<'_>,
        operator: Option<&dyn Operator<T>>,
    ) {
        let run = (grid.blocks / (threads * 16)).clamp(1, 64);
        // SAFETY: the hand's scratch is its own.
        let scratch = unsafe { std::slice::from_raw_parts_mut(hand.scratch.get(), hand.scratch_len) };
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
            // SAFETY: the caller's word.
            unsafe { run_block(grid, &now, (next.as_ref(), None), hand, scratch, operator) };
            pace.step();
        }
    }

    /// Planes in turn, each through both legs.
    unsafe fn run_planes(
        &self,
        planes: &Planes<T>,
        hand: &mut WorkerState<T>,
        pace: &mut PollCounter<'_>,
        operator: Option<&dyn Operator<T>>,
    ) {
        let Planes { first, second, plane, outlet } = planes;
        let (low, high) = first.planes;
        let units = (high - low) * first.batch();
        // SAFETY: the hand's scratch is its own; the plane at its start is reached through strips only.
        let scratch = unsafe {
            std::slice::from_raw_parts_mut(hand.scratch.get().add(*plane), hand.scratch_len - plane)
        };
        let mut departure =
            outlet.as_ref().map(|outlet| PlaneWriter::new(outlet, hand.scratch.get().cast_const()));
        loop {
            let unit = self.next.fetch_add(1, Ordering::Relaxed);
            if unit >= units {
                break;
            }
            let (batch, index) = (unit / (high - low), low + unit % (high - low));
            let mut blocks = first.plane_blocks(batch, index).peekable();
            while let Some(at) = blocks.next() {
                let next = blocks.peek();
                let leaving = departure.as_mut().map(|departure| {
                    departure.make_room(at.lane + at.lanes, next.map_or(0, |next| next.lane + next.lanes));
                    &departure.leaving
                });
                // SAFETY: the caller's word; planes are disjoint.
                unsafe { run_block(first, &at, (next, leaving), hand, scratch, operator) };
                pace.step();
            }
            // What was not overwritten row by row has left before it is touched.
            departure.iter_mut().for_each(PlaneWriter::finish);
            for at in second.plane_blocks(batch, index) {
                // SAFETY: as above.
                unsafe { run_block(second, &at, (None, None), hand, scratch, operator) };
                pace.step();
            }
            if let Some(departure) = &mut departure {
                // SAFETY: as above; the plane is at the start of the scratch.
                unsafe { departure.begin(&hand.bases, batch, index) };
            }
        }
        departure.iter_mut().for_each(PlaneWriter::finish);
    }
}

/// # Safety
/// As for [`BoundPass::run`].
unsafe fn run_block<T: Real>(
    grid: &LineGrid<T>,
    at: &BlockAt,
    (next, leaving): (Option<&BlockAt>, Option<&Cell<StreamCopy<T>>>),
    hand: &mut WorkerState<T>,
    scratch: &mut [T],
    operator: Option<&dyn Operator<T>>,
) {
    let (block_area, scratch) = scratch.split_at_mut(grid.rough_scratch());
    let (scratch, pockets) = scratch.split_at_mut(grid.tool_scratch());
    let pockets = [0, grid.pocket].map(|at| pockets[at..].as_mut_ptr());
    let lanes = grid.lanes(at);
    let pocketed = hand.pocketed.take();
    // SAFETY: the bases are those of this call.
    unsafe {
        match (&grid.rough[0], pocketed) {
            (_, Some(number)) => {
                hand.from.clear();
                hand.from.push(grid.tool.loader().staged(pockets[number], lanes));
            }
            (None, None) => grid.strips(at, false, &hand.bases, &mut hand.from),
            (Some(rough), None) => {
                rough.gather(at, &hand.bases, block_area);
                rough.strips(block_area.as_mut_ptr(), lanes, &mut hand.from);
            }
        }
        match &grid.rough[1] {
            None => grid.strips(at, true, &hand.bases, &mut hand.to),
            Some(rough) => rough.strips(block_area.as_mut_ptr(), lanes, &mut hand.to),
        }
    }
    // What is near needs no fetching.
    let [near_from, near_to] = grid.near;
    match next {
        // SAFETY: as above.
        Some(next) if !near_from => unsafe { grid.strips(next, false, &hand.bases, &mut hand.ahead) },
        _ => hand.ahead.clear(),
    }
    let in_place = hand.from.first().map(|strip| strip.ptr) == hand.to.first().map(|strip| strip.ptr);
    let store = match () {
        () if near_to || in_place => StoreHint::Plain,
        () if grid.stream => StoreHint::Stream,
        () => StoreHint::Prefetch,
    };
    let other = pocketed.map_or(0, |number| 1 - number);
    let block = LineBlock {
        ahead: &hand.ahead,
        ahead_lines: next.map_or(0, |next| grid.lanes(next)),
        staging: if grid.pocket > 0 { pockets[other] } else { std::ptr::null_mut() },
        from_staging: pocketed.is_some(),
        store,
        stream_copy: leaving,
        ..LineBlock::new(lanes, &hand.from, &hand.to)
    };
    // SAFETY: strips lie inside arrays that the caller vouches for, scratch was sized for this grid.
    let taken = unsafe { grid.tool.run(&block, || grid.spot(at), operator, scratch) };
    hand.pocketed = taken.then_some(other);
    if let Some(rough) = &grid.rough[1] {
        // SAFETY: as for the strips.
        unsafe { rough.scatter(at, &hand.bases, block_area) };
    }
}

/// The two sides of a leg.
fn sides<'a>(transform: &'a AxisTransform, from: &'a [Piece], to: &'a [Piece]) -> [Side<'a>; 2] {
    let (width_in, width_out) = (transform.spec.kind.width_in(), transform.spec.kind.width_out());
    [
        Side { pieces: from, runs: &transform.from, ragged: transform.ragged_from.as_ref(), width: width_in },
        Side { pieces: to, runs: &transform.to, ragged: transform.ragged_to.as_ref(), width: width_out },
    ]
}

/// Two axes, plane by plane.
fn planes<T: Real>(
    site: &RankContext<'_>,
    (arrive, arrays): (&Box3, &Range<usize>),
    from: &[Piece],
    to: &[Piece],
    transforms: [&AxisTransform; 2],
    make: MakeLines<'_, T>,
) -> Result<Work<T>> {
    let [one, two] = transforms.map(|transform| transform.axis);
    let across = 3 - one - two;
    let axes =
        [Axes { along: one, lanes: two, planes: across }, Axes { along: two, lanes: one, planes: across }];
    // The array between the legs: leg one is done, leg two is not.
    let between = transforms[0].after(arrive);
    // What is written past the caches cannot be the array between the legs.
    let back = matches!((from, to), ([from], [to]) if (from.rank, from.base, from.offset) == (to.rank, to.base, to.offset));
    let in_target = match to {
        _ if transforms[1].ragged_to.is_some() => false,
        [_] if site.memory_policy.stream && !back && !site.in_place => false,
        [target] => {
            transforms[1].spec.kind.width_in() == width(transforms[1].real) && target.region == between
        }
        _ => false,
    };
    let (pieces, plane) = if in_target {
        (to.to_vec(), 0)
    } else {
        let piece = plane_piece(site, &between, axes[0], transforms[0].real);
        let numbers =
            (between.shape()[one].max(1) * piece.strides[one]).max(between.shape()[two] * piece.strides[two]);
        (vec![piece], numbers.next_multiple_of(64 / site.scalar_bytes))
    };
    let [one, two] = transforms;
    let [before, middle] = sides(one, from, &pieces);
    let mut first = LineGrid::new(
        axes[0],
        &one.lines_in(arrive),
        before,
        middle,
        make(one)?,
        (arrays, site.memory_policy.block),
    );
    let outlet = match (&pieces[..], two.ragged_to.is_some() || in_target) {
        ([scratch], false) => PlaneStore::new(site, axes[0], scratch, to),
        _ => None,
    };
    let [middle, after] = sides(two, &pieces, if outlet.is_some() { &pieces } else { to });
    let mut second =
        LineGrid::new(axes[1], &between, middle, after, make(two)?, (arrays, site.memory_policy.block));
    first.near[1] = !in_target;
    second.near = [true, in_target || two.ragged_to.is_some() || outlet.is_some()];
    Ok(Work::Planes(Box::new(Planes { first, second, plane, outlet })))
}

/// A plane in a thread's scratch: rows along the first leg's axis or the
/// other, whichever comes last in C order, spread over the cache's sets.
fn plane_piece(site: &RankContext<'_>, between: &Box3, axes: Axes, real: bool) -> Piece {
    let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
    let order = Order::new([axes.planes, slow, fast]).expect("three different axes");
    let mut strides = Geometry::padded(*between, order, real, site.scalar_bytes, false).strides;
    // Every plane of every array uses the same memory.
    strides[axes.planes] = 0;
    Piece { region: *between, rank: site.ranks, base: Base::In, offset: 0, strides, batch: 0 }
}

/// The operations of a leg on what there is now; then there is what it leaves.
fn flops(transform: &AxisTransform, now: &mut Box3) -> f64 {
    let part = transform.lines_in(now);
    let lines = part.volume() as f64 / part.shape()[transform.axis].max(1) as f64;
    *now = transform.after(now);
    let n = transform.spec.n as f64;
    let half = match transform.spec.kind {
        LineKind::Forward | LineKind::Backward | LineKind::R2r { complex: true, .. } => 1.0,
        LineKind::RealForward | LineKind::RealBackward | LineKind::R2r { .. } => 0.5,
    };
    let returns =
        matches!(transform.fused_op, Some(FusedOp { position: schedule::OpPosition::Between(_), .. }));
    let times = if returns { 2.0 } else { 1.0 };
    times * half * 5.0 * n * n.log2() * lines
}
