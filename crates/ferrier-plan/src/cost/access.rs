//! How a pass accesses memory at one of its ends.

use super::machine::Machine;
use crate::geometry::{Axes, Piece};

/// Bytes of a cache line.
pub(super) const LINE: f64 = 64.0;
/// Bytes that processors do not fetch ahead across.
const PAGE: usize = 4096;

/// The memory accesses of one rank at one end of a pass, for all arrays of the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Access {
    /// Bytes that are loaded or stored.
    pub bytes: f64,
    /// Contiguous runs that blocks of lines are loaded or stored in.
    pub runs: f64,
    /// Cache lines that are touched, once for each run in them.
    pub lines: f64,
    /// Bytes of the cache lines that are touched between two runs in the same cache line.
    pub reuse_bytes: f64,
    /// Runs that are a page or more from the run before.
    pub pages: f64,
    /// Cache lines in rows of a block that meet in too few sets of the level-2 cache.
    pub conflicts: f64,
    /// Bytes of runs that do not begin and end with cache lines: vectors cross lines, and cannot be stored past the caches.
    pub unaligned: f64,
    /// Bytes of rows that are not whole cache lines: vectors cannot be stored past the caches one by one.
    pub partial: f64,
    /// Cache lines at the ends of rows that are split: whoever has the rest of the row stores to them too.
    pub shared_lines: f64,
    /// Bytes in the memory of other ranks.
    pub remote: f64,
}

impl Access {
    /// The accesses to `pieces`, whose strides are in scalars of `scalar` bytes and whose elements have `element`
    /// bytes, by blocks of `block` lines of `axes`, on rank `own`.
    pub(super) fn new(
        pieces: &[Piece],
        axes: Axes,
        block: usize,
        (element, scalar): (usize, usize),
        own: usize,
        machine: &Machine,
    ) -> Access {
        let mut sum = Access::default();
        for piece in pieces {
            sum.add(&Access::of_piece(piece, axes, block, (element, scalar), own, machine));
        }
        sum
    }

    /// The accesses to `pieces` of arrays that are loaded and stored as a whole: what is between their runs is prefetched
    /// too.
    pub(super) fn of_whole(pieces: &[Piece], (element, _): (usize, usize), own: usize) -> Access {
        let of = |piece: &Piece| (piece.region.volume() * element) as f64;
        let bytes = pieces.iter().map(of).sum::<f64>();
        let remote = pieces.iter().filter(|piece| piece.rank != own).map(of).sum();
        Access { bytes, runs: pieces.len() as f64, lines: bytes / LINE, remote, ..Access::default() }
    }

    fn of_piece(
        piece: &Piece,
        axes: Axes,
        block: usize,
        (element, scalar): (usize, usize),
        own: usize,
        machine: &Machine,
    ) -> Access {
        let shape = piece.region.shape();
        let strides = piece.strides.map(|stride| stride * scalar);
        let bytes = (piece.region.volume() * element) as f64;
        if bytes == 0.0 {
            return Access::default();
        }
        // The part of a piece that one block accesses.
        let blocks = shape[axes.lanes].div_ceil(block.max(1)).max(1);
        let lanes = shape[axes.lanes] as f64 / blocks as f64;
        let extent = |axis: usize| match axis {
            _ if axis == axes.along => shape[axis] as f64,
            _ if axis == axes.lanes => lanes,
            _ => 1.0,
        };
        // Runs: axes from the smallest stride on, as long as there is no gap.
        let mut order = [axes.along, axes.lanes, axes.planes];
        order.sort_by_key(|&axis| strides[axis]);
        let (mut run, mut next) = (element as f64, None);
        for axis in order.into_iter().filter(|&axis| shape[axis] > 1) {
            if next.is_none() && strides[axis] as f64 == run {
                run *= extent(axis);
                if extent(axis) < shape[axis] as f64 {
                    next = Some(axis);
                }
            } else {
                next = next.or(Some(axis));
            }
        }
        let runs = bytes / run;
        let aligned = order.into_iter().filter(|&axis| shape[axis] > 1 && strides[axis] as f64 >= run);
        let aligned = run % LINE == 0.0 && aligned.into_iter().all(|axis| strides[axis] % 64 == 0);
        let odd = |axis: usize| shape[axis] > 1 && strides[axis] > element && strides[axis] % 64 != 0;
        let partial = (0..3).any(odd);
        // A row whose part is shorter than the distance to the next row goes on in the box of another rank.
        let fastest = (0..3).find(|&axis| strides[axis] == element).unwrap_or(order[0]);
        let part = shape[fastest] * element;
        let others = (0..3).filter(|&axis| axis != fastest && shape[axis] > 1);
        let distance = others.map(|axis| strides[axis]).min().unwrap_or(part);
        let split = distance > part && [distance, part].iter().any(|bytes| !bytes.is_multiple_of(64));
        let lines_of_run = match aligned {
            true => run / LINE,
            false => (run + LINE - (element as f64).min(LINE)) / LINE,
        };
        let block_bytes = extent(axes.along) * lanes * element as f64;
        let lines_of_block = block_bytes / run * lines_of_run;
        // The next run in the same cache line: in the next plane, or in this block or the next one.
        let reuse = match next {
            Some(axis) if axis == axes.planes && axis == order[0] => blocks as f64 * lines_of_block,
            _ => 2.0 * lines_of_block,
        };
        // Rows of a block: the run of each element along the line, or of each line.
        let row = if run >= extent(axes.along) * element as f64 && strides[axes.along] == element {
            axes.lanes
        } else {
            axes.along
        };
        let (rows, stride) = (extent(row), strides[row]);
        let far = stride >= PAGE && run <= stride as f64;
        let sets = machine.level2.sets() * 64;
        let places = sets / gcd(stride.max(1), sets) * machine.level2.ways;
        let conflict = stride >= PAGE && rows > places as f64 && row == axes.along;
        Access {
            bytes,
            runs,
            lines: runs * lines_of_run,
            reuse_bytes: reuse * LINE,
            pages: if far { runs } else { 0.0 },
            conflicts: if conflict { runs * lines_of_run } else { 0.0 },
            unaligned: if aligned { 0.0 } else { bytes },
            partial: if partial { bytes } else { 0.0 },
            shared_lines: if split { 2.0 * bytes / part as f64 } else { 0.0 },
            remote: if piece.rank == own { 0.0 } else { bytes },
        }
    }

    fn add(&mut self, other: &Access) {
        self.bytes += other.bytes;
        self.runs += other.runs;
        self.lines += other.lines;
        self.reuse_bytes = self.reuse_bytes.max(other.reuse_bytes);
        self.pages += other.pages;
        self.conflicts += other.conflicts;
        self.unaligned += other.unaligned;
        self.partial += other.partial;
        self.shared_lines += other.shared_lines;
        self.remote += other.remote;
    }

    /// The same for so many arrays.
    pub(super) fn times(mut self, arrays: f64) -> Access {
        for field in [
            &mut self.bytes,
            &mut self.runs,
            &mut self.lines,
            &mut self.pages,
            &mut self.conflicts,
            &mut self.unaligned,
            &mut self.partial,
            &mut self.shared_lines,
            &mut self.remote,
        ] {
            *field *= arrays;
        }
        self
    }

    /// Mean bytes of a run.
    pub fn run_bytes(&self) -> f64 {
        if self.runs > 0.0 { self.bytes / self.runs } else { 0.0 }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
