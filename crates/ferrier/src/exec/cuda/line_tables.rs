//! Pieces of memory as tables for the kernels. Pure.

use std::ops::Range;

use crate::Box3;
use crate::exec::cuts::cuts;
use crate::transport::EXPOSED;
use ferrier_plan::geometry::{Axes, Piece};

/// Neighbouring lines in neighbouring planes, all with the same strips; as in `lines.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    first: u64,
    lanes: u32,
    planes: u32,
    blocks: u32,
    from: u32,
    from_end: u32,
    to: u32,
    to_end: u32,
    /// Index of the first line, across the lines.
    lane: u32,
    plane: u32,
    /// Arrays of the batch, where they lie side by side; else 0.
    near: u32,
}

/// A run of the lines of a cell; as in `lines.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Strip {
    offset: u64,
    step: u64,
    lane: u64,
    plane: u64,
    batch: u64,
    base: u32,
    at: u32,
    end: u32,
    /// The array of the batch that `offset` is in.
    array: u32,
}

/// A cell that is alone, and its strip before and after: handed to a launch with the pointers they count from; as in `lines.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lone {
    cell: Cell,
    strips: [Strip; 2],
    bases: [u64; 2],
}

impl Lone {
    /// With the pointers of a call.
    pub fn at(&self, pointers: &[u64]) -> Lone {
        Lone { bases: self.strips.map(|strip| pointers[strip.base as usize]), ..*self }
    }
}

/// All lines of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LineTable {
    pub cells: Vec<Cell>,
    pub strips: Vec<Strip>,
    /// Blocks in all.
    pub blocks: u64,
    /// The most strips of a line before and after.
    pub most: [usize; 2],
}

/// Whether the arrays of a batch lie between each other's elements.
fn is_interleaved(piece: &Piece) -> bool {
    let shape = piece.region.shape();
    piece.batch > 0 && (0..3).all(|axis| shape[axis] == 1 || piece.batch < piece.strides[axis])
}

/// The index of a piece's exposed pointer.
fn base(piece: &Piece) -> u32 {
    (piece.rank * EXPOSED + piece.base as usize) as u32
}

impl LineTable {
    /// The lines along `axes.along` in `domain`, in blocks of `lines`, of these arrays of a batch.
    pub fn new(
        axes: Axes,
        domain: &Box3,
        [from, to]: [&[Piece]; 2],
        lines: usize,
        arrays: &Range<usize>,
    ) -> LineTable {
        let mut table = LineTable::default();
        let both = || from.iter().chain(to);
        let near = if both().any(is_interleaved) { arrays.len() as u32 } else { 0 };
        let (lane_cuts, plane_cuts) = (cuts(domain, axes.lanes, both()), cuts(domain, axes.planes, both()));
        for planes in plane_cuts.windows(2) {
            for lanes in lane_cuts.windows(2) {
                let [from, to] = [from, to]
                    .map(|pieces| table.add_strips(axes, [lanes[0], planes[0]], pieces, arrays.start));
                let (count, depth) = (lanes[1] - lanes[0], planes[1] - planes[0]);
                let blocks = count.div_ceil(lines);
                table.cells.push(Cell {
                    first: table.blocks,
                    lanes: count as u32,
                    planes: depth as u32,
                    blocks: blocks as u32,
                    from: from[0],
                    from_end: from[1],
                    to: to[0],
                    to_end: to[1],
                    lane: lanes[0] as u32,
                    plane: planes[0] as u32,
                    near,
                });
                table.blocks += (blocks * depth * arrays.len()) as u64;
                table.most[0] = table.most[0].max((from[1] - from[0]) as usize);
                table.most[1] = table.most[1].max((to[1] - to[0]) as usize);
            }
        }
        table
    }

    /// The only cell, where there is one and its lines lie in one strip each.
    pub fn lone(&self) -> Option<Lone> {
        match (&self.cells[..], &self.strips[..]) {
            (&[cell], &[from, to]) => Some(Lone { cell, strips: [from, to], bases: [0; 2] }),
            _ => None,
        }
    }

    /// The strips of the lines that begin at this lane and plane, in order along the line.
    fn add_strips(
        &mut self,
        axes: Axes,
        [lane, plane]: [usize; 2],
        pieces: &[Piece],
        array: usize,
    ) -> [u32; 2] {
        let first = self.strips.len();
        for piece in pieces {
            let mut corner = piece.region.lo;
            (corner[axes.lanes], corner[axes.planes]) = (lane, plane);
            if !piece.region.contains(corner) {
                continue;
            }
            let moved: usize = (0..3).map(|a| (corner[a] - piece.region.lo[a]) * piece.strides[a]).sum();
            self.strips.push(Strip {
                offset: (piece.offset + moved) as u64,
                step: piece.strides[axes.along] as u64,
                lane: piece.strides[axes.lanes] as u64,
                plane: piece.strides[axes.planes] as u64,
                batch: piece.batch as u64,
                base: base(piece),
                at: piece.region.lo[axes.along] as u32,
                end: piece.region.hi[axes.along] as u32,
                array: array as u32,
            });
        }
        self.strips[first..].sort_unstable_by_key(|strip| strip.at);
        [first as u32, self.strips.len() as u32]
    }
}

/// A box to copy; as in `move.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Move {
    first: u64,
    from: u64,
    to: u64,
    from_step: [u64; 4],
    to_step: [u64; 4],
    reciprocal: [u64; 3],
    n: [u32; 4],
    from_base: u32,
    to_base: u32,
    array: u32,
    pad: u32,
}

/// All boxes of a pass, in one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MoveTable {
    pub moves: Vec<Move>,
    /// Blocks in all.
    pub blocks: u64,
    /// Bytes moved at once.
    pub unit: usize,
    /// Whether source and target have different fastest axes.
    pub turn: bool,
}

/// What a block of `move.cu` takes: units in a row, or the edge of a square.
const CHUNK: usize = 2048;
const TILE: usize = 32;
/// Units of a box: the kernel counts them in 32 bits.
const MOST: usize = 1 << 30;

/// A box with its two ends, axes in the order of the kernel; strides in scalars.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub from: usize,
    pub to: usize,
    pub from_step: [usize; 4],
    pub to_step: [usize; 4],
    pub n: [usize; 4],
    /// Indices of the addresses that it counts from.
    pub bases: [u32; 2],
    /// The first array of the batch that axis 3 counts, if it does.
    pub array: usize,
}

impl MoveTable {
    /// From all pieces to all pieces, elements of `width` scalars of `scalar_bytes` bytes, of these arrays of a batch.
    pub fn new(
        from: &[Piece],
        to: &[Piece],
        arrays: &Range<usize>,
        width: usize,
        scalar_bytes: usize,
    ) -> MoveTable {
        let (Some(source), Some(target)) = (largest(from), largest(to)) else { return MoveTable::default() };
        let (fast, near) = (fastest(target), fastest(source));
        let turn = fast != near;
        let second = if turn {
            near
        } else {
            (0..3).filter(|&a| a != fast).min_by_key(|&a| target.strides[a]).unwrap_or(0)
        };
        let axes = [fast, second, 3 - fast - second];
        let mut flows = Vec::new();
        for source in from {
            for target in to {
                let part = source.region.intersect(&target.region);
                if !part.is_empty() {
                    flows.push(Flow::new(source, target, &part, axes, arrays));
                }
            }
        }
        MoveTable::of(&flows, turn, width, scalar_bytes, true)
    }

    /// These boxes; `turn`: source and target have different fastest axes, those of the flows' axes 1 and 0; `wide`:
    /// several elements may be moved at once, for which addresses must be multiples of 16.
    pub fn of(boxes: &[Flow], turn: bool, width: usize, scalar_bytes: usize, wide: bool) -> MoveTable {
        let mut flows = Vec::with_capacity(boxes.len());
        boxes.iter().for_each(|flow| split(*flow, &mut flows));
        let wide = if turn || !wide { 1 } else { widen(&flows, width, scalar_bytes) };
        let mut table = MoveTable { unit: width * scalar_bytes * wide, turn, ..MoveTable::default() };
        let unit = width * wide;
        for flow in &flows {
            let n = [flow.n[0] / wide, flow.n[1], flow.n[2], flow.n[3]];
            // Units are contiguous along axis 0.
            let steps = |steps: [usize; 4]| -> [u64; 4] {
                std::array::from_fn(|a| if a == 0 && wide > 1 { 1 } else { (steps[a] / unit) as u64 })
            };
            table.moves.push(Move {
                first: table.blocks,
                from: (flow.from / unit) as u64,
                to: (flow.to / unit) as u64,
                from_step: steps(flow.from_step),
                to_step: steps(flow.to_step),
                reciprocal: [n[0], n[1], n[2]].map(reciprocal),
                n: n.map(|n| n as u32),
                from_base: flow.bases[0],
                to_base: flow.bases[1],
                array: flow.array as u32,
                pad: 0,
            });
            let blocks = match turn {
                true => n[0].div_ceil(TILE) * n[1].div_ceil(TILE) * n[2] * n[3],
                false => n.iter().product::<usize>().div_ceil(CHUNK),
            };
            table.blocks += blocks as u64;
        }
        table
    }
}

#[cfg(test)]
impl MoveTable {
    /// The kernel's work, on the CPU.
    pub fn run_on_host<T: Copy>(&self, scalar_bytes: usize, from: &[T], to: &mut [T]) {
        let unit = self.unit / scalar_bytes;
        for m in &self.moves {
            for i3 in 0..m.n[3] as u64 {
                for i2 in 0..m.n[2] as u64 {
                    for i1 in 0..m.n[1] as u64 {
                        for i0 in 0..m.n[0] as u64 {
                            let at = |start: u64, s: &[u64; 4]| {
                                (start + i0 * s[0] + i1 * s[1] + i2 * s[2] + i3 * s[3]) as usize * unit
                            };
                            let (a, b) = (at(m.from, &m.from_step), at(m.to, &m.to_step));
                            to[b..b + unit].copy_from_slice(&from[a..a + unit]);
                        }
                    }
                }
            }
        }
    }
}

impl Flow {
    fn new(source: &Piece, target: &Piece, part: &Box3, axes: [usize; 3], arrays: &Range<usize>) -> Flow {
        let place = |piece: &Piece| {
            piece.offset + (0..3).map(|a| (part.lo[a] - piece.region.lo[a]) * piece.strides[a]).sum::<usize>()
        };
        let steps = |piece: &Piece| {
            let [a, b, c] = axes.map(|axis| piece.strides[axis]);
            [a, b, c, piece.batch]
        };
        let [a, b, c] = axes.map(|axis| part.shape()[axis]);
        Flow {
            from: place(source),
            to: place(target),
            from_step: steps(source),
            to_step: steps(target),
            n: [a, b, c, arrays.len()],
            bases: [base(source), base(target)],
            array: arrays.start,
        }
    }
}

/// The multiplier that replaces a division by `n`: 2^64 / n, rounded up;
/// 0 if `n` is 0 or 1.
fn reciprocal(n: usize) -> u64 {
    if n == 1 { 0 } else { u64::MAX / n as u64 + 1 }
}

/// Cuts a box that has too many elements, along the longest of its outer axes.
fn split(flow: Flow, into: &mut Vec<Flow>) {
    if flow.n.iter().product::<usize>() <= MOST {
        into.push(flow);
        return;
    }
    let longest = [3, 2, 1].into_iter().max_by_key(|&a| flow.n[a]).filter(|&a| flow.n[a] > 1);
    let (outer, half) = match longest {
        Some(outer) => (outer, flow.n[outer] / 2),
        // Elements stay together that are moved at once.
        None => (0, (flow.n[0] / 2).next_multiple_of(16)),
    };
    let (mut low, mut high) = (flow, flow);
    low.n[outer] = half;
    high.n[outer] -= half;
    high.from += half * flow.from_step[outer];
    high.to += half * flow.to_step[outer];
    if outer == 3 {
        high.array += half;
    }
    split(low, into);
    split(high, into);
}

fn largest(pieces: &[Piece]) -> Option<&Piece> {
    pieces.iter().max_by_key(|piece| piece.region.volume())
}

/// The axis with the smallest stride, of those with more than one element.
fn fastest(piece: &Piece) -> usize {
    let shape = piece.region.shape();
    (0..3).min_by_key(|&a| (shape[a] == 1, piece.strides[a])).unwrap_or(2)
}

/// How many elements in a row can be moved as one, up to 16 bytes.
fn widen(flows: &[Flow], width: usize, scalar_bytes: usize) -> usize {
    let fits = |wide: usize| {
        let scalars = wide * width;
        flows.iter().all(|flow| {
            let whole = |value: usize| value.is_multiple_of(scalars);
            flow.from_step[0] == width
                && flow.to_step[0] == width
                && flow.n[0].is_multiple_of(wide)
                && [flow.from, flow.to].into_iter().all(whole)
                && (1..4).all(|a| flow.n[a] == 1 || (whole(flow.from_step[a]) && whole(flow.to_step[a])))
        })
    };
    let mut wide = 16 / (width * scalar_bytes);
    while wide > 1 && !fits(wide) {
        wide /= 2;
    }
    wide.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier_plan::geometry::Base;

    fn piece(rank: usize, lo: [usize; 3], hi: [usize; 3], strides: [usize; 3]) -> Piece {
        Piece { region: Box3::new(lo, hi), rank, base: Base::Work, offset: 0, strides, batch: 0 }
    }

    #[test]
    fn boxes_move_whole() {
        // 4 x 6 x 8 complex, C order, to order 102, all in one array.
        let from = [piece(0, [0; 3], [4, 6, 8], [96, 16, 2])];
        for (strides, turn, unit) in [([16, 64, 2], false, 16), ([2, 64, 8], true, 8)] {
            let to = [piece(0, [0; 3], [4, 6, 8], strides)];
            let table = MoveTable::new(&from, &to, &(0..1), 2, 4);
            assert_eq!((table.turn, table.unit), (turn, unit));
            let source: Vec<f32> = (0..384).map(|i| i as f32).collect();
            let mut target = vec![-1.0; 384];
            table.run_on_host(4, &source, &mut target);
            for (i, j, k) in (0..4).flat_map(|i| (0..6).flat_map(move |j| (0..8).map(move |k| (i, j, k)))) {
                let (a, b) = (i * 96 + j * 16 + k * 2, i * strides[0] + j * strides[1] + k * strides[2]);
                assert_eq!(source[a..a + 2], target[b..b + 2]);
            }
        }
    }

    #[test]
    fn odd_rows_are_not_widened() {
        let [from, to] = [[42, 14, 2], [42, 14, 2]].map(|strides| [piece(0, [0; 3], [3, 3, 7], strides)]);
        assert_eq!(MoveTable::new(&from, &to, &(0..1), 2, 4).unit, 8);
    }

    #[test]
    fn lines_have_a_strip_for_every_piece_they_cross() {
        let axes = Axes { along: 0, lanes: 2, planes: 1 };
        let from = [piece(0, [0; 3], [3, 4, 8], [64, 16, 2]), piece(1, [3, 0, 0], [8, 4, 8], [64, 16, 2])];
        let to = [piece(0, [0; 3], [8, 4, 5], [40, 10, 2]), piece(1, [0, 0, 5], [8, 4, 8], [24, 6, 2])];
        let table = LineTable::new(axes, &Box3::whole([8, 4, 8]), [&from, &to], 4, &(0..2));
        assert_eq!(table.most, [2, 1]);
        // Lanes 0..5 and 5..8: two blocks and one, in 4 planes of 2 arrays.
        assert_eq!(table.blocks, (2 + 1) * 4 * 2);
        assert_eq!(table.cells[1].first, 16);
        let strips = &table.strips[table.cells[1].from as usize..table.cells[1].from_end as usize];
        assert_eq!(
            strips.iter().map(|s| (s.base, s.at, s.end, s.offset)).collect::<Vec<_>>(),
            [(2, 0, 3, 10), (5, 3, 8, 10)]
        );
    }
}
