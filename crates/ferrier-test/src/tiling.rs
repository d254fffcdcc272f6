//! Random boxes that tile a shape, one per rank.

use crate::Rng;

/// A half-open box: `(lo, hi)`.
pub type Tile = ([usize; 3], [usize; 3]);

/// The box of a rank without elements.
pub const EMPTY: Tile = ([0; 3], [0; 3]);

/// `ranks` boxes that tile `shape`, in random order. They are cut recursively at
/// random places, so that they form no grid. About one in eight is empty, and so
/// are all for which no index is left.
pub fn tiles(shape: [usize; 3], ranks: usize, rng: &mut Rng) -> Vec<Tile> {
    let mut boxes = Vec::with_capacity(ranks);
    cut(([0; 3], shape), ranks, rng, &mut boxes);
    boxes.resize(ranks, EMPTY);
    rng.shuffle(&mut boxes);
    boxes
}

fn cut(tile: Tile, ranks: usize, rng: &mut Rng, boxes: &mut Vec<Tile>) {
    let long: Vec<usize> = (0..3).filter(|&d| tile.1[d] - tile.0[d] > 1).collect();
    if ranks == 1 || long.is_empty() {
        boxes.push(tile);
    } else if rng.below(8) == 0 {
        cut(tile, ranks - 1, rng, boxes);
    } else {
        let axis = *rng.pick(&long);
        let at = tile.0[axis] + 1 + rng.below(tile.1[axis] - tile.0[axis] - 1);
        let left = 1 + rng.below(ranks - 1);
        let (mut low, mut high) = (tile, tile);
        low.1[axis] = at;
        high.0[axis] = at;
        cut(low, left, rng, boxes);
        cut(high, ranks - left, rng, boxes);
    }
}

/// The offset of a global index in the memory of a box whose axes are stored in
/// `order`, slowest first.
pub fn offset(tile: Tile, order: [usize; 3], at: [usize; 3]) -> usize {
    order.iter().fold(0, |sum, &d| sum * (tile.1[d] - tile.0[d]) + (at[d] - tile.0[d]))
}

/// All global indices of a box in the order of its memory.
pub fn walk(tile: Tile, order: [usize; 3]) -> impl Iterator<Item = [usize; 3]> + Clone {
    let shape = order.map(|d| tile.1[d].saturating_sub(tile.0[d]));
    crate::dft::indices(shape).map(move |at| {
        let mut global = [0; 3];
        for (place, &d) in order.iter().enumerate() {
            global[d] = tile.0[d] + at[place];
        }
        global
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_in_one_box() {
        let mut rng = Rng::new(5);
        let mut empty = 0;
        for shape in [[5, 6, 7], [1, 1, 3], [16, 1, 15], [9, 9, 9]] {
            for ranks in 1..=12 {
                let boxes = tiles(shape, ranks, &mut rng);
                assert_eq!(boxes.len(), ranks);
                for at in crate::dft::indices(shape) {
                    let inside = |b: &&Tile| (0..3).all(|d| (b.0[d]..b.1[d]).contains(&at[d]));
                    assert_eq!(boxes.iter().filter(inside).count(), 1, "{shape:?} {ranks} {at:?}");
                }
                empty += boxes.iter().filter(|b| **b == EMPTY).count();
            }
        }
        assert!(empty > 20);
    }

    #[test]
    fn walk_follows_offsets() {
        let tile = ([1, 2, 3], [4, 4, 8]);
        for order in crate::cases::ORDERS {
            for (place, at) in walk(tile, order).enumerate() {
                assert_eq!(offset(tile, order, at), place);
            }
            assert_eq!(walk(tile, order).count(), 30);
        }
        assert_eq!(walk(EMPTY, [0, 1, 2]).count(), 0);
    }
}
