//! Lines of which arrays hold parts that differ from line to line: a kernel
//! takes them from, or leaves them in, a block in cache, and from there every
//! line's part goes where it belongs. Columns of a sphere lie so.

use std::sync::Arc;

use super::lines::{Axes, BlockAt};
use super::lower::Piece;
use crate::kernel::Strip;
use crate::modes::{Ragged, Run, held};

/// One side of a grid of lines.
pub(crate) struct Rough {
    pieces: Vec<Piece>,
    ragged: Arc<Ragged>,
    /// The box around the parts of all lines: what the block in cache holds.
    runs: Vec<Run>,
    width: usize,
    axes: Axes,
}

/// A run of one line: from its element `element` in the block to `at` on the axis.
struct Stretch {
    element: usize,
    at: usize,
    len: usize,
}

impl Rough {
    pub fn new(axes: Axes, pieces: &[Piece], runs: &[Run], ragged: Arc<Ragged>, width: usize) -> Rough {
        assert_eq!(axes.lanes, ragged.lanes, "lines lie side by side along the axis that tells them apart");
        Rough { pieces: pieces.to_vec(), ragged, runs: runs.to_vec(), width, axes }
    }

    /// Numbers of a block of so many lines.
    pub fn area(&self, lines: usize) -> usize {
        (held(&self.runs) * lines * self.width).next_multiple_of(16)
    }

    /// The block as a kernel sees it.
    pub fn strips<T>(&self, area: *mut T, lines: usize, strips: &mut Vec<Strip<T>>) {
        let row = lines * self.width;
        strips.clear();
        strips.extend(self.runs.iter().map(|run| Strip {
            ptr: area.wrapping_add(run.at * row),
            at: run.line,
            len: run.len,
            step: row as isize,
            lane: self.width as isize,
        }));
    }

    /// The parts of a line by its index.
    fn stretches(&self, index: usize) -> impl Iterator<Item = Stretch> + '_ {
        self.ragged.runs[index].iter().map(|run| {
            let home = |own: &&Run| (own.line..own.line + own.len).contains(&run.line);
            let own = self.runs.iter().find(home).expect("the box holds all lines");
            Stretch { element: own.at + run.line - own.line, at: run.at, len: run.len }
        })
    }

    /// Visits every element of a stretch: its number in the block, its place in memory.
    fn visit<T>(
        &self,
        at: &BlockAt,
        lane: usize,
        stretch: &Stretch,
        bases: &[*mut T],
        mut to: impl FnMut(usize, *mut T),
    ) {
        let Axes { along, lanes, planes } = self.axes;
        let mut corner = [0; 3];
        corner[planes] = at.plane;
        corner[lanes] = if self.ragged.merged { 0 } else { at.lane + lane };
        for piece in &self.pieces {
            let (low, high) = (piece.region.lo[along], piece.region.hi[along]);
            let (first, last) = (stretch.at.max(low), (stretch.at + stretch.len).min(high));
            corner[along] = first;
            if first >= last || !piece.region.contains(corner) {
                continue;
            }
            let moved: usize = (0..3).map(|a| (corner[a] - piece.region.lo[a]) * piece.strides[a]).sum();
            let base = bases[piece.rank * crate::transport::LENT + piece.base as usize];
            let start = base.wrapping_add(piece.offset + moved + at.batch * piece.batch);
            for k in first..last {
                let element = stretch.element + k - stretch.at;
                to(
                    (element * at.lanes + lane) * self.width,
                    start.wrapping_add((k - first) * piece.strides[along]),
                );
            }
        }
    }

    /// Fills the block; what lines do not have is zero.
    ///
    /// # Safety
    /// `bases` are the lent pointers of all ranks, with room for the pieces; nobody writes to them.
    pub unsafe fn gather<T: Copy + Default>(&self, at: &BlockAt, bases: &[*mut T], area: &mut [T]) {
        area[..self.area(at.lanes)].fill(T::default());
        for lane in 0..at.lanes {
            for stretch in self.stretches(at.lane + lane) {
                self.visit(at, lane, &stretch, bases, |number, place| {
                    for w in 0..self.width {
                        // SAFETY: an element of a piece, by the caller's word.
                        area[number + w] = unsafe { *place.add(w) };
                    }
                });
            }
        }
    }

    /// Stores the block: what lines have, and zeros for the rest where there is room for it.
    ///
    /// # Safety
    /// As for [`gather`](Self::gather), and nobody touches the pieces.
    pub unsafe fn scatter<T: Copy + Default>(&self, at: &BlockAt, bases: &[*mut T], area: &mut [T]) {
        for lane in 0..at.lanes {
            let store = |stretch: &Stretch, area: &[T]| {
                self.visit(at, lane, stretch, bases, |number, place| {
                    for w in 0..self.width {
                        // SAFETY: an element of a piece, by the caller's word.
                        unsafe { *place.add(w) = area[number + w] };
                    }
                });
            };
            if self.ragged.merged {
                self.stretches(at.lane + lane).for_each(|stretch| store(&stretch, area));
                continue;
            }
            let mut next = 0;
            let all = held(&self.runs);
            let end = std::iter::once(Stretch { element: all, at: all, len: 0 });
            for stretch in self.stretches(at.lane + lane).chain(end) {
                for element in next..stretch.element {
                    let number = (element * at.lanes + lane) * self.width;
                    area[number..number + self.width].fill(T::default());
                }
                next = stretch.element + stretch.len;
            }
            store(&Stretch { element: 0, at: 0, len: all }, area);
        }
    }
}
