//! A rank's box of an array in memory.

use crate::exec::{Array, Data, DataMut};
use crate::{Box3, Real};
use ferrier_plan::geometry::Geometry;

/// A box in memory that is written to a file.
#[derive(Clone, Copy)]
pub(crate) struct BoxView<'a, T> {
    /// All scalars of the array.
    pub scalars: &'a [T],
    /// Where the box lies in them.
    pub geometry: Geometry,
}

/// A box in memory that is read from a file.
pub(crate) struct BoxViewMut<'a, T> {
    /// All scalars of the array.
    pub scalars: &'a mut [T],
    /// Where the box lies in them.
    pub geometry: Geometry,
}

impl<'a, T: Real> BoxView<'a, T> {
    /// Array `batch` of a batch, as complex or real elements; `None` if it does not have such elements.
    pub fn of(array: &'a Array<T>, complex: bool, batch: usize) -> Option<Self> {
        let mut geometry = array.geometry(complex)?;
        geometry.start += batch * geometry.batch;
        Some(BoxView { scalars: array.scalars(), geometry })
    }
}

impl<'a, T: Real> BoxViewMut<'a, T> {
    /// As [`BoxView::of`].
    pub fn of(array: &'a mut Array<T>, complex: bool, batch: usize) -> Option<Self> {
        let mut geometry = array.geometry(complex)?;
        geometry.start += batch * geometry.batch;
        Some(BoxViewMut { scalars: array.scalars_mut(), geometry })
    }

    /// Sets the elements outside `part` to zero.
    pub fn clear_outside(&mut self, part: &Box3) {
        let own = self.geometry.part;
        if *part == own || own.is_empty() {
            return;
        }
        rows(&own, |index, len| {
            let start = self.geometry.offset(index);
            let row = (part.lo[0] <= index[0] && index[0] < part.hi[0])
                && (part.lo[1] <= index[1] && index[1] < part.hi[1]);
            for k in 0..len {
                let inside = row && part.lo[2] <= own.lo[2] + k && own.lo[2] + k < part.hi[2];
                if !inside {
                    let at = start + k * self.geometry.strides[2];
                    self.scalars[at..at + self.geometry.width].fill(T::default());
                }
            }
        });
    }
}

/// Calls `each` with the first index and the length of every row along the last axis.
pub(crate) fn rows(part: &Box3, mut each: impl FnMut([usize; 3], usize)) {
    if part.is_empty() {
        return;
    }
    for i in part.lo[0]..part.hi[0] {
        for j in part.lo[1]..part.hi[1] {
            each([i, j, part.lo[2]], part.hi[2] - part.lo[2]);
        }
    }
}

/// The shape of an array on three axes.
pub(crate) fn embed(shape: &[usize]) -> [usize; 3] {
    let lengths = &shape[shape.len().saturating_sub(3)..];
    let mut three = [1; 3];
    three[3 - lengths.len()..].copy_from_slice(lengths);
    three
}

/// Scalars as bytes.
pub(crate) fn bytes<T: Real>(scalars: &[T]) -> &[u8] {
    // SAFETY: `Real` is sealed to `f32` and `f64`, which have no padding; the length is that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(scalars.as_ptr().cast(), size_of_val(scalars)) }
}

/// Scalars as bytes.
pub(crate) fn bytes_mut<T: Real>(scalars: &mut [T]) -> &mut [u8] {
    // SAFETY: `Real` is sealed to `f32` and `f64`, which have no padding and of which every bit
    // pattern is valid; the length is that of the slice in bytes and the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(scalars.as_mut_ptr().cast(), size_of_val(scalars)) }
}
