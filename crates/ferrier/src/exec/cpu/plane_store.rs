//! From a plane in scratch to its place, row by row.
//!
//! Where results go past the caches, planes are finished in scratch and leave
//! in one piece: memory likes long runs, and rows of an odd length do not even
//! begin with cache lines. A row leaves while those before it are overwritten
//! with the next plane's: reading, computing and writing go on at once.

use std::cell::Cell;

use ferrier_kernel::StreamCopy;
use ferrier_plan::geometry::{Axes, Piece};
use ferrier_plan::lowering::RankContext;

/// How finished planes go to their places.
pub(crate) struct PlaneStore {
    /// Which of the exposed pointers the places count from, and where the first one is.
    base: usize,
    offset: usize,
    /// The first plane, and numbers from one place to the next, for planes and arrays.
    first: usize,
    plane: usize,
    batch: usize,
    /// The first row of a plane, how many there are, and numbers of each.
    low: usize,
    rows: usize,
    row: usize,
    /// Numbers from one row to the next, in scratch and in its place.
    steps: [usize; 2],
    /// Whether the next plane comes in row by row.
    by_rows: bool,
}

impl PlaneStore {
    /// For planes that lie in `scratch` and go to `to`, where they do so in whole rows and past the caches.
    pub fn new(context: &RankContext<'_>, axes: Axes, scratch: &Piece, to: &[Piece]) -> Option<PlaneStore> {
        let [target] = to else { return None };
        let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
        let shape = target.region.shape();
        let row = shape[fast] * scratch.strides[fast];
        let step = target.strides[slow];
        let same = target.region == scratch.region && target.strides[fast] == scratch.strides[fast];
        let odd = !(step * context.scalar_bytes).is_multiple_of(64);
        (context.memory_policy.stream && odd && same && step >= row).then(|| PlaneStore {
            base: target.rank * crate::transport::EXPOSED + target.base as usize,
            offset: target.offset,
            first: target.region.lo[axes.planes],
            plane: target.strides[axes.planes],
            batch: target.batch,
            low: target.region.lo[slow],
            rows: shape[slow],
            row,
            steps: [scratch.strides[slow], step],
            by_rows: axes.along == fast,
        })
    }
}

/// A finished plane on its way out of a thread's scratch.
pub(crate) struct PlaneWriter<'a, T> {
    plane_store: &'a PlaneStore,
    from: *const T,
    to: *mut T,
    /// Rows that have left, or are on their way.
    gone: usize,
    /// Those on their way.
    pub stream_copy: Cell<StreamCopy<T>>,
}

impl<'a, T> PlaneWriter<'a, T> {
    /// Of no plane, by way of `plane_store`.
    pub fn new(plane_store: &'a PlaneStore, scratch: *const T) -> Self {
        let stream_copy = Cell::new(StreamCopy::default());
        PlaneWriter {
            plane_store,
            from: scratch,
            to: std::ptr::null_mut(),
            gone: plane_store.rows,
            stream_copy,
        }
    }

    /// Lets plane `index` of an array leave: now, or as the next one comes in.
    ///
    /// # Safety
    /// The plane is in scratch; its place is where the piece said, counted from `bases`. Until it has
    /// left, neither is accessed but with [`make_room`](Self::make_room) for what is overwritten.
    pub unsafe fn begin(&mut self, bases: &[*mut T], batch: usize, index: usize) {
        let PlaneStore { base, offset, first, plane, batch: array, .. } = *self.plane_store;
        // SAFETY: this function's contract.
        self.to = unsafe { bases[base].add(offset + (index - first) * plane + batch * array) };
        self.gone = 0;
        if !self.plane_store.by_rows {
            self.finish();
        }
    }

    /// Sees to it that rows before `end` have left, and sets those before `next` on their way.
    pub fn make_room(&mut self, end: usize, next: usize) {
        self.wait();
        self.send(end);
        self.wait();
        self.send(next);
    }

    /// Sees to it that all rows have left.
    pub fn finish(&mut self) {
        self.make_room(self.plane_store.low + self.plane_store.rows, 0);
    }

    fn wait(&self) {
        self.stream_copy.take().advance(usize::MAX);
    }

    /// Sets rows before `end` on their way.
    fn send(&mut self, end: usize) {
        let PlaneStore { low, rows, row, steps, .. } = *self.plane_store;
        let end = end.saturating_sub(low).min(rows);
        if end > self.gone {
            let (from, to) =
                (self.from.wrapping_add(self.gone * steps[0]), self.to.wrapping_add(self.gone * steps[1]));
            // SAFETY: rows of the plane that `begin` was given, none of them twice.
            self.stream_copy.set(unsafe { StreamCopy::new(from, to, row, end - self.gone, steps) });
            self.gone = end;
        }
    }
}
