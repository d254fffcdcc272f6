//! Which cells are the ghost cells of which: the box of a rank with its ghost cells, intersected with the boxes of all
//! ranks and their periodic images.

use std::sync::Arc;

use super::ghosts::PaddedLayout;
use crate::Box3;
use crate::copies::{BoxCopy, Pattern, Place, Route, collect_routes};

/// A box of global indices, which may lie outside the array.
type SignedBox = [[isize; 2]; 3];

/// A part of a box that lies in one periodic image of the array: its indices in the array, and the distance to them.
struct Image {
    part: Box3,
    shift: [isize; 3],
}

impl PaddedLayout {
    /// The box of a rank, each side moved by so much.
    fn grown(&self, rank: usize, by: [[usize; 2]; 3]) -> SignedBox {
        let own = self.own(rank);
        std::array::from_fn(|axis| {
            [own.lo[axis] as isize - by[axis][0] as isize, own.hi[axis] as isize + by[axis][1] as isize]
        })
    }

    /// Boxes that hold the ghost cells of a rank; each cell is in one of them.
    fn ghost_boxes(&self, rank: usize) -> Vec<SignedBox> {
        if !self.faces_only {
            return vec![self.grown(rank, self.widths)];
        }
        let own = self.grown(rank, [[0; 2]; 3]);
        let face = |axis: usize, high: bool| {
            let (mut face, [low_width, high_width]) = (own, self.widths[axis].map(|width| width as isize));
            let [lo, hi] = own[axis];
            face[axis] = if high { [hi, hi + high_width] } else { [lo - low_width, lo] };
            face
        };
        (0..3).flat_map(|axis| [face(axis, false), face(axis, true)]).collect()
    }

    /// The parts of a box that lie in the array or its periodic images.
    fn images(&self, of: SignedBox) -> Vec<Image> {
        let shape = self.layout.shape();
        // Ranges of indices in the array, with the distance to them.
        let ranges: [Vec<([usize; 2], isize)>; 3] = std::array::from_fn(|axis| {
            let (n, [lo, hi]) = (shape[axis] as isize, of[axis]);
            let numbers = if self.periodic[axis] { lo.div_euclid(n)..=(hi - 1).div_euclid(n) } else { 0..=0 };
            let range = |number: isize| {
                let [lo, hi] = [lo - number * n, hi - number * n].map(|at| at.clamp(0, n) as usize);
                ([lo, hi], number * n)
            };
            numbers.map(range).filter(|([lo, hi], _)| lo < hi).collect()
        });
        let mut images = Vec::new();
        for (x, i) in &ranges[0] {
            for (y, j) in &ranges[1] {
                for (z, k) in &ranges[2] {
                    let part = Box3::new([x[0], y[0], z[0]], [x[1], y[1], z[1]]);
                    images.push(Image { part, shift: [*i, *j, *k] });
                }
            }
        }
        images
    }

    /// The ranks that may have ghost cells in the box of a rank, ascending.
    fn readers(&self, rank: usize) -> Vec<usize> {
        // A box below this one reaches into it by its width on the high side.
        let reach = self.widths.map(|[low, high]| [high, low]);
        let images = self.images(self.grown(rank, reach));
        let mut ranks: Vec<usize> = images
            .iter()
            .flat_map(|image| self.layout.intersections(&image.part))
            .map(|(rank, _)| rank)
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Where a box that begins at a global index lies in a rank's array.
    fn place(&self, rank: usize, lo: [isize; 3]) -> Place {
        let (own, strides) = (self.own(rank), self.strides(rank));
        let at = |axis: usize| (lo[axis] - own.lo[axis] as isize + self.widths[axis][0] as isize) as usize;
        Place { offset: (0..3).map(|axis| at(axis) * strides[axis]).sum(), strides }
    }
}

/// Ghost cells are copies of the cells of their owners.
impl Pattern for PaddedLayout {
    fn ranks(&self) -> usize {
        self.layout.ranks()
    }

    fn incoming(&self, rank: usize) -> Vec<Route> {
        if self.own(rank).is_empty() {
            return Vec::new();
        }
        let mut copies = Vec::new();
        for image in self.ghost_boxes(rank).into_iter().flat_map(|ghosts| self.images(ghosts)) {
            for (peer, part) in self.layout.intersections(&image.part) {
                // Cells of the box itself are no ghost cells.
                if peer == rank && image.shift == [0; 3] {
                    continue;
                }
                let lo = part.lo.map(|at| at as isize);
                let from = self.place(peer, lo);
                let to = self.place(rank, std::array::from_fn(|axis| lo[axis] + image.shift[axis]));
                copies.push((peer, BoxCopy { shape: part.shape(), from, to }));
            }
        }
        collect_routes(copies)
    }

    fn outgoing(&self, rank: usize) -> Vec<Route> {
        if self.own(rank).is_empty() {
            return Vec::new();
        }
        let to = |reader: usize| {
            let route = self.incoming(reader).into_iter().find(|route| route.peer == rank)?;
            Some(Route { peer: reader, ..route })
        };
        self.readers(rank).into_iter().filter_map(to).collect()
    }

    /// By the distance of the boxes: in a grid of equal boxes every rank sends in the same direction at once. Directions whose
    /// rows are short, along the fastest axis, are neither first nor last: nothing is on its way while the first message is packed
    /// and the last one unpacked.
    fn step(&self, from: usize, to: usize) -> usize {
        let (shape, [from, to]) = (self.layout.shape(), [from, to].map(|rank| self.own(rank).lo));
        let [slow, middle, fast] = self.order().axes();
        [middle, fast, slow].into_iter().fold(0, |step, axis| {
            let n = shape[axis];
            step * n + (to[axis] + n - from[axis]) % n
        })
    }
}

/// The other way: the cells of an owner get what is in the ghost cells of others.
pub(super) struct Reversed(pub Arc<PaddedLayout>);

fn reversed(routes: Vec<Route>) -> Vec<Route> {
    let reverse = |copy: BoxCopy| BoxCopy { from: copy.to, to: copy.from, ..copy };
    let route = |Route { peer, copies }| Route { peer, copies: copies.into_iter().map(reverse).collect() };
    routes.into_iter().map(route).collect()
}

impl Pattern for Reversed {
    fn ranks(&self) -> usize {
        self.0.ranks()
    }

    fn incoming(&self, rank: usize) -> Vec<Route> {
        reversed(self.0.outgoing(rank))
    }

    fn outgoing(&self, rank: usize) -> Vec<Route> {
        reversed(self.0.incoming(rank))
    }
}
