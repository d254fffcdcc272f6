//! From the pieces of memory at both ends of a pass to its [`PassShape`].

use super::access::Access;
use super::machine::Machine;
use super::pass::{LineWork, PassShape};
use super::setting::Setting;
use crate::geometry::{Axes, Piece, width};
use crate::layout::Box3;
use crate::messages::Mechanism;
use crate::schedule::{AxisTransform, FusedOp, OpPosition, bundle_of};
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

/// Points of a block of lines of an array that is in cache.
const WHOLE_POINTS: f64 = 8192.0;

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

/// The axes of the first and of the last transform. Planes of a bundle lie side by side.
fn end_axes(transforms: &[AxisTransform], from: &[Piece], to: &[Piece], bundled: bool) -> [Axes; 2] {
    let fused = |one: usize, two: usize| match bundled {
        false => Axes { along: one, lanes: two, planes: 3 - one - two },
        true => Axes { along: one, lanes: 3 - one - two, planes: two },
    };
    let fast =
        |pieces: &[Piece]| (0..3).find(|&axis| pieces.first().is_none_or(|piece| piece.is_fastest(axis)));
    match transforms {
        [] => [Axes::choose(fast(to).unwrap_or(2), from, to); 2],
        [one] => [one.axes().unwrap_or_else(|| Axes::choose(one.axis, from, to)); 2],
        [one, two] => [fused(one.axis, two.axis), fused(two.axis, one.axis)],
        [one, .., two] => [Axes::choose(one.axis, from, from), Axes::choose(two.axis, to, to)],
    }
}

/// The lines of each transform of a pass, and the bytes of a plane (of an array that goes as a whole) between two.
/// `block`: lines of a block.
fn line_works(
    domain: &PassDomain<'_>,
    from: &PassEnd<'_>,
    bundle: Option<usize>,
    block: impl Fn(&AxisTransform, bool) -> usize,
) -> (Vec<LineWork>, f64) {
    let PassDomain { arrive, transforms, arrays, scalar_bytes, .. } = *domain;
    let whole = transforms.len() > 2;
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
        // Blocks of a whole array, which is in cache, are as large as can be.
        let blocks = match whole {
            true => (count * transform.spec.n as f64 / WHOLE_POINTS).max(1.0),
            false => count / bundle.unwrap_or_else(|| block(transform, !contiguous)) as f64,
        };
        lines.push(LineWork {
            flops: count * line_flops(transform) * arrays as f64,
            contiguous,
            blocks: blocks * arrays as f64,
            bytes: (scalars * scalar_bytes * arrays) as f64,
        });
        if let Some(next) = transforms.get(number + 1) {
            let [one, two] = [transform.axis, next.axis].map(|axis| part.shape()[axis].max(1));
            let elements = if whole { now.volume() } else { one * two * bundle.unwrap_or(1) };
            plane_bytes = plane_bytes.max((elements * width(transform.real) * scalar_bytes) as f64);
        }
    }
    (lines, plane_bytes)
}

/// Whether planes of a pass are completed in scratch and stored past the caches as runs, whatever the length of their rows.
fn completes_planes(transforms: &[AxisTransform], to: &[Piece]) -> bool {
    match (transforms, to) {
        ([one, two], [target]) => two.real_before == two.real && target.is_fastest(one.axis.max(two.axis)),
        _ => false,
    }
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
    let bundle = match transforms {
        [one, two] if policy.bundle_bytes > 0 => {
            let room = (scalar_bytes, policy.bundle_bytes);
            bundle_of([from.pieces, to.pieces], &one.after(&arrive), [one, two], room)
        }
        _ => None,
    };
    let [first, last] = end_axes(transforms, from.pieces, to.pieces, bundle.is_some());
    let blocks = |at: Option<&AxisTransform>, axes: Axes, pieces: &[Piece]| {
        bundle.unwrap_or_else(|| at.map_or(64, |transform| block(transform, strided(pieces, axes))))
    };
    let load_block = blocks(transforms.first(), first, from.pieces);
    let store_block = match transforms.len() {
        0 | 1 => load_block,
        _ => blocks(transforms.last(), last, to.pieces),
    };
    let end = |end: &PassEnd<'_>, axes: Axes, block: usize| match transforms.len() {
        0..=2 => Access::new(end.pieces, axes, block, sizes(end), rank, machine),
        _ => Access::of_whole(end.pieces, sizes(end), rank),
    };
    let (load, mut store) = (end(from, first, load_block), end(to, last, store_block));
    if completes_planes(transforms, to.pieces) && bundle.is_none() {
        store.partial = 0.0;
    }
    let (lines, plane_bytes) = line_works(domain, from, bundle, block);
    let units = match transforms {
        [] => (load.bytes / 4096.0).max(1.0),
        // Blocks are smaller where threads have few.
        [_] => lines.first().map_or(1.0, |work| work.blocks.max(setting.threads as f64)),
        [one, two] => {
            let planes = arrive.shape()[3 - one.axis - two.axis];
            (planes.div_ceil(bundle.unwrap_or(1)) * arrays) as f64
        }
        _ => arrays as f64,
    };
    let bytes = (load.bytes + if in_place { 0.0 } else { store.bytes }) * arrays as f64;
    PassShape {
        lines,
        load: load.times(arrays as f64),
        store: store.times(arrays as f64),
        plane_bytes,
        units,
        stream: policy.stream,
        in_place,
        staging: policy.staging && transforms.len() == 1,
        scalar_bytes,
        threads: setting.threads,
        ranks_on_node,
        // As plans do: ranks of several threads share blocks out among these.
        helped: setting.mechanism == Mechanism::SharedMemory && setting.threads == 1,
        node_bytes: bytes * ranks_on_node as f64,
    }
}
