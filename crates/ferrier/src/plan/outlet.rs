//! From a plane in scratch to its place, row by row.
//!
//! Rows of an odd length do not begin with cache lines: stored line by line,
//! nearly every vector would lie across two, and nothing could be written past
//! the caches. So such planes are finished in scratch and leave in one piece.

use super::lines::Axes;
use super::lower::{Piece, Site};
use crate::kernel::stream;

/// How finished planes go to their places.
pub(crate) struct Outlet {
    /// Which of the lent pointers the places count from, and where the first one is.
    base: usize,
    offset: usize,
    /// The first plane, and numbers from one place to the next, for planes and arrays.
    first: usize,
    plane: usize,
    batch: usize,
    /// Rows of a plane, and numbers of each.
    rows: usize,
    row: usize,
    /// Numbers from one row to the next, in scratch and in its place.
    steps: [usize; 2],
}

impl Outlet {
    /// For planes that lie in `scratch` and go to `to`, where that is worth it: whole rows of an odd length.
    pub fn new(site: &Site<'_>, axes: Axes, scratch: &Piece, to: &[Piece]) -> Option<Outlet> {
        let [target] = to else { return None };
        let (slow, fast) = (axes.along.min(axes.lanes), axes.along.max(axes.lanes));
        let shape = target.region.shape();
        let row = shape[fast] * scratch.strides[fast];
        let step = target.strides[slow];
        let odd = !(step * site.number).is_multiple_of(64);
        let same = target.region == scratch.region && target.strides[fast] == scratch.strides[fast];
        (site.handling.stream && odd && same && step >= row).then(|| Outlet {
            base: target.rank * crate::transport::LENT + target.base as usize,
            offset: target.offset,
            first: target.region.lo[axes.planes],
            plane: target.strides[axes.planes],
            batch: target.batch,
            rows: shape[slow],
            row,
            steps: [scratch.strides[slow], step],
        })
    }

    /// Moves plane `index` of an array.
    ///
    /// # Safety
    /// The plane lies in `scratch`, its place is where the piece said, counted from `bases`, and nobody else
    /// touches either.
    pub unsafe fn run<T: Copy>(&self, scratch: *const T, bases: &[*mut T], batch: usize, index: usize) {
        let offset = self.offset + (index - self.first) * self.plane + batch * self.batch;
        for row in 0..self.rows {
            // SAFETY: the caller's word.
            unsafe {
                let from = scratch.add(row * self.steps[0]);
                stream(from, bases[self.base].add(offset + row * self.steps[1]), self.row);
            }
        }
    }
}
