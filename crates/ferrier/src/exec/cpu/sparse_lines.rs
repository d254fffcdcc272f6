//! Lines of which arrays hold parts that differ from line to line: a kernel
//! takes them from, or leaves them in, a block in cache, and from there every
//! line's part goes where it belongs. Columns of a sphere lie so.

use std::sync::Arc;

use super::block_at::BlockAt;
use ferrier_kernel::Strip;
use ferrier_plan::geometry::{Axes, Piece};
use ferrier_plan::modes::{IndexRun, Ragged, total_len};

/// One side of a grid of lines.
pub(crate) struct SparseLines {
    pieces: Vec<Piece>,
    ragged: Arc<Ragged>,
    /// The box around the parts of all lines: what the block in cache holds.
    runs: Vec<IndexRun>,
    width: usize,
    axes: Axes,
}

/// A run of one line: from its element `element` in the block to `at` on the axis.
struct Stretch {
    element: usize,
    at: usize,
    len: usize,
}

impl SparseLines {
    pub fn new(
        axes: Axes,
        pieces: &[Piece],
        runs: &[IndexRun],
        ragged: Arc<Ragged>,
        width: usize,
    ) -> SparseLines {
        assert_eq!(axes.lanes, ragged.lanes, "lines lie side by side along the axis that tells them apart");
        SparseLines { pieces: pieces.to_vec(), ragged, runs: runs.to_vec(), width, axes }
    }

    /// Numbers of a block of so many lines.
    pub fn area(&self, lines: usize) -> usize {
        (total_len(&self.runs) * lines * self.width).next_multiple_of(16)
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
            let home = |own: &&IndexRun| (own.line..own.line + own.len).contains(&run.line);
            let own = self.runs.iter().find(home).expect("the box holds all lines");
            Stretch { element: own.at + run.line - own.line, at: run.at, len: run.len }
        })
    }

    /// Where a box of elements of a piece begins, if it holds any: lines from `lane` on, the element at `at`.
    fn start<T>(
        &self,
        piece: &Piece,
        at: &BlockAt,
        lane: usize,
        along: usize,
        bases: &[*mut T],
    ) -> Option<*mut T> {
        let mut corner = [0; 3];
        corner[self.axes.planes] = at.plane;
        corner[self.axes.lanes] = lane;
        corner[self.axes.along] = along;
        let moved = || -> usize { (0..3).map(|a| (corner[a] - piece.region.lo[a]) * piece.strides[a]).sum() };
        let base = bases[piece.rank * crate::transport::EXPOSED + piece.base as usize];
        let inside = piece.region.contains(corner);
        inside.then(|| base.wrapping_add(piece.offset + moved() + at.batch * piece.batch))
    }

    /// Visits the parts of a line that is merged with others: rows of elements in the block and in memory.
    fn lines<T>(&self, at: &BlockAt, lane: usize, bases: &[*mut T], mut visit: impl FnMut(Row, Place<T>)) {
        let along = self.axes.along;
        for stretch in self.stretches(at.lane + lane) {
            for piece in &self.pieces {
                let (low, high) = (piece.region.lo[along], piece.region.hi[along]);
                let (first, last) = (stretch.at.max(low), (stretch.at + stretch.len).min(high));
                if first >= last {
                    continue;
                }
                if let Some(start) = self.start(piece, at, 0, first, bases) {
                    let element = stretch.element + first - stretch.at;
                    let number = (element * at.lanes + lane) * self.width;
                    let row = Row { number, step: at.lanes * self.width, len: last - first };
                    visit(row, Place { start, step: piece.strides[along] });
                }
            }
        }
    }

    /// Visits the elements of the lines of a block side by side.
    fn rows<T>(&self, at: &BlockAt, bases: &[*mut T], mut visit: impl FnMut(Row, Place<T>)) {
        let Axes { along, lanes, .. } = self.axes;
        for piece in &self.pieces {
            let (low, high) = (piece.region.lo[lanes], piece.region.hi[lanes]);
            let (first, last) = (at.lane.max(low), (at.lane + at.lanes).min(high));
            if first >= last {
                continue;
            }
            for element in piece.region.lo[along]..piece.region.hi[along] {
                if let Some(start) = self.start(piece, at, first, element, bases) {
                    let number = (element * at.lanes + first - at.lane) * self.width;
                    let row = Row { number, step: self.width, len: last - first };
                    visit(row, Place { start, step: piece.strides[lanes] });
                }
            }
        }
    }

    /// Fills the block; what lines do not have is zero.
    ///
    /// # Safety
    /// `bases` are the exposed pointers of all ranks, with room for the pieces, which are not written to.
    pub unsafe fn gather<T: Copy + Default>(&self, at: &BlockAt, bases: &[*mut T], area: &mut [T]) {
        let area = &mut area[..self.area(at.lanes)];
        // SAFETY: elements of a piece, by this function's contract.
        let mut load = |row: Row, place: Place<T>| unsafe { row.load(&place, self.width, area) };
        if self.ragged.merged {
            (0..at.lanes).for_each(|lane| self.lines(at, lane, bases, &mut load));
        } else {
            self.rows(at, bases, &mut load);
        }
        self.clear(at, area);
    }

    /// Stores the block: what lines have, and zeros for the rest where there is room for it.
    ///
    /// # Safety
    /// As for [`gather`](Self::gather), and no other thread accesses the pieces.
    pub unsafe fn scatter<T: Copy + Default>(&self, at: &BlockAt, bases: &[*mut T], area: &mut [T]) {
        let area = &mut area[..self.area(at.lanes)];
        if !self.ragged.merged {
            self.clear(at, area);
        }
        // SAFETY: elements of a piece, by this function's contract.
        let store = |row: Row, place: Place<T>| unsafe { row.store(&place, self.width, area) };
        if self.ragged.merged {
            (0..at.lanes).for_each(|lane| self.lines(at, lane, bases, store));
        } else {
            self.rows(at, bases, store);
        }
    }

    /// Makes zero what lines do not have.
    fn clear<T: Copy + Default>(&self, at: &BlockAt, area: &mut [T]) {
        let (pitch, all) = (at.lanes * self.width, total_len(&self.runs));
        for lane in 0..at.lanes {
            let parts = self.stretches(at.lane + lane).map(|stretch| (stretch.element, stretch.len));
            clear_between(parts, all, |element| {
                area[element * pitch + lane * self.width..][..self.width].fill(T::default());
            });
        }
    }
}

/// Calls for every element of `all` that is in none of the parts, which are in order.
pub(crate) fn clear_between(
    parts: impl Iterator<Item = (usize, usize)>,
    all: usize,
    mut clear: impl FnMut(usize),
) {
    let mut next = 0;
    for (at, len) in parts.chain([(all, 0)]) {
        (next..at).for_each(&mut clear);
        next = at + len;
    }
}

/// Elements of the block that lie evenly.
struct Row {
    number: usize,
    step: usize,
    len: usize,
}

/// Where they are in memory.
struct Place<T> {
    start: *mut T,
    step: usize,
}

impl Row {
    /// Copies elements of `width` numbers from memory.
    ///
    /// # Safety
    /// The elements are valid for reads.
    unsafe fn load<T: Copy>(&self, place: &Place<T>, width: usize, area: &mut [T]) {
        let to = area[self.number..][..(self.len - 1) * self.step + width].as_mut_ptr();
        // SAFETY: this function's contract, and the slice just taken.
        unsafe { copy((place.start, place.step), (to, self.step), self.len, width) };
    }

    /// Copies elements of `width` numbers to memory.
    ///
    /// # Safety
    /// The elements are valid for writes.
    unsafe fn store<T: Copy>(&self, place: &Place<T>, width: usize, area: &[T]) {
        let from = area[self.number..][..(self.len - 1) * self.step + width].as_ptr();
        // SAFETY: this function's contract, and the slice just taken.
        unsafe { copy((from.cast_mut(), self.step), (place.start, place.step), self.len, width) };
    }
}

/// # Safety
/// There are `len` elements of `width` numbers on both sides, `step` numbers apart.
unsafe fn copy<T: Copy>(from: (*mut T, usize), to: (*mut T, usize), len: usize, width: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match width {
            _ if from.1 == width && to.1 == width => std::ptr::copy_nonoverlapping(from.0, to.0, len * width),
            // A complex number goes in one piece.
            2 => (0..len).for_each(|i| {
                let value = from.0.add(i * from.1).cast::<[T; 2]>().read();
                to.0.add(i * to.1).cast::<[T; 2]>().write(value);
            }),
            _ => (0..len).for_each(|i| {
                std::ptr::copy_nonoverlapping(from.0.add(i * from.1), to.0.add(i * to.1), width);
            }),
        }
    }
}
