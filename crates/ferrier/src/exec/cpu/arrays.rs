//! All axes in one pass, array by array: a thread loads an array into its scratch along the first axis, transforms it
//! there, and stores it along the last axis. Memory is accessed once, whatever the number of axes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::line_op::LineOp;
use super::lines::{BlockLen, LineGrid, Side};
use super::tables::KernelTables;
use super::worker::{Extras, PollCounter, WorkerState, run_block, run_planes};
use crate::exec::backend::PassEnds;
use crate::{Box3, Order, Real, Result};
use ferrier_kernel::Repeat;
use ferrier_plan::geometry::{Axes, Base, Geometry, Piece, width};
use ferrier_plan::lowering::MemoryPolicy;

/// Batches of up to so many bytes stay in a core's cache from call to call, with their inputs and outputs.
const CACHED: usize = 256 << 10;

/// The transforms of an array, in order.
pub(super) struct Arrays<T> {
    stages: Vec<Stage<T>>,
    area: Area,
    /// Arrays of the batch.
    batch: usize,
}

/// The lines of one transform; `repeat`: all planes at once.
struct Stage<T> {
    grid: LineGrid<T>,
    repeat: Option<Repeat>,
}

impl<T: Real> Arrays<T> {
    pub fn new(ends: &PassEnds<'_>, tables: &mut KernelTables<T>) -> Result<Self> {
        let PassEnds { context, pass, arrive, arrays, from, to, .. } = ends;
        let (transforms, last) = (&pass.transforms, pass.transforms.len() - 1);
        let mut boxes = vec![*arrive];
        for transform in transforms {
            boxes.push(transform.after(&boxes[boxes.len() - 1]));
        }
        let (order, real) = (pass.leave.layout.order(), transforms[0].real);
        let area = Area::new(&boxes[1..=last], order, real, context.scalar_bytes);
        // Elsewhere the target of the last transform is prefetched, block by block.
        let cached = area.len * context.scalar_bytes * arrays.len() <= CACHED;
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
            let arrays = (arrays, BlockLen::Best(context.memory_policy.block));
            let line_op: LineOp<T> = tables.line_op(transform)?;
            let mut grid = LineGrid::across(axes, &domain, before, after, line_op, arrays);
            (grid.near, grid.staging_len) = (near, 0);
            let repeat = grid.repeat().filter(|_| near[0] && (near[1] || cached));
            stages.push(Stage { grid, repeat });
        }
        Ok(Arrays { stages, area, batch: arrays.len() })
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

    /// Transforms arrays that no other thread has taken.
    ///
    /// # Safety
    /// As for [`run_block`], for every array.
    pub unsafe fn run(
        &self,
        next: &AtomicUsize,
        worker: &mut WorkerState<T>,
        polls: &mut PollCounter<'_>,
        (operator, factor): Extras<'_, T>,
    ) {
        // SAFETY: the only slice now; the array is accessed through strips only when it has ended.
        self.area.clear_ends(unsafe { worker.scratch_from(0) });
        // SAFETY: the only slice from now on.
        let scratch = unsafe { worker.scratch_from(self.area.len) };
        loop {
            let array = next.fetch_add(1, Ordering::Relaxed);
            if array >= self.batch {
                return;
            }
            for (number, Stage { grid, repeat }) in self.stages.iter().enumerate() {
                let factor = if number + 1 == self.stages.len() { factor } else { 1.0 };
                if let Some(repeat) = repeat {
                    for at in grid.blocks_in(array, 0..usize::MAX, grid.planes.0..grid.planes.0 + 1) {
                        // SAFETY: this function's contract; arrays of a batch are disjoint.
                        unsafe { run_planes(grid, &at, *repeat, worker, scratch, factor) };
                    }
                    (0..grid.blocks / self.batch).for_each(|_| polls.step());
                    continue;
                }
                let mut blocks = grid.array_blocks(array).peekable();
                while let Some(at) = blocks.next() {
                    // SAFETY: as above.
                    unsafe {
                        run_block(grid, &at, (blocks.peek(), None), worker, scratch, (operator, factor));
                    }
                    polls.step();
                }
            }
        }
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
        let (line, page) = (64 / scalar_bytes, 4096 / scalar_bytes);
        let elements = largest.hi[fast] * width(real);
        let row = elements.next_multiple_of(line);
        let Geometry { mut strides, mut volume, .. } =
            Geometry::padded(largest, order, real, scalar_bytes, false);
        // Planes a multiple of a page apart conflict in caches. Rows that are longer avoid it where they are few, and
        // planes follow each other without a gap: blocks continue from plane to plane.
        let longer = [row, row + line].into_iter().find(|row| !(row * largest.hi[mid]).is_multiple_of(page));
        if let Some(pitch) = longer {
            (strides[mid], strides[slow]) = (pitch, pitch * largest.hi[mid]);
            volume = strides[slow] * largest.hi[slow];
        }
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
