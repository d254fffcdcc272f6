//! Layouts: one box per rank.

use serde::{Deserialize, Serialize};

use super::box3::{Box3, Order};
use super::boxes::Boxes;
use crate::error::{Error, Invalid, Result};

/// One [`Box3`] per rank (some may be empty) that together cover a shape, and the memory order of the axes.
/// The elements of a rank's box are dense in memory unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layout {
    shape: [usize; 3],
    boxes: Boxes,
    order: Order,
}

impl Layout {
    /// The layout of these boxes, one per rank.
    ///
    /// # Errors
    /// [`Error::Layout`] if a box exceeds the shape, two boxes overlap, or an index is in no box; the message
    /// names the ranks and the boxes.
    pub fn from_boxes(shape: [usize; 3], mut boxes: Vec<Box3>, order: Order) -> Result<Layout> {
        if boxes.is_empty() {
            let invalid = Invalid::new("boxes", "a layout needs at least one rank, got no boxes");
            return Err(Error::Layout(invalid.expected("1 or more").got(0)));
        }
        check_size(shape)?;
        for item in boxes.iter_mut().filter(|item| item.is_empty()) {
            *item = Box3::EMPTY;
        }
        let boxes = Boxes::from(boxes);
        check_tiling(shape, &boxes)?;
        Ok(Layout { shape, boxes, order })
    }

    /// The layout of boxes that tile the shape by construction; not checked.
    pub(crate) fn trusted(shape: [usize; 3], boxes: Vec<Box3>, order: Order) -> Layout {
        Layout { shape, boxes: boxes.into(), order }
    }

    /// Shape of the whole array, in elements.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The box of each rank.
    pub fn boxes(&self) -> &[Box3] {
        self.boxes.list()
    }

    /// Memory order of the axes.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The same boxes in another memory order.
    #[must_use]
    pub fn with_order(mut self, order: Order) -> Layout {
        self.order = order;
        self
    }

    /// Whether every non-empty box has whole lines along `axis`.
    pub fn is_whole(&self, axis: usize) -> bool {
        self.boxes().iter().all(|b| b.spans(axis, self.shape[axis]))
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.boxes().len()
    }

    /// The same ranks on an array whose `axis`, which is not split, has `n` elements.
    #[must_use]
    pub fn with_axis(&self, axis: usize, n: usize) -> Layout {
        if n == self.shape[axis] {
            return self.clone();
        }
        let mut shape = self.shape;
        shape[axis] = n;
        Layout { shape, ..self.map(|b| b.with_axis(axis, n)) }
    }

    /// The same ranks with every box, and the shape, mapped by `of`.
    pub(crate) fn map(&self, of: impl Fn(&Box3) -> Box3) -> Layout {
        let shape = of(&Box3::whole(self.shape)).hi;
        let boxes: Vec<Box3> = self.boxes().iter().map(of).collect();
        Layout { shape, boxes: boxes.into(), order: self.order }
    }

    /// Whether both layouts give every rank the same box.
    pub fn has_boxes_of(&self, other: &Layout) -> bool {
        self.boxes == other.boxes
    }

    /// The ranks whose boxes intersect `part`, ascending, and the intersections. Takes time in proportion to their
    /// number, not to the number of ranks.
    pub fn intersections(&self, part: &Box3) -> Vec<(usize, Box3)> {
        self.boxes.intersections(part)
    }

    /// Whether no box along `axis` meets a box of `other`, of the same shape, with another range there.
    pub(crate) fn keeps_axis(&self, other: &Layout, axis: usize) -> bool {
        let range = |part: &Box3| (part.lo[axis], part.hi[axis]);
        self.boxes.same_cuts(&other.boxes, axis).unwrap_or_else(|| {
            self.boxes().iter().all(|own| {
                let peers = other.intersections(own);
                peers.iter().all(|(peer, _)| range(&other.boxes()[*peer]) == range(own))
            })
        })
    }

    /// The elements that a rank sends to others, and the number of those others, if the array goes from this layout
    /// to another one of the same shape. What it receives is `to.sent(self, rank)`.
    pub fn sent(&self, to: &Layout, rank: usize) -> [usize; 2] {
        let own = &self.boxes()[rank];
        let kept = own.intersect(&to.boxes()[rank]).volume();
        // The boxes of a layout are disjoint and cover the shape.
        [own.volume() - kept, to.boxes.count(own) - usize::from(kept > 0)]
    }

    /// Elements of the largest box.
    pub fn largest(&self) -> usize {
        self.boxes().iter().map(Box3::volume).max().unwrap_or(0)
    }

    /// Elements that are contiguous in memory, for the largest box in a dense array: along the fastest axis, and on
    /// along the next ones as long as whole axes come before them.
    pub(crate) fn run(&self) -> usize {
        let largest = self.boxes().iter().max_by_key(|part| part.volume()).map_or([0; 3], Box3::shape);
        let mut run = 1;
        for axis in self.order().axes().into_iter().rev() {
            run *= largest[axis];
            if !self.is_whole(axis) {
                break;
            }
        }
        run
    }

    /// In how many parts each axis is split, if the boxes form a grid.
    pub fn parts(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            let full = self.boxes().iter().filter(|b| !b.is_empty());
            let mut lows: Vec<_> = full.map(|b| b.lo[axis]).collect();
            lows.sort_unstable();
            lows.dedup();
            lows.len().max(1)
        })
    }

    /// A short description of how the axes are split, such as `2x2x1`, or the number of boxes if they do not
    /// form a grid.
    pub fn grid_text(&self) -> String {
        let grid = self.parts();
        let non_empty = self.boxes().iter().filter(|b| !b.is_empty()).count();
        if grid.iter().product::<usize>() == non_empty.max(1) {
            format!("{}x{}x{}", grid[0], grid[1], grid[2])
        } else {
            format!("{non_empty} boxes")
        }
    }
}

/// Checks that the number of elements fits `usize`.
pub(super) fn check_size(shape: [usize; 3]) -> Result<()> {
    match shape.into_iter().try_fold(1, usize::checked_mul) {
        Some(_) => Ok(()),
        None => {
            let message = format!("the shape {shape:?} has more elements than can be addressed");
            Err(Error::Layout(Invalid::new("shape", message).got(format!("{shape:?}"))))
        }
    }
}

fn check_tiling(shape: [usize; 3], indexed: &Boxes) -> Result<()> {
    let (whole, boxes) = (Box3::whole(shape), indexed.list());
    for (rank, b) in boxes.iter().enumerate() {
        if b.intersect(&whole) != *b {
            let [x, y, z] = shape;
            let message = format!("the box {b} of rank {rank} is not inside the shape {x}x{y}x{z}");
            let invalid = Invalid::new("boxes", message).expected(format!("a box inside {whole}"));
            return Err(Error::Layout(invalid.got(b)));
        }
    }
    let covered: u128 = boxes.iter().map(|b| b.volume() as u128).sum();
    let fills = covered == whole.volume() as u128;
    if fills && boxes.iter().all(|b| indexed.intersections(b).len() <= 1) {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..boxes.len()).filter(|&rank| !boxes[rank].is_empty()).collect();
    order.sort_unstable_by_key(|&rank| boxes[rank].lo[0]);
    for (i, &rank) in order.iter().enumerate() {
        // Boxes are sorted by their start on axis 0: those that begin past the end of this one cannot overlap it.
        for &other in order[i + 1..].iter().take_while(|&&other| boxes[other].lo[0] < boxes[rank].hi[0]) {
            if !boxes[rank].intersect(&boxes[other]).is_empty() {
                let (one, two) = (rank.min(other), rank.max(other));
                let (a, b) = (boxes[one], boxes[two]);
                let message = format!("the boxes of ranks {one} and {two} overlap: {a} and {b}");
                let invalid = Invalid::new("boxes", message).expected("boxes without overlap");
                return Err(Error::Layout(invalid.got(format!("{a} and {b}"))));
            }
        }
    }
    let mut left = vec![whole];
    for b in boxes {
        let mut next = Vec::new();
        left.iter().for_each(|rest| rest.without(b, &mut next));
        left = next;
    }
    let hole = left.first().copied().unwrap_or(Box3::EMPTY);
    let message = format!("no rank of {} has the box {hole} of the shape {shape:?}", boxes.len());
    let invalid = Invalid::new("boxes", message).expected("boxes that cover the shape");
    Err(Error::Layout(invalid.got(format!("no box for {hole}"))))
}
