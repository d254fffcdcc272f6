//! Boxes of indices and orders of axes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid, Result};

/// A half-open box of indices: `lo[a] <= i[a] < hi[a]` on each of three axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Box3 {
    /// First index on each axis.
    pub lo: [usize; 3],
    /// One past the last index on each axis.
    pub hi: [usize; 3],
}

impl Box3 {
    /// The empty box.
    pub const EMPTY: Box3 = Box3 { lo: [0; 3], hi: [0; 3] };

    /// The box from `lo` to `hi`. With `hi[a] <= lo[a]` on any axis it is empty.
    pub const fn new(lo: [usize; 3], hi: [usize; 3]) -> Self {
        Box3 { lo, hi }
    }

    /// The box of a whole array of this shape.
    pub const fn whole(shape: [usize; 3]) -> Self {
        Box3 { lo: [0; 3], hi: shape }
    }

    /// Length of each axis; all zero for an empty box.
    pub fn shape(&self) -> [usize; 3] {
        if self.is_empty() {
            return [0; 3];
        }
        std::array::from_fn(|a| self.hi[a] - self.lo[a])
    }

    /// Number of indices in the box; saturates at `usize::MAX`.
    pub fn volume(&self) -> usize {
        self.shape().into_iter().fold(1, usize::saturating_mul)
    }

    /// Whether the box has no index.
    pub fn is_empty(&self) -> bool {
        (0..3).any(|a| self.hi[a] <= self.lo[a])
    }

    /// The intersection of both boxes.
    pub fn intersect(&self, other: &Box3) -> Box3 {
        let both = Box3 {
            lo: std::array::from_fn(|a| self.lo[a].max(other.lo[a])),
            hi: std::array::from_fn(|a| self.hi[a].min(other.hi[a])),
        };
        if both.is_empty() { Box3::EMPTY } else { both }
    }

    /// Whether the box contains `index`.
    pub fn contains(&self, index: [usize; 3]) -> bool {
        (0..3).all(|a| self.lo[a] <= index[a] && index[a] < self.hi[a])
    }

    /// Whether the box spans all of an axis of length `n`, or is empty.
    pub fn spans(&self, axis: usize, n: usize) -> bool {
        self.is_empty() || (self.lo[axis] == 0 && self.hi[axis] == n)
    }

    /// The same box with an axis spanning `0..n`; an empty box stays empty.
    #[must_use]
    pub fn with_axis(mut self, axis: usize, n: usize) -> Box3 {
        if self.is_empty() {
            return Box3::EMPTY;
        }
        (self.lo[axis], self.hi[axis]) = (0, n);
        self
    }

    /// Appends the difference of `self` and `other`: up to six boxes.
    pub(super) fn without(&self, other: &Box3, left: &mut Vec<Box3>) {
        let mut rest = *self;
        let hole = self.intersect(other);
        if hole.is_empty() {
            left.push(rest);
            return;
        }
        for a in 0..3 {
            let (mut below, mut above) = (rest, rest);
            below.hi[a] = hole.lo[a];
            above.lo[a] = hole.hi[a];
            left.extend([below, above].into_iter().filter(|b| !b.is_empty()));
            (rest.lo[a], rest.hi[a]) = (hole.lo[a], hole.hi[a]);
        }
    }
}

impl fmt::Display for Box3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.pad("(empty)");
        }
        let range = |a: usize| format!("{}..{}", self.lo[a], self.hi[a]);
        f.pad(&format!("[{}, {}, {}]", range(0), range(1), range(2)))
    }
}

impl fmt::Debug for Box3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The order of the axes in memory, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Order([u8; 3]);

impl Order {
    /// The last axis is the fastest: C, numpy's default.
    pub const C: Order = Order([0, 1, 2]);
    /// The first axis is the fastest: Fortran.
    pub const F: Order = Order([2, 1, 0]);
    /// All six orders.
    pub const ALL: [Order; 6] = [
        Order([0, 1, 2]),
        Order([0, 2, 1]),
        Order([1, 0, 2]),
        Order([1, 2, 0]),
        Order([2, 0, 1]),
        Order([2, 1, 0]),
    ];

    /// The order with `axes[0]` slowest and `axes[2]` fastest.
    ///
    /// # Errors
    /// [`Error::Layout`] unless `axes` is a permutation of 0, 1, 2.
    pub fn new(axes: [usize; 3]) -> Result<Order> {
        Order::ALL.into_iter().find(|order| order.axes() == axes).ok_or_else(|| {
            let message = format!("the order of the axes must be a permutation of 0, 1, 2; got {axes:?}");
            let invalid = Invalid::new("order", message).expected("a permutation of 0, 1, 2");
            Error::Layout(invalid.got(format!("{axes:?}")))
        })
    }

    /// The axes, slowest first.
    pub fn axes(self) -> [usize; 3] {
        self.0.map(usize::from)
    }

    /// The axis whose neighbouring elements are neighbours in memory.
    pub fn fastest(self) -> usize {
        self.0[2] as usize
    }

    /// Distance in elements between neighbours on each axis of a dense array; `usize::MAX` where that is larger.
    pub fn strides(self, shape: [usize; 3]) -> [usize; 3] {
        let [slow, mid, fast] = self.axes();
        let mut strides = [0; 3];
        strides[fast] = 1;
        strides[mid] = shape[fast];
        strides[slow] = shape[fast].saturating_mul(shape[mid]);
        strides
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Order::C => f.pad("C"),
            Order::F => f.pad("F"),
            Order([a, b, c]) => f.pad(&format!("{a}{b}{c}")),
        }
    }
}
