//! A copy of a box from one array to another; distances are in elements.

use std::cmp::Reverse;
use std::ops::{AddAssign, Range};

/// Where a box lies in an array: its first element, and the distance of neighbours on each axis.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: usize,
    pub strides: [usize; 3],
}

/// A box of elements that goes from one place to another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxCopy {
    pub shape: [usize; 3],
    pub from: Place,
    pub to: Place,
}

impl BoxCopy {
    pub fn volume(&self) -> usize {
        self.shape.iter().product()
    }

    /// The box as it lies in a segment of a message, from `offset` on: dense, in the order of the target.
    pub fn place_in_segment(&self, offset: usize) -> Place {
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&axis| self.to.strides[axis]);
        let mut strides = [0; 3];
        let mut next = 1;
        for axis in axes {
            strides[axis] = next;
            next *= self.shape[axis];
        }
        Place { offset, strides }
    }

    /// The axis to cut the box along: the slowest of the target, unless that gives few parts. Runs stay whole.
    pub fn cut_axis(&self) -> usize {
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&axis| (self.shape[axis] > 1, self.to.strides[axis]));
        let [first, next, slowest] = axes;
        let few = self.shape[first] > 1 && self.shape[slowest] < self.shape[next].min(16);
        if few { next } else { slowest }
    }

    /// The part of the box with these indices of an axis.
    pub fn cut(mut self, axis: usize, range: Range<usize>) -> BoxCopy {
        self.shape[axis] = range.len();
        self.from.offset += range.start * self.from.strides[axis];
        self.to.offset += range.start * self.to.strides[axis];
        self
    }

    /// The same copy with as few and as long runs as possible: the last axis is the fastest of the target, the one
    /// before it that of the source, if it is another; axes that are contiguous in both are one.
    pub fn simplified(self) -> BoxCopy {
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&axis| (self.shape[axis] > 1, Reverse(self.to.strides[axis])));
        if self.shape[axes[0]] > 1 && self.from.strides[axes[0]] < self.from.strides[axes[1]] {
            axes.swap(0, 1);
        }
        let pick = |values: [usize; 3]| axes.map(|axis| values[axis]);
        let (mut shape, mut from, mut to) =
            (pick(self.shape), pick(self.from.strides), pick(self.to.strides));
        let joined = |outer: usize, inner: usize, shape: &[usize; 3], strides: &[usize; 3]| {
            shape[outer] == 1 || strides[outer] == strides[inner] * shape[inner]
        };
        for _ in 0..2 {
            if joined(1, 2, &shape, &from) && joined(1, 2, &shape, &to) {
                shape = [1, shape[0], shape[1] * shape[2]];
                (from[1], to[1]) = (from[0], to[0]);
            }
        }
        if joined(0, 1, &shape, &from) && joined(0, 1, &shape, &to) {
            shape = [1, shape[0] * shape[1], shape[2]];
        }
        let place = |place: Place, strides| Place { strides, ..place };
        BoxCopy { shape, from: place(self.from, from), to: place(self.to, to) }
    }

    /// Calls `row` with the offsets of the first elements of each run along the last axis.
    fn each_row(&self, mut row: impl FnMut(usize, usize)) {
        for i in 0..self.shape[0] {
            let from = self.from.offset + i * self.from.strides[0];
            let to = self.to.offset + i * self.to.strides[0];
            for j in 0..self.shape[1] {
                row(from + j * self.from.strides[1], to + j * self.to.strides[1]);
            }
        }
    }

    /// Copies the box.
    ///
    /// # Safety
    /// The places lie in memory at `from` and `to` that is valid for reads and writes and does not overlap. It need
    /// not be aligned.
    pub unsafe fn copy<E: Copy>(&self, from: *const E, to: *mut E) {
        if self.from.strides[2] != 1 || self.to.strides[2] != 1 {
            // SAFETY: as above.
            return unsafe { self.transpose(from, to) };
        }
        // SAFETY: each row lies in both places. Short rows have a length that the compiler knows.
        unsafe {
            match self.shape[2] {
                1 => self.copy_rows::<E, 1>(from, to),
                2 => self.copy_rows::<E, 2>(from, to),
                3 => self.copy_rows::<E, 3>(from, to),
                4 => self.copy_rows::<E, 4>(from, to),
                n => {
                    let bytes = n * size_of::<E>();
                    self.each_row(|f, t| {
                        to.add(t).cast::<u8>().copy_from_nonoverlapping(from.add(f).cast(), bytes);
                    });
                }
            }
        }
    }

    /// # Safety
    /// As [`copy`](Self::copy); rows are contiguous and have `N` elements.
    unsafe fn copy_rows<E: Copy, const N: usize>(&self, from: *const E, to: *mut E) {
        // SAFETY: the rows lie in both places.
        self.each_row(|f, t| unsafe {
            let row = from.add(f).cast::<[E; N]>().read_unaligned();
            to.add(t).cast::<[E; N]>().write_unaligned(row);
        });
    }

    /// Copies in tiles of a few cache lines, for boxes whose runs in source and target lie along different axes.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn transpose<E: Copy>(&self, from: *const E, to: *mut E) {
        let tile = (128 / size_of::<E>()).clamp(8, 64);
        let ([_, f1, f2], [_, t1, t2]) = (self.from.strides, self.to.strides);
        let planes = BoxCopy { shape: [self.shape[0], 1, 1], ..*self };
        planes.each_row(|f, t| {
            for j in (0..self.shape[1]).step_by(tile) {
                for k in (0..self.shape[2]).step_by(tile) {
                    for j in j..self.shape[1].min(j + tile) {
                        for k in k..self.shape[2].min(k + tile) {
                            // SAFETY: an element of both places.
                            unsafe {
                                let element = from.add(f + j * f1 + k * f2).read_unaligned();
                                to.add(t + j * t1 + k * t2).write_unaligned(element);
                            }
                        }
                    }
                }
            }
        });
    }

    /// Adds the box to what is at its target.
    ///
    /// # Safety
    /// As [`copy`](Self::copy); the target is aligned and initialised.
    pub unsafe fn add<E: Copy + AddAssign>(&self, from: *const E, to: *mut E) {
        self.each_row(|f, t| {
            for k in 0..self.shape[2] {
                // SAFETY: an element of both places.
                unsafe {
                    let element = from.add(f + k * self.from.strides[2]).read_unaligned();
                    *to.add(t + k * self.to.strides[2]) += element;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;
    use ferrier_test::Rng;

    /// A random box inside random arrays, whatever their orders, arrives where plain indexing puts it.
    #[test]
    fn copies_are_those_of_plain_indexing() {
        let mut rng = Rng::for_test(1801);
        for _ in 0..500 {
            let shape: [usize; 3] = std::array::from_fn(|_| 1 + rng.below(9));
            let mut side = |order: &Order| {
                let room: [usize; 3] = std::array::from_fn(|a| shape[a] + rng.below(3));
                let at: [usize; 3] = std::array::from_fn(|a| rng.below(room[a] - shape[a] + 1));
                let strides = order.strides(room);
                let offset = (0..3).map(|a| at[a] * strides[a]).sum();
                (Place { offset, strides }, room.iter().product::<usize>())
            };
            let [(from, n), (to, m)] =
                [Order::ALL[n_of(&shape, 0)], Order::ALL[n_of(&shape, 3)]].map(|order| side(&order));
            let copy = BoxCopy { shape, from, to };
            let source: Vec<u32> = (0..n as u32).map(|i| i + 1).collect();
            let (mut got, mut sum, mut expected) = (vec![0; m], vec![7; m], vec![0; m]);
            for i in 0..shape[0] {
                for j in 0..shape[1] {
                    for k in 0..shape[2] {
                        let at =
                            |p: &Place| p.offset + i * p.strides[0] + j * p.strides[1] + k * p.strides[2];
                        expected[at(&to)] = source[at(&from)];
                    }
                }
            }
            // SAFETY: the boxes lie inside both arrays.
            unsafe {
                copy.simplified().copy(source.as_ptr(), got.as_mut_ptr());
                copy.simplified().add(source.as_ptr(), sum.as_mut_ptr());
            }
            assert_eq!(got, expected, "{copy:?}");
            assert!(sum.iter().zip(&expected).all(|(sum, part)| *sum == part + 7), "{copy:?}");
        }
    }

    /// An order that depends on the shape, so that all are met.
    fn n_of(shape: &[usize; 3], skip: usize) -> usize {
        (shape[0] + 5 * shape[1] + 7 * shape[2] + skip * shape[1]) % 6
    }

    #[test]
    fn contiguous_axes_are_joined() {
        let place = Place { offset: 0, strides: [30, 6, 1] };
        let copy = |shape| BoxCopy { shape, from: place, to: place };
        assert_eq!(copy([4, 5, 6]).simplified().shape, [1, 1, 120]);
        assert_eq!(copy([4, 3, 6]).simplified().shape, [1, 4, 18]);
    }
}
