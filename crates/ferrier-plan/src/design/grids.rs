//! Layouts of rank grids, which all searches of a design share: with many ranks, making them takes longer than comparing
//! them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::price::busiest;
use crate::choice::{Choice, Decomposition};
use crate::layout::{Layout, Order, factor_pairs, grid_boxes, largest_box};

/// Ranks of which not all grids are tried.
const MANY: usize = 64;

/// The layout of a grid of ranks.
#[derive(Clone)]
pub(super) struct GridLayout {
    pub layout: Layout,
    /// A rank with the largest box.
    pub busiest: usize,
    /// Whether ranks are in column-major order of the grid.
    pub transposed: bool,
    /// Whether ranks are in the order of their nodes and sockets.
    pub grouped: bool,
}

/// Grids by the shape of the array, the number of ranks and the axis that is whole.
type Known = RefCell<HashMap<([usize; 3], usize, usize), Rc<[GridLayout]>>>;

/// The grids that a choice allows.
pub(super) struct GridLayouts<'a> {
    pub choice: &'a Choice,
    /// Number of ranks that hold data.
    pub inner: usize,
    pub order: Order,
    /// In how many parts the axes of input and output are split.
    pub parts: Vec<usize>,
    /// The ranks in the order of their nodes and sockets, where that is not their own order.
    pub groups: Option<Vec<usize>>,
    pub known: Known,
}

impl GridLayouts<'_> {
    /// Grids of ranks in which `axis` is whole and whose largest boxes are at most twice as large as need be.
    pub fn of(&self, shape: [usize; 3], ranks: usize, axis: usize) -> Rc<[GridLayout]> {
        let key = (shape, ranks, axis);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let grids = self.grids(axis);
        let smallest = grids.iter().map(|grid| largest_box(shape, *grid)).min().unwrap_or(0);
        let even = grids.into_iter().filter(|grid| largest_box(shape, *grid) <= 2 * smallest);
        let made: Rc<[GridLayout]> = even.flat_map(|grid| self.layouts(shape, grid, ranks)).collect();
        self.known.borrow_mut().insert(key, made.clone());
        made
    }

    fn grids(&self, axis: usize) -> Vec<[usize; 3]> {
        let others: Vec<usize> = (0..3).filter(|&a| a != axis).collect();
        let pairs: Vec<(usize, usize)> = factor_pairs(self.inner).collect();
        let ratio = |(p, q): (usize, usize)| p.max(q) / p.min(q);
        let squarest = pairs.iter().copied().filter(|&(p, q)| p > 1 && q > 1).map(ratio).min().unwrap_or(1);
        // Whether a grid of many ranks is worth a look: it is about as square as one can be, a slab, or has as many rows
        // or columns as the input or the output.
        let is_even = |(p, q): (usize, usize)| {
            self.inner <= MANY
                || [p, q].iter().any(|count| *count == 1 || self.parts.contains(count))
                || ratio((p, q)) <= 16 * squarest
        };
        let allowed = |&(p, q): &(usize, usize)| {
            let is_slab = p == 1 || q == 1;
            let fits = match self.choice.decomposition {
                None => true,
                Some(Decomposition::Slab) => is_slab,
                Some(Decomposition::Pencil) => !is_slab || pairs.len() <= 2,
            };
            fits && self.choice.grid.map_or(is_even((p, q)), |grid| grid == [p, q])
        };
        let grid = |&(p, q): &(usize, usize)| {
            let mut grid = [1; 3];
            (grid[others[0]], grid[others[1]]) = (p, q);
            grid
        };
        pairs.iter().filter(|pair| allowed(pair)).map(grid).collect()
    }

    /// A grid in both orders of its places: in column-major order more data may stay on its rank. Ranks take the places in
    /// groups that are near to each other, so that rows of a grid are inside a socket or a node, and in their own order.
    fn layouts(&self, shape: [usize; 3], grid: [usize; 3], ranks: usize) -> Vec<GridLayout> {
        let mut split = grid.into_iter().filter(|&count| count > 1);
        let boxes = grid_boxes(shape, grid, ranks);
        let mut places = Vec::new();
        if let (Some(p), Some(q)) = (split.next(), split.next()) {
            let mut transposed = boxes.clone();
            (0..p * q).for_each(|rank| transposed[rank] = boxes[rank % p * q + rank / p]);
            places.push((transposed, true));
        }
        places.push((boxes, false));
        let mut made = Vec::new();
        for groups in self.groups.as_ref().map(Some).into_iter().chain([None]) {
            for (places, transposed) in &places {
                let mut boxes = places.clone();
                for (place, &rank) in groups.into_iter().flatten().enumerate() {
                    boxes[rank] = places[place];
                }
                let layout = Layout::trusted(shape, boxes, self.order);
                let (busiest, transposed, grouped) = (busiest(&layout), *transposed, groups.is_some());
                made.push(GridLayout { layout, busiest, transposed, grouped });
            }
        }
        made
    }
}
