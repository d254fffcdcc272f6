//! The boxes of all ranks, and an index that finds those that intersect a box without a look at all of them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::box3::Box3;

/// One box per rank. Shared: a plan stores a layout in many places, and a rank knows the boxes of all ranks.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Vec<Box3>", into = "Vec<Box3>")]
pub(super) struct Boxes(Arc<Indexed>);

struct Indexed {
    list: Vec<Box3>,
    /// Made when it is first asked for.
    index: OnceLock<BoxIndex>,
}

impl Boxes {
    pub fn list(&self) -> &[Box3] {
        &self.0.list
    }

    fn index(&self) -> &BoxIndex {
        self.0.index.get_or_init(|| BoxIndex::new(&self.0.list))
    }

    /// The ranks whose boxes intersect `part`, ascending, and the intersections.
    pub fn intersections(&self, part: &Box3) -> Vec<(usize, Box3)> {
        let index = self.index();
        let both = |rank: usize| (rank, self.0.list[rank].intersect(part));
        if !index.is_grid || part.is_empty() {
            return index.near(part).into_iter().map(both).filter(|(_, both)| !both.is_empty()).collect();
        }
        // A cell of a grid is one box: no list of cells and ranks is needed, and the length is known. Most of the time of
        // planning for many ranks is spent here.
        let [x, y, z] = index.cells(part);
        let [_, ny, nz] = index.cuts.each_ref().map(Vec::len);
        let mut found = Vec::with_capacity(x.len() * y.len() * z.len());
        for row in x.flat_map(|x| y.clone().map(move |y| (x * ny + y) * nz)) {
            let ranks = &index.ranks[row + z.start..row + z.end];
            found.extend(ranks.iter().map(|&rank| both(rank)).filter(|(_, both)| !both.is_empty()));
        }
        if !found.is_sorted_by_key(|(rank, _)| *rank) {
            found.sort_unstable_by_key(|(rank, _)| *rank);
        }
        found
    }

    /// Whether the boxes of two arrays of one shape are cut at the same places along an axis; `None` if they do not form
    /// grids.
    pub fn same_cuts(&self, other: &Boxes, axis: usize) -> Option<bool> {
        let (one, two) = (self.index(), other.index());
        (one.is_grid && two.is_grid).then(|| one.cuts[axis] == two.cuts[axis])
    }

    /// The number of boxes that intersect `part`.
    pub fn count(&self, part: &Box3) -> usize {
        let index = self.index();
        match index.is_grid && !part.is_empty() {
            true => index.cells(part).iter().map(ExactSizeIterator::len).product(),
            false => self.intersections(part).len(),
        }
    }
}

impl From<Vec<Box3>> for Boxes {
    fn from(list: Vec<Box3>) -> Boxes {
        Boxes(Arc::new(Indexed { list, index: OnceLock::new() }))
    }
}

impl From<Boxes> for Vec<Box3> {
    fn from(boxes: Boxes) -> Vec<Box3> {
        boxes.list().to_vec()
    }
}

impl PartialEq for Boxes {
    fn eq(&self, other: &Boxes) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.list() == other.list()
    }
}

impl Eq for Boxes {}

impl Hash for Boxes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.list().hash(state);
    }
}

impl fmt::Debug for Boxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list().fmt(f)
    }
}

/// Cells of a grid over the array, each with the ranks whose boxes reach into it. Where the boxes form a grid the
/// cells are the boxes; otherwise there are about as many cells as boxes.
struct BoxIndex {
    /// First indices of the cells on each axis, ascending.
    cuts: [Vec<usize>; 3],
    /// The ranks of a cell are `ranks[starts[cell]..starts[cell + 1]]`; cells are in C order.
    starts: Vec<usize>,
    ranks: Vec<usize>,
    /// Whether every cell is a box.
    is_grid: bool,
}

impl BoxIndex {
    fn new(boxes: &[Box3]) -> BoxIndex {
        let full = || boxes.iter().enumerate().filter(|(_, part)| !part.is_empty());
        let count = full().count();
        let mut cuts: [Vec<usize>; 3] = std::array::from_fn(|axis| {
            let mut lows: Vec<usize> = full().map(|(_, part)| part.lo[axis]).collect();
            lows.sort_unstable();
            lows.dedup();
            lows
        });
        let cells =
            |cuts: &[Vec<usize>; 3]| cuts.iter().fold(1, |all: usize, cuts| all.saturating_mul(cuts.len()));
        let is_grid = cells(&cuts) == count;
        if is_grid {
            // No two boxes begin in one cell: each cell has the rank whose box does.
            let mut index = BoxIndex { starts: (0..=count).collect(), cuts, ranks: vec![0; count], is_grid };
            for (rank, part) in full() {
                let cell = index.first_cell(part);
                index.ranks[cell] = rank;
            }
            return index;
        }
        while cells(&cuts) > 2 * count + 8 {
            let [a, b, c] = cuts.each_ref().map(Vec::len);
            let longest = if a >= b && a >= c { 0 } else { 1 + usize::from(c > b) };
            let mut keep = false;
            cuts[longest].retain(|_| {
                keep = !keep;
                keep
            });
        }
        let mut index = BoxIndex { starts: vec![0; cells(&cuts) + 1], cuts, ranks: Vec::new(), is_grid };
        for (_, part) in full() {
            index.cell_numbers(part).iter().for_each(|&cell| index.starts[cell + 1] += 1);
        }
        for cell in 1..index.starts.len() {
            index.starts[cell] += index.starts[cell - 1];
        }
        let mut next = index.starts.clone();
        index.ranks = vec![0; next[next.len() - 1]];
        for (rank, part) in full() {
            for cell in index.cell_numbers(part) {
                index.ranks[next[cell]] = rank;
                next[cell] += 1;
            }
        }
        index
    }

    /// The range of cells on each axis that a box reaches into.
    fn cells(&self, part: &Box3) -> [std::ops::Range<usize>; 3] {
        std::array::from_fn(|axis| {
            let cuts = &self.cuts[axis];
            let first = cuts.partition_point(|&cut| cut <= part.lo[axis]).saturating_sub(1);
            first..cuts.partition_point(|&cut| cut < part.hi[axis]).max(first)
        })
    }

    /// The number of the cell in which a box begins.
    fn first_cell(&self, part: &Box3) -> usize {
        (0..3).fold(0, |cell, axis| {
            let cuts = &self.cuts[axis];
            cell * cuts.len() + cuts.partition_point(|&cut| cut <= part.lo[axis]).saturating_sub(1)
        })
    }

    fn cell_numbers(&self, part: &Box3) -> Vec<usize> {
        let [x, y, z] = self.cells(part);
        let [_, ny, nz] = self.cuts.each_ref().map(Vec::len);
        let mut cells = Vec::with_capacity(x.len() * y.len() * z.len());
        for row in x.flat_map(|x| y.clone().map(move |y| (x * ny + y) * nz)) {
            cells.extend(z.clone().map(|z| row + z));
        }
        cells
    }

    /// The ranks with boxes in the cells that a box reaches into, ascending.
    fn near(&self, part: &Box3) -> Vec<usize> {
        if part.is_empty() {
            return Vec::new();
        }
        let mut ranks = Vec::new();
        for cell in self.cell_numbers(part) {
            ranks.extend_from_slice(&self.ranks[self.starts[cell]..self.starts[cell + 1]]);
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % below
    }

    /// Boxes by repeated cuts at random places; some are empty.
    fn bisected(state: &mut u64, shape: [usize; 3], count: usize) -> Vec<Box3> {
        let mut boxes = vec![Box3::whole(shape)];
        while boxes.len() < count {
            let at = random(state, boxes.len());
            let (part, axis) = (boxes[at], random(state, 3));
            if part.shape()[axis] < 2 {
                boxes.push(Box3::EMPTY);
                continue;
            }
            let cut = part.lo[axis] + 1 + random(state, part.shape()[axis] - 1);
            let mut other = part;
            (boxes[at].hi[axis], other.lo[axis]) = (cut, cut);
            boxes.push(other);
        }
        boxes
    }

    /// The index finds what a look at every box finds, for grids and for irregular boxes.
    #[test]
    fn the_index_finds_every_intersection() {
        let mut state = 1;
        for case in 0..200 {
            let shape = std::array::from_fn(|_| 1 + random(&mut state, 40));
            let count = 1 + random(&mut state, 60);
            let list = match case % 3 {
                0 => super::super::grid::grid_boxes(shape, [1 + count / 8, 2, 3], (1 + count / 8) * 6 + 2),
                _ => bisected(&mut state, shape, count),
            };
            // Ranks of a grid need not be in its order.
            let list: Vec<Box3> = if case % 2 == 0 { list } else { list.into_iter().rev().collect() };
            let boxes = Boxes::from(list.clone());
            for _ in 0..30 {
                let lo: [usize; 3] = std::array::from_fn(|a| random(&mut state, shape[a]));
                let hi = std::array::from_fn(|a| (lo[a] + random(&mut state, 12)).min(shape[a]));
                let part = Box3::new(lo, hi);
                let all = list.iter().enumerate().map(|(rank, other)| (rank, other.intersect(&part)));
                let expected: Vec<_> = all.filter(|(_, both)| !both.is_empty()).collect();
                assert_eq!(boxes.count(&part), expected.len(), "{list:?}, {part}");
                assert_eq!(boxes.intersections(&part), expected, "{list:?}, {part}");
            }
        }
    }

    /// Cuts are the same where no box meets one with another range along the axis.
    #[test]
    fn cuts_of_grids_are_compared() {
        let mut state = 3;
        let mut seen = [false; 2];
        for _ in 0..100 {
            let shape = std::array::from_fn(|_| 1 + random(&mut state, 20));
            let [one, two] = [0; 2].map(|_| {
                let grid = std::array::from_fn(|_| 1 + random(&mut state, 4));
                Boxes::from(super::super::grid::grid_boxes(shape, grid, 70))
            });
            for axis in 0..3 {
                let range = |part: &Box3| (part.lo[axis], part.hi[axis]);
                let same = one.list().iter().all(|own| {
                    two.intersections(own).iter().all(|(peer, _)| range(&two.list()[*peer]) == range(own))
                });
                assert_eq!(one.same_cuts(&two, axis), Some(same), "{one:?} {two:?} {axis}");
                seen[usize::from(same)] = true;
            }
        }
        assert_eq!(seen, [true; 2]);
        let odd = bisected(&mut state, [30; 3], 29).into();
        assert_eq!(Boxes::from(vec![Box3::whole([30; 3])]).same_cuts(&odd, 0), None);
    }

    /// The index of irregular boxes has about as many entries as there are boxes.
    #[test]
    fn the_index_stays_small() {
        let mut state = 7;
        for boxes in [
            bisected(&mut state, [4096; 3], 24_576),
            super::super::grid::grid_boxes([4096; 3], [128, 1, 192], 24_576),
        ] {
            let index = BoxIndex::new(&boxes);
            assert!(index.starts.len() <= 2 * boxes.len() + 9 && index.ranks.len() < 16 * boxes.len());
        }
    }
}
