//! The lines of a pass: the domain is cut into cells in which every line has the same strips, and cells into
//! blocks of lines that a kernel transforms together.

use std::ops::Range;
use std::sync::Arc;

use super::block_at::BlockAt;
use super::line_op::{LineOp, Spot};
use super::sparse_lines::SparseLines;
use crate::exec::cuts::cuts;
use crate::{Box3, Real};
use ferrier_kernel::{Repeat, Strip};
use ferrier_plan::geometry::{Axes, Piece};
use ferrier_plan::modes::{IndexRun, Ragged};
use ferrier_plan::schedule::AxisTransform;

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
    /// Blocks in a plane.
    blocks: usize,
    /// Blocks of all cells before this one, all planes and arrays counted.
    first: usize,
}

/// All lines of a pass along one axis.
pub(crate) struct LineGrid<T> {
    cells: Vec<Cell>,
    strips: Vec<StripAt>,
    /// Lines in a block.
    block: usize,
    /// Lines in the largest block: a short remainder is added to the last block of a row, because a block of few
    /// lines costs as much as a full one.
    widest: usize,
    /// Arrays.
    pub batch: usize,
    /// Index of the first array in the whole batch.
    first_array: usize,
    pub line_op: LineOp<T>,
    axes: Axes,
    /// The first element of a line.
    start: usize,
    /// Blocks in all.
    pub blocks: usize,
    /// First and last index of planes.
    pub planes: (usize, usize),
    /// Scalars of each of the two staging buffers, which hold the next block while the current one is transformed.
    /// Zero unless the source's lines are neighbours in memory with strided elements.
    pub staging_len: usize,
    /// Whether the source (target) is a plane in cache.
    pub near: [bool; 2],
    /// The source (target), where the elements present differ from line to line.
    pub sparse: [Option<SparseLines>; 2],
    /// Whether stores bypass the caches, unless the target is the source.
    pub stream: bool,
}

/// The source or target of lines: pieces, and the elements of a line that they hold.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub pieces: &'a [Piece],
    pub runs: &'a [IndexRun],
    /// The elements of each line, where they differ from line to line.
    pub ragged: Option<&'a Arc<Ragged>>,
    /// Scalars of an element.
    pub width: usize,
}

impl<'a> Side<'a> {
    /// Pieces that hold the same elements of every line.
    pub fn even(pieces: &'a [Piece], runs: &'a [IndexRun], width: usize) -> Side<'a> {
        Side { pieces, runs, ragged: None, width }
    }

    /// The two sides of a transform.
    pub fn of(transform: &'a AxisTransform, from: &'a [Piece], to: &'a [Piece]) -> [Side<'a>; 2] {
        let AxisTransform { spec, ragged_from, ragged_to, .. } = transform;
        let (width_in, width_out) = (spec.kind.width_in(), spec.kind.width_out());
        [
            Side { pieces: from, runs: &transform.from, ragged: ragged_from.as_ref(), width: width_in },
            Side { pieces: to, runs: &transform.to, ragged: ragged_to.as_ref(), width: width_out },
        ]
    }

    fn sparse(&self, axes: Axes) -> Option<SparseLines> {
        self.ragged.map(|ragged| SparseLines::new(axes, self.pieces, self.runs, ragged.clone(), self.width))
    }

    /// The pieces that are accessed by strips: none where lines differ.
    fn smooth(&self) -> &'a [Piece] {
        if self.ragged.is_some() { &[] } else { self.pieces }
    }
}

/// Lines whose planes are contiguous in memory, as one plane.
struct Flat {
    domain: Box3,
    from: Vec<Piece>,
    to: Vec<Piece>,
}

impl Flat {
    /// None where there are gaps between planes, or a piece holds part of a plane.
    fn new(axes: Axes, domain: &Box3, from: Side<'_>, to: Side<'_>) -> Option<Flat> {
        let Axes { lanes, planes, .. } = axes;
        let (low, width) = (domain.lo[planes], domain.shape()[lanes]);
        let flat = |region: &Box3| {
            let mut flat = *region;
            (flat.lo[lanes], flat.hi[lanes]) =
                ((region.lo[planes] - low) * width, (region.hi[planes] - low) * width);
            (flat.lo[planes], flat.hi[planes]) = (0, 1);
            flat
        };
        let whole = |piece: &Piece| {
            (piece.region.lo[lanes], piece.region.hi[lanes]) == (domain.lo[lanes], domain.hi[lanes])
                && piece.region.lo[planes] >= low
                && piece.region.hi[planes] <= domain.hi[planes]
                && piece.strides[planes] == width * piece.strides[lanes]
        };
        let pieces = |side: Side<'_>| -> Option<Vec<Piece>> {
            let all = side.ragged.is_none() && side.pieces.iter().all(whole);
            all.then(|| {
                side.pieces.iter().map(|piece| Piece { region: flat(&piece.region), ..*piece }).collect()
            })
        };
        Some(Flat { domain: flat(domain), from: pieces(from)?, to: pieces(to)? })
    }
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
        arrays: (&Range<usize>, Option<usize>),
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
        (arrays, wish): (&Range<usize>, Option<usize>),
    ) -> Self {
        let both = || from.smooth().iter().chain(to.smooth());
        let lane_cuts = cuts(domain, axes.lanes, both());
        let plane_cuts = cuts(domain, axes.planes, both());
        let strided =
            from.pieces.first().is_some_and(|piece| piece.strides[axes.along] > piece.strides[axes.lanes]);
        let block = wish.filter(|_| strided).unwrap_or_else(|| line_op.block(strided)).max(1);
        let batch = arrays.len();
        let planes = (domain.lo[axes.planes], domain.hi[axes.planes]);
        let mut grid = LineGrid {
            cells: Vec::new(),
            strips: Vec::new(),
            block,
            widest: 0,
            batch,
            first_array: arrays.start,
            line_op,
            axes,
            start: domain.lo[axes.along],
            blocks: 0,
            planes,
            near: [from.ragged.is_some(), to.ragged.is_some()],
            sparse: [from.sparse(axes), to.sparse(axes)],
            stream: false,
            staging_len: 0,
        };
        for planes in plane_cuts.windows(2).map(|w| (w[0], w[1])) {
            for lanes in lane_cuts.windows(2).map(|w| (w[0], w[1])) {
                let from = grid.add_strips(axes, lanes.0, planes.0, from);
                let to = grid.add_strips(axes, lanes.0, planes.0, to);
                let count = lanes.1 - lanes.0;
                let blocks = ((count + block - 1 - block / 4) / block).max(1);
                grid.widest = grid.widest.max(count - (blocks - 1) * block).max(block.min(count));
                let first = grid.blocks;
                grid.blocks += blocks * (planes.1 - planes.0) * batch;
                grid.cells.push(Cell { lanes, planes, from, to, blocks, first });
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

    /// Block number `number` of all.
    pub fn block(&self, number: usize) -> BlockAt {
        let cell = self.cells.partition_point(|cell| cell.first <= number) - 1;
        let here = &self.cells[cell];
        let inside = number - here.first;
        let planes = here.planes.1 - here.planes.0;
        let (batch, rest) = (inside / (planes * here.blocks), inside % (planes * here.blocks));
        self.at(cell, batch, here.planes.0 + rest / here.blocks, rest % here.blocks)
    }

    fn at(&self, cell: usize, batch: usize, plane: usize, block: usize) -> BlockAt {
        let (low, high) = self.cells[cell].lanes;
        let lane = low + block * self.block;
        let last = block + 1 == self.cells[cell].blocks;
        BlockAt { cell, batch, plane, lane, lanes: if last { high - lane } else { self.block } }
    }

    /// The blocks of one plane of one array.
    pub fn plane_blocks(&self, batch: usize, plane: usize) -> impl Iterator<Item = BlockAt> + '_ {
        let here = move |cell: &Cell| cell.planes.0 <= plane && plane < cell.planes.1;
        let cells = self.cells.iter().enumerate().filter(move |(_, cell)| here(cell));
        cells.flat_map(move |(i, cell)| (0..cell.blocks).map(move |block| self.at(i, batch, plane, block)))
    }

    /// The blocks of one array.
    pub fn array_blocks(&self, batch: usize) -> impl Iterator<Item = BlockAt> + '_ {
        self.cells.iter().enumerate().flat_map(move |(i, cell)| {
            let count = (cell.planes.1 - cell.planes.0) * cell.blocks;
            let plane = move |number: usize| cell.planes.0 + number / cell.blocks;
            (0..count).map(move |number| self.at(i, batch, plane(number), number % cell.blocks))
        })
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
    /// `bases` are the exposed pointers of all ranks; the pieces of this grid lie inside the memory they point to.
    pub unsafe fn strips(&self, at: &BlockAt, target: bool, bases: &[*mut T], strips: &mut Vec<Strip<T>>) {
        let cell = &self.cells[at.cell];
        let (first, last) = if target { cell.to } else { cell.from };
        strips.clear();
        for strip in &self.strips[first..last] {
            let offset = strip.offset
                + (at.lane - cell.lanes.0) * strip.lane
                + (at.plane - cell.planes.0) * strip.plane
                + at.batch * strip.batch;
            // SAFETY: inside the array that the base points to, by this function's contract.
            let ptr = unsafe { bases[strip.base].add(offset) };
            strips.push(Strip {
                ptr,
                at: strip.at,
                len: strip.len,
                step: strip.step as isize,
                lane: strip.lane as isize,
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
