//! Shapes of chunks, and layouts whose boxes are unions of whole chunks.

use super::super::options::WriteOptions;
use crate::Box3;

/// Lengths of chunks and shards of an array of this shape, one per axis; no shards: `None`.
///
/// # Errors
/// Lists of another length than the shape; zeros; shards that are not multiples of chunks.
pub fn chunk_shapes(
    options: &WriteOptions,
    shape: &[usize],
) -> Result<(Vec<usize>, Option<Vec<usize>>), String> {
    let lengths = |what: &str, list: &[usize]| match list {
        _ if list.contains(&0) => Err(format!("a {what} has at least 1 element along every axis")),
        [one] => Ok(vec![*one; shape.len()]),
        list if list.len() == shape.len() => Ok(list.to_vec()),
        list => Err(format!("{} lengths of {what}s, but the array has {} axes", list.len(), shape.len())),
    };
    let chunks = match &options.chunks[..] {
        [] => default_chunk(shape),
        list => lengths("chunk", list)?,
    };
    if options.shards.is_empty() {
        return Ok((chunks, None));
    }
    let shards = lengths("shard", &options.shards)?;
    if let Some(axis) = (0..shape.len()).find(|&axis| !shards[axis].is_multiple_of(chunks[axis])) {
        return Err(format!(
            "a shard of {} elements along axis {axis} is not a multiple of a chunk of {}",
            shards[axis], chunks[axis]
        ));
    }
    Ok((chunks, Some(shards)))
}

/// About 2^18 elements: 1 to 4 MiB. An axis of a batch is split into single arrays.
fn default_chunk(shape: &[usize]) -> Vec<usize> {
    let mut chunk = shape.to_vec();
    if let [first, _, _, _] = &mut chunk[..] {
        *first = 1;
    }
    while chunk.iter().fold(1usize, |product, &n| product.saturating_mul(n)) > 1 << 18 {
        if let Some(longest) = chunk.iter_mut().max() {
            // The next smaller power of two.
            *longest = longest.next_power_of_two() / 2;
        }
    }
    chunk
}

/// Boxes that tile an array of this shape, one per rank: each a union of whole chunks, so that a chunk is written by
/// one rank. As equal as chunks allow; ranks that get none are the last ones.
pub fn aligned_boxes(shape: [usize; 3], chunk: [usize; 3], ranks: usize) -> Vec<Box3> {
    let chunks: [usize; 3] = std::array::from_fn(|axis| shape[axis].div_ceil(chunk[axis]));
    // The grid of ranks whose largest box is the smallest; of equal ones the one that splits slower axes more.
    let mut best = (usize::MAX, [1; 3]);
    for first in (1..=ranks.min(chunks[0])).rev() {
        for second in (1..=(ranks / first).min(chunks[1])).rev() {
            let grid = [first, second, (ranks / first / second).min(chunks[2])];
            let largest = (0..3).map(|axis| chunks[axis].div_ceil(grid[axis])).product();
            if largest < best.0 {
                best = (largest, grid);
            }
        }
    }
    let grid = best.1;
    let bound = |axis: usize, part: usize| (part * chunks[axis] / grid[axis] * chunk[axis]).min(shape[axis]);
    let part = |rank: usize| {
        if rank >= grid.iter().product() {
            return Box3::EMPTY;
        }
        let at = [rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]];
        let corner = |step: usize| std::array::from_fn(|axis| bound(axis, at[axis] + step));
        Box3::new(corner(0), corner(1))
    };
    (0..ranks).map(part).collect()
}

/// Is every box a union of whole chunks?
pub fn is_aligned(boxes: &[Box3], shape: [usize; 3], chunk: [usize; 3]) -> bool {
    let fits = |part: &Box3, axis: usize| {
        part.lo[axis].is_multiple_of(chunk[axis])
            && (part.hi[axis].is_multiple_of(chunk[axis]) || part.hi[axis] == shape[axis])
    };
    boxes.iter().all(|part| part.is_empty() || (0..3).all(|axis| fits(part, axis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Order};

    #[test]
    fn chunks_have_a_size_that_suits_files() {
        assert_eq!(default_chunk(&[256, 256, 256]), [64, 64, 64]);
        assert_eq!(default_chunk(&[8, 5, 6]), [8, 5, 6]);
        assert_eq!(default_chunk(&[4, 100, 100, 100]), [1, 64, 64, 64]);
        assert_eq!(default_chunk(&[4096, 4096]), [512, 512]);
        assert_eq!(default_chunk(&[1 << 40]), [1 << 18]);
        assert!(default_chunk(&[513, 512, 257]).iter().product::<usize>() <= 1 << 18);
    }

    #[test]
    fn chunks_and_shards_are_checked() {
        let shapes = |chunks: &[usize], shards: &[usize]| {
            let options =
                WriteOptions { chunks: chunks.to_vec(), shards: shards.to_vec(), ..WriteOptions::default() };
            chunk_shapes(&options, &[10, 20])
        };
        assert_eq!(shapes(&[4], &[8, 12]).unwrap(), (vec![4, 4], Some(vec![8, 12])));
        assert!(shapes(&[4, 4, 4], &[]).unwrap_err().contains("3 lengths of chunks"));
        assert!(shapes(&[0], &[]).unwrap_err().contains("at least 1"));
        assert!(shapes(&[4], &[6]).unwrap_err().contains("not a multiple"));
    }

    #[test]
    fn aligned_boxes_tile_and_have_whole_chunks() {
        for shape in [[10, 20, 30], [1, 1, 7], [64, 64, 64], [5, 1, 9]] {
            for chunk in [[4, 4, 4], [1, 20, 30], [100, 100, 100], [3, 1, 2]] {
                for ranks in [1, 2, 3, 7, 8, 100] {
                    let boxes = aligned_boxes(shape, chunk, ranks);
                    assert!(is_aligned(&boxes, shape, chunk), "{boxes:?}");
                    Layout::from_boxes(shape, boxes, Order::C).unwrap();
                }
            }
        }
        let boxes = aligned_boxes([64; 3], [16; 3], 4);
        assert!(boxes.iter().all(|part| part.volume() == 64 * 64 * 16), "{boxes:?}");
        assert!(!is_aligned(&[Box3::new([0; 3], [3, 8, 8])], [8; 3], [2; 3]));
    }
}
