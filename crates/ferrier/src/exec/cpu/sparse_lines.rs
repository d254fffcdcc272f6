//! Lines of which the array holds different elements from line to line, such as the columns of a sphere.
//! Kernels load them from, or store them to, a dense block in cache; this module copies between block and array.

use std::sync::Arc;

use super::bases::Bases;
use super::block_at::BlockAt;
use ferrier_kernel::Strip;
use ferrier_plan::geometry::{Axes, Piece};
use ferrier_plan::modes::{IndexRun, Ragged, total_len};

/// The source or target of such lines.
pub(crate) struct SparseLines {
    pieces: Vec<Piece>,
    ragged: Arc<Ragged>,
    /// The elements that the block holds: the union over all lines.
    runs: Vec<IndexRun>,
    width: usize,
    axes: Axes,
    /// Index of the first array in the whole batch.
    first_array: usize,
}

/// A run of elements of one line: `element` is its first in the block, `at` its first index in the array.
struct Stretch {
    element: usize,
    at: usize,
    len: usize,
}

impl SparseLines {
    pub fn new(
        (axes, first_array): (Axes, usize),
        pieces: &[Piece],
        runs: &[IndexRun],
        ragged: Arc<Ragged>,
        width: usize,
    ) -> SparseLines {
        assert_eq!(axes.lanes, ragged.lanes, "neighbouring lines differ along the axis of `ragged`");
        SparseLines { pieces: pieces.to_vec(), ragged, runs: runs.to_vec(), width, axes, first_array }
    }

    /// Scalars of a block of `lines` lines.
    pub fn area(&self, lines: usize) -> usize {
        (total_len(&self.runs) * lines * self.width).next_multiple_of(16)
    }

    /// The strips of the block.
    pub fn strips<T>(&self, area: *mut T, lines: usize, strips: &mut Vec<Strip<T>>) {
        let row = lines * self.width;
        strips.clear();
        strips.extend(self.runs.iter().map(|run| Strip {
            ptr: area.wrapping_add(run.at * row),
            at: run.line,
            len: run.len,
            step: row as isize,
            lane: self.width as isize,
            ..Strip::default()
        }));
    }

    /// The runs of a line by its index.
    fn stretches(&self, index: usize) -> impl Iterator<Item = Stretch> + '_ {
        self.ragged.runs[index].iter().map(|run| {
            let holds = |own: &&IndexRun| (own.line..own.line + own.len).contains(&run.line);
            let own = self.runs.iter().find(holds).expect("the block holds all elements");
            Stretch { element: own.at + run.line - own.line, at: run.at, len: run.len }
        })
    }

    /// The address of element `along` of line `lane`, if the piece holds it.
    fn start<T>(
        &self,
        piece: &Piece,
        at: &BlockAt,
        lane: usize,
        along: usize,
        bases: &Bases<T>,
    ) -> Option<*mut T> {
        let mut corner = [0; 3];
        corner[self.axes.planes] = at.plane;
        corner[self.axes.lanes] = lane;
        corner[self.axes.along] = along;
        let moved = || -> usize { (0..3).map(|a| (corner[a] - piece.region.lo[a]) * piece.strides[a]).sum() };
        let base = piece.rank * crate::transport::EXPOSED + piece.base as usize;
        let arrays = [self.first_array, at.batch];
        let inside = piece.region.contains(corner);
        // SAFETY: the contract of `gather` and `scatter`: the bases are those of the current call.
        inside.then(|| unsafe { bases.at(base, piece.offset + moved(), arrays, piece.batch) })
    }

    /// Visits the runs of one of several lines that are merged into one of the array.
    fn lines<T>(&self, at: &BlockAt, lane: usize, bases: &Bases<T>, mut visit: impl FnMut(Row, Place<T>)) {
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
                    let scalar = (element * at.lanes + lane) * self.width;
                    let row = Row { scalar, step: at.lanes * self.width, len: last - first };
                    visit(row, Place { start, step: piece.strides[along] });
                }
            }
        }
    }

    /// Visits rows: the same element of all lines of a block.
    fn rows<T>(&self, at: &BlockAt, bases: &Bases<T>, mut visit: impl FnMut(Row, Place<T>)) {
        let Axes { along, lanes, .. } = self.axes;
        for piece in &self.pieces {
            let (low, high) = (piece.region.lo[lanes], piece.region.hi[lanes]);
            let (first, last) = (at.lane.max(low), (at.lane + at.lanes).min(high));
            if first >= last {
                continue;
            }
            for element in piece.region.lo[along]..piece.region.hi[along] {
                if let Some(start) = self.start(piece, at, first, element, bases) {
                    let scalar = (element * at.lanes + first - at.lane) * self.width;
                    let row = Row { scalar, step: self.width, len: last - first };
                    visit(row, Place { start, step: piece.strides[lanes] });
                }
            }
        }
    }

    /// Fills the block; elements that lines do not have are zero.
    ///
    /// # Safety
    /// `bases` are those of the current call; the pieces lie in their memory and are not written to.
    pub unsafe fn gather<T: Copy + Default>(&self, at: &BlockAt, bases: &Bases<T>, area: &mut [T]) {
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

    /// Stores the block: the elements of lines, and zeros elsewhere in the array.
    ///
    /// # Safety
    /// As for [`gather`](Self::gather), and no other thread accesses the pieces.
    pub unsafe fn scatter<T: Copy + Default>(&self, at: &BlockAt, bases: &Bases<T>, area: &mut [T]) {
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

    /// Sets elements that lines do not have to zero.
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

/// Calls `clear` for each index below `all` that is in none of the parts (start, length), which are in order.
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

/// Equidistant elements of the block.
struct Row {
    scalar: usize,
    step: usize,
    len: usize,
}

/// Their addresses in the array.
struct Place<T> {
    start: *mut T,
    step: usize,
}

impl Row {
    /// Copies elements of `width` scalars from the array.
    ///
    /// # Safety
    /// The elements are valid for reads.
    unsafe fn load<T: Copy>(&self, place: &Place<T>, width: usize, area: &mut [T]) {
        let to = area[self.scalar..][..(self.len - 1) * self.step + width].as_mut_ptr();
        // SAFETY: this function's contract, and the slice just taken.
        unsafe { copy((place.start, place.step), (to, self.step), self.len, width) };
    }

    /// Copies elements of `width` scalars to the array.
    ///
    /// # Safety
    /// The elements are valid for writes.
    unsafe fn store<T: Copy>(&self, place: &Place<T>, width: usize, area: &[T]) {
        let from = area[self.scalar..][..(self.len - 1) * self.step + width].as_ptr();
        // SAFETY: this function's contract, and the slice just taken.
        unsafe { copy((from.cast_mut(), self.step), (place.start, place.step), self.len, width) };
    }
}

/// # Safety
/// Source and target, each an address and a stride in scalars, hold `len` elements of `width` scalars.
unsafe fn copy<T: Copy>(from: (*mut T, usize), to: (*mut T, usize), len: usize, width: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match width {
            _ if from.1 == width && to.1 == width => std::ptr::copy_nonoverlapping(from.0, to.0, len * width),
            // A complex element in one load and store.
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
