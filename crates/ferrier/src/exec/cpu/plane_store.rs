//! Stores planes from scratch to the target array, row by row.
//!
//! Rows whose length is no multiple of a cache line cannot be streamed row by row from the transform, nor can those of lengths
//! whose last butterflies do not fill cache lines. Such planes are completed in scratch and streamed as one run, while the
//! next plane is transformed into the rows that are already stored; or, where a plane is not overwritten row by row, while
//! the next rows of the same plane are transformed.

use std::cell::Cell;

use super::bases::Bases;
use ferrier_kernel::StreamCopy;
use ferrier_plan::geometry::{Axes, Piece};
use ferrier_plan::lowering::RankContext;

/// Where completed planes are stored. All distances are in scalars.
pub(crate) struct PlaneStore {
    /// Index of the target's exposed pointer, and the offset of its first plane.
    base: usize,
    offset: usize,
    /// Index of the first plane, and the strides of planes and arrays.
    first: usize,
    plane: usize,
    batch: usize,
    /// Index of the first array in the whole batch.
    first_array: usize,
    /// Index of the first row of a plane, number and length of rows.
    low: usize,
    rows: usize,
    row: usize,
    /// Strides of rows in scratch and in the target.
    steps: [usize; 2],
    /// Whether the first transform writes the next plane row by row.
    by_rows: bool,
}

impl PlaneStore {
    /// From `scratch` to `to`; none unless stores stream and rows are whole and not multiples of cache lines, or the transform
    /// does not stream such rows either.
    pub fn new(
        context: &RankContext<'_>,
        (axes, first_array): (Axes, usize),
        scratch: &Piece,
        to: &[Piece],
        streams: bool,
    ) -> Option<PlaneStore> {
        let [target] = to else { return None };
        let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
        let shape = target.region.shape();
        let row = shape[fast] * scratch.strides[fast];
        let step = target.strides[slow];
        let same = target.region == scratch.region && target.strides[fast] == scratch.strides[fast];
        let odd = !streams
            || [row, step].iter().any(|scalars| !(scalars * context.scalar_bytes).is_multiple_of(64));
        (context.memory_policy.stream && odd && same && step >= row).then(|| PlaneStore {
            base: target.rank * crate::transport::EXPOSED + target.base as usize,
            offset: target.offset,
            first: target.region.lo[axes.planes],
            plane: target.strides[axes.planes],
            batch: target.batch,
            first_array,
            low: target.region.lo[slow],
            rows: shape[slow],
            row,
            steps: [scratch.strides[slow], step],
            by_rows: axes.along == fast,
        })
    }
}

/// Stores the completed planes of one thread.
pub(crate) struct PlaneWriter<'a, T> {
    plane_store: &'a PlaneStore,
    from: *const T,
    to: *mut T,
    /// Rows that are stored or in `stream_copy`.
    begun: usize,
    /// The copy under way, which kernels advance between their own accesses to memory.
    pub stream_copy: Cell<StreamCopy<T>>,
}

impl<'a, T> PlaneWriter<'a, T> {
    /// A writer that has no plane yet.
    pub fn new(plane_store: &'a PlaneStore, scratch: *const T) -> Self {
        let stream_copy = Cell::new(StreamCopy::default());
        PlaneWriter {
            plane_store,
            from: scratch,
            to: std::ptr::null_mut(),
            begun: plane_store.rows,
            stream_copy,
        }
    }

    /// Whether the next plane is written row by row, so that it may begin before this one is stored.
    pub fn by_rows(&self) -> bool {
        self.plane_store.by_rows
    }

    /// Begins to store plane `index` of an array.
    ///
    /// # Safety
    /// The target lies in the memory of `bases`, those of the current call. Rows are in scratch before [`make_room`](Self::make_room)
    /// begins to store them, and are overwritten only after it completed them; until then the target is not accessed.
    pub unsafe fn begin(&mut self, bases: &Bases<T>, batch: usize, index: usize) {
        let PlaneStore { base, offset, first, plane, first_array, batch: array, .. } = *self.plane_store;
        let offset = offset + (index - first) * plane;
        // SAFETY: this function's contract.
        self.to = unsafe { bases.at(base, offset, [first_array, batch], array) };
        self.begun = 0;
    }

    /// Completes the store of rows before `end` and begins that of rows before `next`.
    pub fn make_room(&mut self, end: usize, next: usize) {
        self.wait();
        self.send(end);
        self.wait();
        self.send(next);
    }

    /// Completes the store of all rows.
    pub fn finish(&mut self) {
        self.make_room(self.plane_store.low + self.plane_store.rows, 0);
    }

    fn wait(&self) {
        self.stream_copy.take().advance(usize::MAX);
    }

    /// Begins to store the rows before `end`.
    fn send(&mut self, end: usize) {
        let PlaneStore { low, rows, row, steps, .. } = *self.plane_store;
        let end = end.saturating_sub(low).min(rows);
        if end > self.begun {
            let from = self.from.wrapping_add(self.begun * steps[0]);
            let to = self.to.wrapping_add(self.begun * steps[1]);
            // SAFETY: rows of the plane that `begin` was given, none of them twice.
            self.stream_copy.set(unsafe { StreamCopy::new(from, to, row, end - self.begun, steps) });
            self.begun = end;
        }
    }
}
