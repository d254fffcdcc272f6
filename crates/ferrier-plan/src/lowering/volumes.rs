//! Bytes between ranks in a tile of a reshape.

use crate::geometry::width;
use crate::messages::{Encoding, Volumes};
use crate::schedule::Reshape;
use crate::tiles::Tiles;

/// The bytes between `rank` and the others in a tile of a reshape; upper bounds for encoded segments.
/// `scalar_bytes` is the size of a scalar.
pub fn volumes(
    reshape: &Reshape,
    (cut, tile): (&Tiles, usize),
    rank: usize,
    scalar_bytes: usize,
    encoding: Option<&Encoding>,
) -> Volumes {
    let element_scalars = width(reshape.real) * cut.arrays(tile).len();
    let (from, to) = (reshape.from.boxes(), reshape.to.boxes());
    let ranks = from.len();
    let table = |entry: &dyn Fn(usize, usize) -> usize| -> Vec<Vec<usize>> {
        (0..ranks).map(|source| (0..ranks).map(|target| entry(source, target)).collect()).collect()
    };
    let scalars = table(&|source, target| match source == target {
        true => 0,
        false => cut.between(&from[source], &to[target], tile).volume() * element_scalars,
    });
    let pairs = table(&|source, target| match encoding {
        Some(encoding) if encoding.is_encoded(source, target) => {
            encoding.segment_bytes(scalars[source][target])
        }
        _ => scalars[source][target] * scalar_bytes,
    });
    Volumes {
        to: pairs[rank].clone(),
        from: pairs.iter().map(|row| row[rank]).collect(),
        largest: pairs.iter().flatten().copied().max().unwrap_or(0),
        pairs,
        reshape: 0,
        encoded: encoding.map(|encoding| encoding.chunks(&scalars)),
        via_host: false,
    }
}
