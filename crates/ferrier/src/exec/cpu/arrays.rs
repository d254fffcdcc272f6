//! All axes in one pass, array by array: a thread loads an array into its scratch along the first axis, transforms it
//! there, and stores it along the last axis. Memory is accessed once, whatever the number of axes. During the last transform
//! of an array the source of the next one is prefetched, if it is in memory: prefetches of what a cache holds take longer than
//! they save.

use std::ops::Range;

use super::bases::Bases;
use super::line_op::LineOp;
use super::lines::{BlockLen, LineGrid};
use super::shares::Claims;
use super::side::Side;
use super::tables::KernelTables;
use super::worker::{Extras, PollCounter, WorkerState, run_block, run_planes};
use crate::exec::backend::PassEnds;
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::{Repeat, Strip};
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece, width};
use ferrier_plan::lowering::MemoryPolicy;

/// Points of a block of lines whose source and target are in cache: so many are worth no further call.
const POINTS: usize = 8192;

/// The transforms of an array, in order.
pub(super) struct Arrays<T> {
    stages: Vec<Stage<T>>,
    area: Area,
    /// Arrays of the batch, and the first of them in the whole batch.
    batch: usize,
    first_array: usize,
    /// The source of an array, where it is in memory and fits a core's cache beside the array in scratch and the next one.
    source: Option<Span>,
}

/// The lines of one transform; `repeat`: all planes at once.
struct Stage<T> {
    grid: LineGrid<T>,
    repeat: Option<Repeat>,
    /// Scalars of an element of its source.
    width: usize,
}

impl<T: Real> Arrays<T> {
    /// Some arrays of a batch.
    pub fn new(ends: &PassEnds<'_>, arrays: &Range<usize>, tables: &mut KernelTables<T>) -> Result<Self> {
        let PassEnds { context, pass, arrive, from, to, .. } = ends;
        let (transforms, last) = (&pass.transforms, pass.transforms.len() - 1);
        let mut boxes = vec![*arrive];
        for transform in transforms {
            boxes.push(transform.after(&boxes[boxes.len() - 1]));
        }
        let (order, real) = (pass.leave.layout.order(), transforms[0].real);
        let area = Area::new(&boxes[1..=last], order, real, context.scalar_bytes);
        let MemoryPolicy { stream, bundle_bytes, block: wished, .. } = context.memory_policy;
        // Arrays that are not in cache are streamed; bundles have half a second-level cache.
        let source = Span::new(from, width(transforms[0].real_before)).filter(|span| {
            stream && (area.len + 2 * span.scalars) * context.scalar_bytes <= 2 * bundle_bytes
        });
        // Elsewhere the source is prefetched block by block.
        let in_cache = !stream || source.is_some();
        let piece = |region: Box3| {
            let (rank, strides) = (context.ranks, area.strides);
            vec![Piece { region, rank, base: Base::In, offset: 0, strides, batch: 0 }]
        };
        let mut stages = Vec::with_capacity(transforms.len());
        for (number, transform) in transforms.iter().enumerate() {
            let near = [number > 0, number < last];
            // From scratch to scratch, the ends of rows are lines too: so groups of lines are full.
            let whole_rows = near == [true; 2] && transform.axis != order.fastest();
            let widen = |part: &Box3| match whole_rows && transform.fused_op.is_none() {
                true => part.with_axis(order.fastest(), area.row / width(real)),
                false => *part,
            };
            let domain = widen(&boxes[number]);
            let source = if near[0] { piece(domain) } else { from.clone() };
            let target = if near[1] { piece(widen(&boxes[number + 1])) } else { to.clone() };
            let axes = Axes::choose(transform.axis, &source, &target);
            let [before, after] = Side::of(transform, &source, &target);
            let line_op: LineOp<T> = tables.line_op(transform)?;
            let block = match (in_cache, &line_op) {
                (true, LineOp::Lines(lines)) if wished.is_none() => {
                    let best = lines.block(false).max(lines.block(true));
                    BlockLen::Exactly((POINTS / transform.spec.n.max(1)).next_multiple_of(16).max(best))
                }
                _ => BlockLen::Best(wished, 1),
            };
            let mut grid = LineGrid::across(axes, &domain, before, after, line_op, (arrays, block));
            (grid.near, grid.staging_len, grid.prefetch) = (near, 0, stream);
            let repeat = grid.repeat().filter(|_| in_cache || near == [true; 2]);
            stages.push(Stage { grid, repeat, width: before.width });
        }
        Ok(Arrays { stages, area, batch: arrays.len(), first_array: arrays.start, source })
    }

    /// Sets whether stores stream.
    pub fn set_memory_policy(&mut self, policy: MemoryPolicy) {
        if let Some(last) = self.stages.last_mut() {
            last.grid.stream = policy.stream;
        }
    }

    fn grids(&self) -> impl Iterator<Item = &LineGrid<T>> {
        self.stages.iter().map(|stage| &stage.grid)
    }

    /// Scalars of scratch that a thread needs.
    pub fn scratch(&self) -> usize {
        self.area.len + self.grids().map(LineGrid::scratch).max().unwrap_or(0)
    }

    /// Blocks of lines in all.
    pub fn blocks(&self) -> usize {
        self.grids().map(|grid| grid.blocks).sum()
    }

    /// The most strips of a line.
    pub fn most_strips(&self) -> usize {
        self.grids().map(LineGrid::most_strips).max().unwrap_or(0)
    }

    /// The number of arrays.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Transforms the arrays that the thread claims.
    ///
    /// # Safety
    /// As for [`run_block`], for every array.
    pub unsafe fn run(
        &self,
        mut claims: Claims<'_>,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        (operator, factor): Extras<'_, T>,
    ) {
        // SAFETY: the only slice now; the array is accessed through strips only when it has ended.
        self.area.clear_ends(unsafe { worker.scratch_from(0) });
        // SAFETY: the only slice from now on.
        let scratch = unsafe { worker.scratch_from(self.area.len) };
        let last = self.stages.len() - 1;
        let mut claimed = None;
        while let Some(array) = claimed.take().or_else(|| claims.next(1)).map(|arrays| arrays.start) {
            for (number, Stage { grid, repeat, width }) in self.stages.iter().enumerate() {
                let factor = if number == last { factor } else { 1.0 };
                // The next array is claimed when it is to be prefetched, no earlier: other threads may be idle.
                claimed = if number == last { claims.ahead(1) } else { None };
                if let Some(repeat) = repeat {
                    // SAFETY: the worker has the addresses of this call.
                    let soon = claimed.as_ref().and_then(|next| unsafe { self.soon(next.start, worker) });
                    let blocks = || grid.blocks_in(array, 0..usize::MAX, grid.planes.0..grid.planes.0 + 1);
                    let count = if soon.is_some() { blocks().count() } else { 1 };
                    for (at, part) in blocks().zip(0..) {
                        let soon = soon.map(|span| strip_of(span, (part, count), *width));
                        // SAFETY: this function's contract; arrays of a batch are disjoint.
                        unsafe { run_planes(grid, &at, (*repeat, soon), worker, scratch, factor) };
                    }
                    (0..grid.blocks / self.batch).for_each(|_| polls.step());
                    continue;
                }
                let mut blocks = grid.array_blocks(array).peekable();
                while let Some(at) = blocks.next() {
                    // SAFETY: as above.
                    unsafe {
                        run_block(
                            grid,
                            &at,
                            (blocks.peek().into(), None),
                            worker,
                            scratch,
                            (operator, factor),
                        );
                    }
                    polls.step();
                }
            }
        }
    }

    /// The source of the next array, which is prefetched.
    ///
    /// # Safety
    /// The worker has the addresses of this call.
    unsafe fn soon(&self, next: usize, worker: &WorkerState<T>) -> Option<(*mut T, usize)> {
        let source = self.source?;
        // SAFETY: this function's contract.
        let start = unsafe { source.at(&worker.bases, [self.first_array, next]) };
        Some((start, source.scalars))
    }
}

/// Part `number` of `count` of a run of scalars, as one line of elements of so many scalars.
fn strip_of<T>((start, scalars): (*mut T, usize), (number, count): (usize, usize), width: usize) -> Strip<T> {
    let [from, to] = [number, number + 1].map(|number| scalars / width * number / count);
    Strip { ptr: start.wrapping_add(from * width), len: to - from, step: width as isize, ..Strip::default() }
}

/// An array at an end of the pass, in memory with few gaps.
#[derive(Clone, Copy)]
struct Span {
    base: usize,
    offset: usize,
    batch: usize,
    scalars: usize,
}

impl Span {
    /// `None` where the array is in several pieces, or has gaps.
    fn new(pieces: &[Piece], width: usize) -> Option<Span> {
        let [piece] = pieces else { return None };
        let (shape, used) = (piece.region.shape(), piece.region.volume() * width);
        let apart = |axis: usize| shape[axis].saturating_sub(1) * piece.strides[axis];
        let scalars = width + (0..3).map(apart).sum::<usize>();
        let base = piece.rank * crate::transport::EXPOSED + piece.base as usize;
        (scalars <= used + used / 4).then_some(Span {
            base,
            offset: piece.offset,
            batch: piece.batch,
            scalars,
        })
    }

    /// The address of an array.
    ///
    /// # Safety
    /// As [`Bases::at`].
    unsafe fn at<T>(&self, bases: &Bases<T>, array: [usize; 2]) -> *mut T {
        // SAFETY: this function's contract.
        unsafe { bases.at(self.base, self.offset, array, self.batch) }
    }
}

/// The memory of an array in scratch that holds several boxes in turn. Lines return where they were loaded from,
/// whatever their length.
struct Area {
    strides: [usize; 3],
    len: usize,
    /// Scalars of the elements of a row, and with those up to the next cache line.
    elements: usize,
    row: usize,
    /// Number and distance of rows, of a plane and of planes.
    rows: [(usize, usize); 2],
}

impl Area {
    fn new(boxes: &[Box3], order: Order, real: bool, scalar_bytes: usize) -> Area {
        let mut largest = Box3::new([0; 3], [1; 3]);
        for part in boxes {
            let shape = part.shape();
            (0..3).for_each(|axis| largest.hi[axis] = largest.hi[axis].max(shape[axis]));
        }
        let [slow, mid, fast] = order.axes();
        let line = 64 / scalar_bytes;
        let elements = largest.hi[fast] * width(real);
        let row = elements.next_multiple_of(line);
        let Geometry { strides, volume, .. } = Geometry::in_scratch(largest, order, real, scalar_bytes);
        let rows = [mid, slow].map(|axis| (largest.hi[axis], strides[axis]));
        Area { strides, len: volume.next_multiple_of(line), elements, row, rows }
    }

    /// Makes the ends of rows zero.
    fn clear_ends<T: Real>(&self, scratch: &mut [T]) {
        let [(rows, row), (planes, plane)] = self.rows;
        if self.elements < self.row {
            for start in (0..planes).flat_map(|p| (0..rows).map(move |r| p * plane + r * row)) {
                scratch[start + self.elements..start + self.row].fill(T::zero());
            }
        }
    }
}
