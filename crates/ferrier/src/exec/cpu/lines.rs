//! The lines of a pass: the domain is cut into cells in which every line has the same strips, and cells into
//! blocks of lines that a kernel transforms together.

use std::ops::Range;

use super::bases::Bases;
use super::block_at::BlockAt;
use super::line_op::{LineOp, Spot};
use super::side::{Flat, Side};
use super::sparse_lines::SparseLines;
use crate::exec::cuts::cuts;
use crate::{Box3, Real};
use ferrier_kernel::{Repeat, Strip};
use ferrier_plan::geometry::Axes;
use ferrier_plan::modes::total_len;
use ferrier_plan::threads::shared_block;

/// A strip of a cell's first line: its address, and the strides of lines, planes and arrays of the batch.
#[derive(Clone, Copy, Debug)]
struct StripAt {
    base: usize,
    offset: usize,
    at: usize,
    len: usize,
    step: usize,
    lane: usize,
    plane: usize,
    batch: usize,
}

/// Lines side by side (`lanes`) in neighbouring planes, all with the same strips.
#[derive(Clone, Debug)]
struct Cell {
    lanes: (usize, usize),
    planes: (usize, usize),
    from: (usize, usize),
    to: (usize, usize),
    /// Blocks in a plane, or planes in a block.
    shape: BlockShape,
    /// Blocks of all cells before this one, all planes and arrays counted.
    first: usize,
}

/// Points of a block that are worth a call of the kernel.
const BLOCK_POINTS: usize = 512;

/// Complex elements of a cache line.
const fn per_line<T>() -> usize {
    32 / size_of::<T>()
}

/// How the neighbouring lines of planes become blocks.
#[derive(Clone, Copy, Debug)]
struct BlockShape {
    /// Blocks in a plane.
    blocks: usize,
    /// Planes in a block.
    rows: usize,
}

/// All lines of a pass along one axis.
pub(crate) struct LineGrid<T> {
    cells: Vec<Cell>,
    strips: Vec<StripAt>,
    /// Neighbouring lines of a plane in a block.
    block: usize,
    /// Lines in the largest block: a short remainder is added to the last block of a row, because a block of few
    /// lines costs as much as a full one.
    widest: usize,
    /// Lines of a block that takes those of several planes, because few are neighbours: vectors are full, and all of
    /// a cache line or page is used at once. One: blocks stay in their plane.
    gathered: usize,
    /// Planes that a block takes lines of, if the user wants more than one.
    sub_planes: usize,
    /// Neighbouring lines that fill cache lines, and the fewest that form a block if they do: kernels load and store
    /// such rows directly.
    whole: (usize, usize),
    /// Arrays.
    pub batch: usize,
    /// Whether the arrays of the batch share cache lines: then a block goes through all arrays before the next one.
    pub interleaved: bool,
    /// Index of the first array in the whole batch.
    first_array: usize,
    pub line_op: LineOp<T>,
    axes: Axes,
    /// The first element of a line.
    start: usize,
    /// Blocks in all.
    pub blocks: usize,
    /// First and last index of lanes and of planes.
    pub lanes: (usize, usize),
    pub planes: (usize, usize),
    /// Scalars of each of the two staging buffers, which hold the next block while the current one is transformed.
    /// Zero unless the source's lines are neighbours in memory with strided elements.
    pub staging_len: usize,
    /// Whether the source (target) is a plane in cache.
    pub near: [bool; 2],
    /// Whether the source is in cache and the rows of the target are far apart.
    pub spreads: bool,
    /// The source (target), where the elements present differ from line to line.
    pub sparse: [Option<SparseLines>; 2],
    /// Whether stores bypass the caches, unless the target is the source.
    pub stream: bool,
    /// Whether the next block and the target are prefetched, if they are not in a core's cache.
    pub prefetch: bool,
}

/// Lines of a block.
#[derive(Clone, Copy)]
pub(crate) enum BlockLen {
    /// As many as suit the kernel and so many threads, which share the blocks out; where lines are strided, the user's wish.
    Best(Option<usize>, usize),
    /// So many side by side (0: as many as suit the kernel), in so many planes.
    SubTile([usize; 2]),
    /// So many.
    Exactly(usize),
}

impl<T: Real> LineGrid<T> {
    /// As [`new`](Self::new), with blocks that cross from plane to plane where planes are contiguous: blocks then
    /// start on cache lines, and rows of odd length leave no remainder.
    pub fn across(
        axes: Axes,
        domain: &Box3,
        from: Side<'_>,
        to: Side<'_>,
        line_op: LineOp<T>,
        arrays: (&Range<usize>, BlockLen),
    ) -> Self {
        // Operators need the indices of a line, which the flattened domain has lost.
        let flat = if matches!(line_op, LineOp::Lines(_)) { Flat::new(axes, domain, from, to) } else { None };
        match &flat {
            None => Self::new(axes, domain, from, to, line_op, arrays),
            Some(flat) => {
                let (from, to) = (Side { pieces: &flat.from, ..from }, Side { pieces: &flat.to, ..to });
                Self::new(axes, &flat.domain, from, to, line_op, arrays)
            }
        }
    }

    /// The grid of the lines along `axes.along` in `domain`; along that axis the extents are those of the pieces of
    /// `from` and `to`.
    pub fn new(
        axes: Axes,
        domain: &Box3,
        from: Side<'_>,
        to: Side<'_>,
        line_op: LineOp<T>,
        (arrays, block): (&Range<usize>, BlockLen),
    ) -> Self {
        let sub_planes = if let BlockLen::SubTile([_, planes]) = block { planes.max(1) } else { 1 };
        let both = || from.smooth().iter().chain(to.smooth());
        let lane_cuts = cuts(domain, axes.lanes, both());
        let plane_cuts = cuts(domain, axes.planes, both());
        let strided =
            from.pieces.first().is_some_and(|piece| piece.strides[axes.along] > piece.strides[axes.lanes]);
        let scattered = [from, to].iter().any(|side| side.is_scattered(axes.along, size_of::<T>()));
        let best = line_op.block(strided || scattered).max(1);
        let points = total_len(from.runs).max(total_len(to.runs));
        let element = from.width.min(to.width) * size_of::<T>();
        let whole = ((64 / element).max(1), BLOCK_POINTS.div_ceil(points.max(1)));
        let batch = arrays.len();
        let [lanes, planes] = [axes.lanes, axes.planes].map(|axis| (domain.lo[axis], domain.hi[axis]));
        let shared = |threads: usize| {
            let lines = (lanes.1 - lanes.0) * (planes.1 - planes.0) * batch;
            shared_block(best, lines, threads, whole.0).max(whole.1.min(best))
        };
        let (block, gathered) = match block {
            BlockLen::Best(wish, threads) => {
                [wish.filter(|_| strided).unwrap_or_else(|| shared(threads)).max(1); 2].into()
            }
            BlockLen::SubTile([0, _]) => (best, best),
            BlockLen::SubTile([lines, _]) => (lines, lines),
            BlockLen::Exactly(lines) => (lines, best.max(lines)),
        };
        // Operators need the indices of a line.
        let gathers = matches!(line_op, LineOp::Lines(_)) && from.ragged.is_none() && to.ragged.is_none();
        let mut grid = LineGrid {
            cells: Vec::new(),
            strips: Vec::new(),
            block,
            widest: 0,
            gathered: if gathers { gathered } else { 1 },
            sub_planes: if gathers { sub_planes } else { 1 },
            whole,
            batch,
            interleaved: batch > 1 && [from, to].iter().any(Side::is_interleaved),
            first_array: arrays.start,
            line_op,
            axes,
            start: domain.lo[axes.along],
            blocks: 0,
            lanes,
            planes,
            spreads: false,
            near: [from.ragged.is_some(), to.ragged.is_some()],
            sparse: [from, to].map(|side| side.sparse(axes, arrays.start)),
            stream: false,
            prefetch: true,
            staging_len: 0,
        };
        for planes in plane_cuts.windows(2).map(|w| (w[0], w[1])) {
            for lanes in lane_cuts.windows(2).map(|w| (w[0], w[1])) {
                let from = grid.add_strips(axes, lanes.0, planes.0, from);
                let to = grid.add_strips(axes, lanes.0, planes.0, to);
                let count = lanes.1 - lanes.0;
                let shape = grid.shape(count, planes.1 - planes.0);
                let gathered = grid.gathered.min(count * (planes.1 - planes.0));
                // Blocks that begin with a cache line leave some lines more to the last one.
                let more = if shape.blocks > 1 { per_line::<T>() - 1 } else { 0 };
                // Blocks of a part of the lanes may have a remainder where those of all lanes have none.
                let widest = (block + block / 4).min(count) + more;
                grid.widest = grid.widest.max(widest * grid.sub_planes.min(shape.rows)).max(gathered);
                let first = grid.blocks;
                grid.blocks += shape.blocks * (planes.1 - planes.0).div_ceil(shape.rows) * batch;
                grid.cells.push(Cell { lanes, planes, from, to, shape, first });
            }
        }
        grid.staging_len = grid.staging_len();
        grid
    }

    /// The strips that make up the lines of a cell, in order along the line.
    fn add_strips(&mut self, axes: Axes, lane: usize, plane: usize, side: Side<'_>) -> (usize, usize) {
        let first = self.strips.len();
        for piece in side.smooth() {
            let mut corner = piece.region.lo;
            (corner[axes.lanes], corner[axes.planes]) = (lane, plane);
            if !piece.region.contains(corner) {
                continue;
            }
            let moved: usize = (0..3).map(|a| (corner[a] - piece.region.lo[a]) * piece.strides[a]).sum();
            let (low, high) = (piece.region.lo[axes.along], piece.region.hi[axes.along]);
            let step = piece.strides[axes.along];
            for run in side.runs {
                let (from, to) = (low.max(run.at), high.min(run.at + run.len));
                if from < to {
                    self.strips.push(StripAt {
                        base: piece.rank * crate::transport::EXPOSED + piece.base as usize,
                        offset: piece.offset + moved + (from - low) * step,
                        at: run.line + (from - run.at),
                        len: to - from,
                        step,
                        lane: piece.strides[axes.lanes],
                        plane: piece.strides[axes.planes],
                        batch: piece.batch,
                    });
                }
            }
        }
        self.strips[first..].sort_unstable_by_key(|strip| strip.at);
        (first, self.strips.len())
    }

    /// The axis along which lines are side by side.
    pub fn lane_axis(&self) -> usize {
        self.axes.lanes
    }

    /// The most strips of any line; a block in cache has at most two.
    pub fn most_strips(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| (cell.from.1 - cell.from.0).max(cell.to.1 - cell.to.0))
            .max()
            .unwrap_or(0)
            .max(2)
    }

    /// Scalars of scratch per thread.
    pub fn scratch(&self) -> usize {
        self.sparse_scratch() + self.line_op_scratch() + 2 * self.staging_len
    }

    /// Scalars of the line operation's scratch.
    pub fn line_op_scratch(&self) -> usize {
        self.line_op.scratch(self.widest).next_multiple_of(64 / size_of::<T>())
    }

    fn staging_len(&self) -> usize {
        let mut sources = self.cells.iter().flat_map(|cell| &self.strips[cell.from.0..cell.from.1]);
        let strided = !self.near[0] && sources.all(|strip| strip.lane == 2 && strip.step > 2);
        if strided { self.line_op.loader().staging_len(self.widest) } else { 0 }
    }

    /// Scalars of scratch for a block of sparse lines.
    pub fn sparse_scratch(&self) -> usize {
        self.sparse.iter().flatten().map(|sparse| sparse.area(self.widest)).sum()
    }

    /// Lanes before the first one that begins a cache line of the target: arrays of users need not begin with one. Blocks that
    /// do can be streamed, and no row's cache lines are shared with another block. Zero where rows are not alike.
    pub fn lead(&self, bases: &Bases<T>) -> usize {
        let [cell] = &self.cells[..] else { return 0 };
        let [strip] = &self.strips[cell.to.0..cell.to.1] else { return 0 };
        let (size, line) = (size_of::<T>(), 64 / size_of::<T>());
        let alike =
            strip.lane == 2 && [strip.step, strip.plane, strip.batch].iter().all(|step| step % line == 0);
        let start = bases.pointer(strip.base).map_or(0, |start| start.wrapping_add(strip.offset) as usize);
        let whole = alike && self.block.is_multiple_of(line / 2) && start.is_multiple_of(2 * size);
        if whole { (line - start % 64 / size) % line / 2 } else { 0 }
    }

    /// Block number `number` of all, of an array with this [`lead`](Self::lead).
    pub fn block(&self, number: usize, lead: usize) -> BlockAt {
        let cell = self.cells.partition_point(|cell| cell.first <= number) - 1;
        let here = &self.cells[cell];
        let inside = number - here.first;
        let BlockShape { blocks, rows } = here.shape;
        let array = blocks * (here.planes.1 - here.planes.0).div_ceil(rows);
        let (batch, rest) = match self.interleaved {
            true => (inside % self.batch, inside / self.batch),
            false => (inside / array, inside % array),
        };
        let plane = here.planes.0 + rest / blocks * rows;
        let at = self.at((cell, batch), here.lanes, (plane, here.planes.1), (here.shape, rest % blocks));
        if lead == 0 || blocks == 1 || rows > 1 {
            return at;
        }
        // All boundaries move back to the last cache line before them.
        let back = per_line::<T>() - lead;
        let lane = if at.lane == here.lanes.0 { at.lane } else { at.lane - back };
        let end = if at.lane + at.lanes == here.lanes.1 { here.lanes.1 } else { at.lane + at.lanes - back };
        BlockAt { lane, lanes: end - lane, ..at }
    }

    /// A block of lanes `low..high` of a cell, in planes up to `end`.
    fn at(
        &self,
        (cell, batch): (usize, usize),
        (low, high): (usize, usize),
        (plane, end): (usize, usize),
        (shape, block): (BlockShape, usize),
    ) -> BlockAt {
        let lane = low + block * self.block;
        let lanes = if block + 1 == shape.blocks { high - lane } else { self.block };
        BlockAt { cell, batch, plane, lane, lanes, rows: shape.rows.min(end - plane) }
    }

    /// The blocks of `count` neighbouring lines in `planes` planes. A short remainder is added to the last block.
    fn shape(&self, count: usize, planes: usize) -> BlockShape {
        let (line, least) = self.whole;
        let blocks = ((count + self.block - 1 - self.block / 4) / self.block).max(1);
        let rows = match blocks {
            1 if !count.is_multiple_of(line) || count < least => self.gathered / count,
            _ => 1,
        };
        BlockShape { blocks, rows: rows.max(self.sub_planes).clamp(1, planes.max(1)) }
    }

    /// As [`blocks_in`](Self::blocks_in), for an array with this [`lead`](Self::lead): lines before the first whole cache
    /// line and after the last one are blocks of their own.
    pub fn blocks_after(
        &self,
        lead: usize,
        batch: usize,
        (lanes, planes): (Range<usize>, Range<usize>),
    ) -> impl Iterator<Item = BlockAt> + '_ {
        let (low, high) = (lanes.start.max(self.lanes.0), lanes.end.min(self.lanes.1));
        let first = high.min(low + lead);
        let last = if lead == 0 { high } else { high - (high - first) % per_line::<T>() };
        let parts = [low..first, first..last, last..high].into_iter().filter(|part| !part.is_empty());
        parts.flat_map(move |lanes| self.blocks_in(batch, lanes, planes.clone()))
    }

    /// The blocks of some lanes of some planes of one array.
    pub fn blocks_in(
        &self,
        batch: usize,
        lanes: Range<usize>,
        planes: Range<usize>,
    ) -> impl Iterator<Item = BlockAt> + '_ {
        self.cells.iter().enumerate().flat_map(move |(cell, here)| {
            let (low, high) = (lanes.start.max(here.lanes.0), lanes.end.min(here.lanes.1));
            let (first, last) = (planes.start.max(here.planes.0), planes.end.min(here.planes.1));
            let last = if low < high { last } else { first };
            let shape = self.shape(high.saturating_sub(low).max(1), last.saturating_sub(first));
            (first..last).step_by(shape.rows).flat_map(move |plane| {
                (0..shape.blocks)
                    .map(move |block| self.at((cell, batch), (low, high), (plane, last), (shape, block)))
            })
        })
    }

    /// The blocks of one array.
    pub fn array_blocks(&self, batch: usize) -> impl Iterator<Item = BlockAt> + '_ {
        self.blocks_in(batch, 0..usize::MAX, 0..usize::MAX)
    }

    /// All planes as repetitions of the first: where they have the same strip each, and no operator asks where lines
    /// are.
    pub fn repeat(&self) -> Option<Repeat> {
        let ([cell], LineOp::Lines(_), [None, None]) = (&self.cells[..], &self.line_op, &self.sparse) else {
            return None;
        };
        let strip = |(first, last): (usize, usize)| match &self.strips[first..last] {
            [strip] => Some(strip.plane as isize),
            _ => None,
        };
        Some(Repeat { count: cell.planes.1 - cell.planes.0, from: strip(cell.from)?, to: strip(cell.to)? })
    }

    /// Fills `strips` with the source (or target) of a block.
    ///
    /// # Safety
    /// `bases` are those of the current call; the pieces of this grid lie inside the memory they point to.
    pub unsafe fn strips(&self, at: &BlockAt, target: bool, bases: &Bases<T>, strips: &mut Vec<Strip<T>>) {
        let cell = &self.cells[at.cell];
        let (first, last) = if target { cell.to } else { cell.from };
        strips.clear();
        for strip in &self.strips[first..last] {
            let offset = strip.offset
                + (at.lane - cell.lanes.0) * strip.lane
                + (at.plane - cell.planes.0) * strip.plane;
            // SAFETY: this function's contract.
            let ptr = unsafe { bases.at(strip.base, offset, [self.first_array, at.batch], strip.batch) };
            let (step, lane, skip) = (strip.step as isize, strip.lane as isize, strip.plane as isize);
            let strip = Strip { ptr, at: strip.at, len: strip.len, step, lane, ..Strip::default() };
            strips.push(match at {
                // Contiguous planes are one run.
                BlockAt { rows: 1, .. } => strip,
                BlockAt { lanes: 1, .. } => Strip { lane: skip, ..strip },
                BlockAt { lanes, .. } if skip == *lanes as isize * lane => strip,
                BlockAt { lanes, .. } => Strip { run: *lanes, skip, ..strip },
            });
        }
    }

    /// The position of a block's lines.
    pub fn spot(&self, at: &BlockAt) -> Spot {
        let mut first = [self.start; 3];
        (first[self.axes.lanes], first[self.axes.planes]) = (at.lane, at.plane);
        Spot { first, batch: self.first_array + at.batch, along: self.axes.along, side: self.axes.lanes }
    }
}
