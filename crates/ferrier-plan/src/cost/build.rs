//! From the pieces of memory at both ends of a pass to its [`PassShape`].

use super::access::Access;
use super::machine::Machine;
use super::pass::{LineWork, PassShape};
use super::setting::Setting;
use crate::geometry::{Axes, Piece, width};
use crate::layout::Box3;
use crate::schedule::{AxisTransform, FusedOp, OpPosition};
use ferrier_kernel::LineKind;

/// One end of a pass on one rank.
pub(super) struct PassEnd<'a> {
    pub pieces: &'a [Piece],
    /// Whether elements are real.
    pub real: bool,
}

/// What one rank does in a pass, besides its ends.
pub(super) struct PassDomain<'a> {
    pub rank: usize,
    /// The rank's box before the transforms.
    pub arrive: Box3,
    pub transforms: &'a [AxisTransform],
    pub arrays: usize,
    pub scalar_bytes: usize,
    /// Whether lines return to where they were loaded from.
    pub in_place: bool,
    /// Ranks on the node.
    pub ranks_on_node: usize,
}

/// Lines in a block of kernel `native`, as its `block` says.
fn block_lines(n: usize, strided: bool, scalar_bytes: usize, machine: &Machine) -> usize {
    let lanes = (machine.vector_bytes / scalar_bytes).max(1);
    if !strided {
        return lanes.max(8).max(2048 / n.max(1)).min(64);
    }
    let element = 2 * scalar_bytes;
    let fit = (512 << 10) / (element * n.max(1));
    (512 / element).min(fit / lanes * lanes).max(lanes)
}

/// Operations of a line, relative to 5 n log2 n: lengths with large prime factors go through a convolution.
fn difficulty(n: usize) -> f64 {
    let mut rest = n;
    for radix in [2, 3, 5, 7, 11, 13] {
        while rest > 1 && rest.is_multiple_of(radix) {
            rest /= radix;
        }
    }
    match n {
        _ if rest > 1 => 4.0,
        _ if n.is_power_of_two() => 1.0,
        _ if [7, 11, 13].iter().any(|&prime| n.is_multiple_of(prime)) => 1.3,
        _ => 1.1,
    }
}

/// Operations of one line.
fn line_flops(transform: &AxisTransform) -> f64 {
    let n = transform.spec.n as f64;
    let half = match transform.spec.kind {
        LineKind::Forward | LineKind::Backward | LineKind::R2r { complex: true, .. } => 1.0,
        LineKind::RealForward | LineKind::RealBackward | LineKind::R2r { .. } => 0.5,
    };
    let returns = matches!(transform.fused_op, Some(FusedOp { position: OpPosition::Between(_), .. }));
    (if returns { 2.0 } else { 1.0 }) * half * 5.0 * n * n.max(2.0).log2() * difficulty(transform.spec.n)
}

/// The shape of a pass.
pub(super) fn pass_shape(
    domain: &PassDomain<'_>,
    from: &PassEnd<'_>,
    to: &PassEnd<'_>,
    setting: &Setting<'_>,
    machine: &Machine,
) -> PassShape {
    let PassDomain { rank, arrive, transforms, arrays, scalar_bytes, in_place, ranks_on_node } = *domain;
    let sizes = |end: &PassEnd<'_>| (width(end.real) * scalar_bytes, scalar_bytes);
    let strided = |pieces: &[Piece], axes: Axes| {
        pieces.first().is_some_and(|piece| piece.strides[axes.along] > piece.strides[axes.lanes])
    };
    let policy = setting.memory_policy;
    let block = |transform: &AxisTransform, strided: bool| {
        let own = block_lines(transform.spec.n, strided, scalar_bytes, machine);
        policy.block.filter(|_| strided).unwrap_or(own).max(1)
    };
    // The axes of the first and of the last transform.
    let fused = |one: usize, two: usize| Axes { along: one, lanes: two, planes: 3 - one - two };
    let fast =
        |pieces: &[Piece]| (0..3).find(|&axis| pieces.first().is_none_or(|piece| piece.is_fastest(axis)));
    let [first, last] = match transforms {
        [] => {
            let along = fast(to.pieces).unwrap_or(2);
            [Axes::choose(along, from.pieces, to.pieces); 2]
        }
        [one] => [one.axes().unwrap_or_else(|| Axes::choose(one.axis, from.pieces, to.pieces)); 2],
        [one, two] => [fused(one.axis, two.axis), fused(two.axis, one.axis)],
        [one, two, ..] => {
            let end = &transforms[transforms.len() - 2..];
            [fused(one.axis, two.axis), fused(end[1].axis, end[0].axis)]
        }
    };
    let blocks = |at: Option<&AxisTransform>, axes: Axes, pieces: &[Piece]| {
        at.map_or(64, |transform| block(transform, strided(pieces, axes)))
    };
    let load_block = blocks(transforms.first(), first, from.pieces);
    let store_block = match transforms.len() {
        0 | 1 => load_block,
        _ => blocks(transforms.last(), last, to.pieces),
    };
    let load = Access::new(from.pieces, first, load_block, sizes(from), rank, machine);
    let store = Access::new(to.pieces, last, store_block, sizes(to), rank, machine);
    let mut now = arrive;
    let mut lines = Vec::with_capacity(transforms.len());
    let mut plane_bytes: f64 = 0.0;
    for (number, transform) in transforms.iter().enumerate() {
        let part = transform.lines_in(&now);
        let count = part.volume() as f64 / part.shape()[transform.axis].max(1) as f64;
        // The first transform loads from the array; the others from a plane in cache, whose rows are in C order.
        let contiguous = match number {
            0 => from.pieces.first().is_some_and(|piece| piece.is_fastest(transform.axis)),
            _ => transforms.iter().all(|other| other.axis <= transform.axis),
        };
        let before = now.volume() * width(if number == 0 { from.real } else { transforms[number - 1].real });
        now = transform.after(&now);
        let scalars = before + now.volume() * width(transform.real);
        lines.push(LineWork {
            flops: count * line_flops(transform) * arrays as f64,
            contiguous,
            blocks: count / block(transform, !contiguous) as f64 * arrays as f64,
            bytes: (scalars * scalar_bytes * arrays) as f64,
        });
        if number + 1 < transforms.len() {
            let plane = part.shape()[first.along].max(1) * part.shape()[first.lanes].max(1);
            let element = width(transform.real) * scalar_bytes;
            let whole = if transforms.len() > 2 { now.volume() } else { plane };
            plane_bytes = plane_bytes.max((whole * element) as f64);
        }
    }
    let units = match transforms.len() {
        0 | 1 => (lines.first().map_or(load.bytes / 4096.0, |work| work.blocks)).max(1.0),
        2 => (arrive.shape()[first.planes] * arrays) as f64,
        _ => arrays as f64,
    };
    let bytes = (load.bytes + if in_place { 0.0 } else { store.bytes }) * arrays as f64;
    PassShape {
        lines,
        load: load.times(arrays as f64),
        store: store.times(arrays as f64),
        plane_bytes,
        units,
        stream: policy.stream && !in_place,
        in_place,
        staging: policy.staging && transforms.len() == 1,
        scalar_bytes,
        threads: setting.threads,
        ranks_on_node,
        node_bytes: bytes * ranks_on_node as f64,
    }
}
