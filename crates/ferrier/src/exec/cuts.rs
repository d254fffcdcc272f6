//! Where pieces of memory cut a domain.

use crate::Box3;
use ferrier_plan::geometry::Piece;

/// Where the pieces cut the domain along an axis, both ends included.
pub(crate) fn cuts<'a>(domain: &Box3, axis: usize, pieces: impl Iterator<Item = &'a Piece>) -> Vec<usize> {
    let mut cuts: Vec<usize> =
        pieces.flat_map(|piece| [piece.region.lo[axis], piece.region.hi[axis]]).collect();
    cuts.extend([domain.lo[axis], domain.hi[axis]]);
    cuts.retain(|&cut| domain.lo[axis] <= cut && cut <= domain.hi[axis]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}
