//! The two sides of the lines of a pass: where they are loaded from and stored to.

use std::sync::Arc;

use super::sparse_lines::SparseLines;
use crate::Box3;
use ferrier_plan::geometry::{Axes, Piece, width};
use ferrier_plan::modes::{IndexRun, Ragged, total_len};
use ferrier_plan::schedule::AxisTransform;

/// The source or target of lines: pieces, and the elements of a line that they hold.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub pieces: &'a [Piece],
    pub runs: &'a [IndexRun],
    /// The elements of each line, where they differ from line to line.
    pub ragged: Option<&'a Arc<Ragged>>,
    /// Scalars of an element.
    pub width: usize,
}

impl<'a> Side<'a> {
    /// Pieces that hold the same elements of every line.
    pub fn even(pieces: &'a [Piece], runs: &'a [IndexRun], width: usize) -> Side<'a> {
        Side { pieces, runs, ragged: None, width }
    }

    /// The two sides of a transform.
    pub fn of(transform: &'a AxisTransform, from: &'a [Piece], to: &'a [Piece]) -> [Side<'a>; 2] {
        let AxisTransform { ragged_from, ragged_to, .. } = transform;
        let (width_in, width_out) = (width(transform.real_before), width(transform.real));
        [
            Side { pieces: from, runs: &transform.from, ragged: ragged_from.as_ref(), width: width_in },
            Side { pieces: to, runs: &transform.to, ragged: ragged_to.as_ref(), width: width_out },
        ]
    }

    pub fn sparse(&self, axes: Axes, first_array: usize) -> Option<SparseLines> {
        let of = |ragged: &Arc<Ragged>| {
            SparseLines::new((axes, first_array), self.pieces, self.runs, ragged.clone(), self.width)
        };
        self.ragged.map(of)
    }

    /// Whether pieces hold a few contiguous elements of each line: then neighbouring lines are close in memory.
    pub fn is_scattered(&self, along: usize, scalar_bytes: usize) -> bool {
        let few = |piece: &Piece| {
            piece.is_fastest(along)
                && piece.region.shape()[along] * self.width * scalar_bytes < 256
                && piece.region.shape()[along] < total_len(self.runs)
        };
        !self.smooth().is_empty() && self.smooth().iter().all(few)
    }

    /// Whether neighbours in memory are elements of different arrays of the batch.
    pub fn is_interleaved(&self) -> bool {
        let between = |piece: &Piece| {
            let shape = piece.region.shape();
            (0..3).all(|axis| shape[axis] == 1 || piece.batch < piece.strides[axis])
        };
        // Planes in scratch have no stride of the batch.
        self.pieces.iter().any(|piece| piece.batch > 0 && between(piece))
    }

    /// The pieces that are accessed by strips: none where lines differ.
    pub fn smooth(&self) -> &'a [Piece] {
        if self.ragged.is_some() { &[] } else { self.pieces }
    }
}

/// Lines whose planes are contiguous in memory, as one plane.
pub(super) struct Flat {
    pub domain: Box3,
    pub from: Vec<Piece>,
    pub to: Vec<Piece>,
}

impl Flat {
    /// None where there are gaps between planes, or a piece holds part of a plane.
    pub fn new(axes: Axes, domain: &Box3, from: Side<'_>, to: Side<'_>) -> Option<Flat> {
        let Axes { lanes, planes, .. } = axes;
        let (low, width) = (domain.lo[planes], domain.shape()[lanes]);
        let flat = |region: &Box3| {
            let mut flat = *region;
            (flat.lo[lanes], flat.hi[lanes]) =
                ((region.lo[planes] - low) * width, (region.hi[planes] - low) * width);
            (flat.lo[planes], flat.hi[planes]) = (0, 1);
            flat
        };
        let whole = |piece: &Piece| {
            (piece.region.lo[lanes], piece.region.hi[lanes]) == (domain.lo[lanes], domain.hi[lanes])
                && piece.region.lo[planes] >= low
                && piece.region.hi[planes] <= domain.hi[planes]
                && piece.strides[planes] == width * piece.strides[lanes]
        };
        let pieces = |side: Side<'_>| -> Option<Vec<Piece>> {
            let all = side.ragged.is_none() && side.pieces.iter().all(whole);
            all.then(|| {
                side.pieces.iter().map(|piece| Piece { region: flat(&piece.region), ..*piece }).collect()
            })
        };
        Some(Flat { domain: flat(domain), from: pieces(from)?, to: pieces(to)? })
    }
}
