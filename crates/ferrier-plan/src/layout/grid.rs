//! Grids of ranks.

use super::box3::Box3;

/// First index of part `i` of `n` indices cut into `parts`; part lengths differ by at most one.
fn cut(n: usize, i: usize, parts: usize) -> usize {
    (n as u128 * i as u128 / parts as u128) as usize
}

/// The boxes of a grid of ranks, in row-major order of the grid: `ranks` boxes, those beyond the grid empty.
pub(crate) fn grid_boxes(shape: [usize; 3], grid: [usize; 3], ranks: usize) -> Vec<Box3> {
    let in_grid = grid.iter().product::<usize>();
    let cuts: [Vec<usize>; 3] =
        std::array::from_fn(|a| (0..=grid[a]).map(|at| cut(shape[a], at, grid[a])).collect());
    (0..ranks)
        .map(|rank| {
            if rank >= in_grid {
                return Box3::EMPTY;
            }
            let at = [rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]];
            let b = Box3::new(
                std::array::from_fn(|a| cuts[a][at[a]]),
                std::array::from_fn(|a| cuts[a][at[a] + 1]),
            );
            if b.is_empty() { Box3::EMPTY } else { b }
        })
        .collect()
}

/// Elements of the largest box of a grid.
pub(crate) fn largest_box(shape: [usize; 3], grid: [usize; 3]) -> usize {
    (0..3).map(|axis| shape[axis].div_ceil(grid[axis])).product()
}

/// All `(p, q)` with `p * q == n`, `p` ascending.
pub fn factor_pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=n).filter(move |p| n.is_multiple_of(*p)).map(move |p| (p, n / p))
}

/// All grids of `ranks` ranks that do not split `whole` axes.
fn grids(ranks: usize, whole: [bool; 3]) -> Vec<[usize; 3]> {
    let mut found = Vec::new();
    for (p, rest) in factor_pairs(ranks) {
        for (q, r) in factor_pairs(rest) {
            let grid = [p, q, r];
            if (0..3).all(|a| !whole[a] || grid[a] == 1) {
                found.push(grid);
            }
        }
    }
    found
}

/// Among the grids whose largest box exceeds the smallest possible one by at most 10 %, the grid whose boxes have
/// the smallest surface (fewer messages and bytes in any reshape), with the slowest axes split first.
pub(super) fn best_grid(shape: [usize; 3], ranks: usize, whole: [bool; 3]) -> [usize; 3] {
    let lengths =
        |grid: &[usize; 3]| -> [u128; 3] { std::array::from_fn(|a| shape[a].div_ceil(grid[a]) as u128) };
    let volume = |grid: &[usize; 3]| lengths(grid).iter().product::<u128>();
    let surface = |grid: &[usize; 3]| {
        let [x, y, z] = lengths(grid);
        (x * y + y * z + x * z, grid[2], grid[1])
    };
    let grids = grids(ranks, whole);
    let least = grids.iter().map(volume).min().unwrap_or(0);
    let even = grids.iter().filter(|grid| volume(grid) * 10 <= least * 11);
    even.min_by_key(|grid| surface(grid)).copied().unwrap_or([ranks, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_even_and_complete() {
        for n in 0..20 {
            for parts in 1..9 {
                let sizes: Vec<_> = (0..parts).map(|i| cut(n, i + 1, parts) - cut(n, i, parts)).collect();
                assert_eq!(sizes.iter().sum::<usize>(), n);
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            }
        }
        // Intermediate values do not overflow.
        assert_eq!(cut(usize::MAX, 3, 3), usize::MAX);
    }

    #[test]
    fn grids_prefer_balance_over_squareness() {
        assert_eq!(best_grid([64, 64, 64], 4, [false, false, true]), [2, 2, 1]);
        assert_eq!(best_grid([64, 64, 64], 8, [false; 3]), [2, 2, 2]);
        // A split of 5 rows in two gives a rank 3/5 of the data: the long axis is split instead.
        assert_eq!(best_grid([5, 64, 64], 4, [false, false, true]), [1, 4, 1]);
        assert_eq!(best_grid([12, 12, 12], 13, [false, false, true]).iter().product::<usize>(), 13);
    }
}
