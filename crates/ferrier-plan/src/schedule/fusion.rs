//! Whether axes share a pass.

use super::transform::{AxisTransform, largest_between};
use crate::choice::MemoryUse;
use crate::geometry::{Piece, bundled_planes, width};
use crate::layout::Box3;
use crate::modes::total_len;
use crate::recipe::{Distribution, Recipe};

/// The room for planes across the fastest axis, which are transformed in bundles: they have to stay in a second-level
/// cache, half as large as the largest plane that is transformed by itself.
pub fn bundle_bytes(plane_bytes: usize) -> usize {
    plane_bytes / 4
}

/// How many planes of `between`, the array between two transforms of a pass, go together, where they are across the
/// fastest axis of either end; `room`: [`bundle_bytes`].
pub fn bundle_of(
    ends: [&[Piece]; 2],
    between: &Box3,
    transforms: [&AxisTransform; 2],
    (scalar_bytes, room): (usize, usize),
) -> Option<usize> {
    let [one, two] = transforms.map(|transform| transform.axis);
    let across = 3 - one - two;
    let shares_lines = |piece: &Piece| {
        let Piece { strides, region, .. } = piece;
        region.shape()[across] > 1 && strides[across] < strides[one].min(strides[two])
    };
    let ragged = transforms.iter().any(|transform| transform.axes().is_some());
    if ragged || !ends.into_iter().flatten().any(shares_lines) {
        return None;
    }
    let shape = between.shape();
    let element = width(transforms[0].real) * scalar_bytes;
    Some(bundled_planes(shape[across], shape[one] * shape[two] * element, element, room))
}

/// Two axes in one pass: if the recipe says so. If it leaves that open: if planes stay in cache between them, those that
/// share cache lines together, and there are enough to keep all threads busy. More axes in one pass: if an array stays in
/// cache, and there are arrays enough. The limits are the largest plane in bytes, and the threads of a rank. The same
/// answer on every rank.
pub fn may_fuse(
    recipe: &Recipe,
    (plane_bytes, threads): (usize, usize),
    transforms: &[AxisTransform],
    state: &Distribution,
) -> bool {
    // The last round may leave threads idle, but not more than a quarter of the time.
    let busy = |units: usize| units * 4 >= units.div_ceil(threads) * threads * 3;
    if transforms.len() > 2 {
        let boxes = state.layout.boxes().iter();
        let elements = boxes.map(|part| largest_between(transforms, part)).max().unwrap_or(0);
        let array = elements * width(transforms[0].real) * recipe.precision.bytes();
        // An array leaves room for its source or its target in a second-level cache, of which planes may have twice the size.
        let fits = array <= plane_bytes / 4 && busy(recipe.batch);
        return fits && recipe.fuse != Some(false) && recipe.memory == MemoryUse::Fast;
    }
    if let Some(fuse) = recipe.fuse {
        return fuse;
    }
    if let Some(fused) = &recipe.fused {
        return fused.iter().any(|pair| transforms.iter().all(|transform| pair.contains(&transform.axis)));
    }
    let across = 3 - transforms[0].axis - transforms[1].axis;
    // What lies between the transforms; both axes are whole.
    let elements = total_len(&transforms[0].to) * total_len(&transforms[1].from);
    let element = width(transforms[0].real) * recipe.precision.bytes();
    let plane = elements * element;
    let planes = state.layout.boxes().iter().map(|b| b.shape()[across]).max().unwrap_or(0).max(1);
    // Planes across the fastest axis share cache lines.
    let (bundle, room) = match bundle_bytes(plane_bytes) {
        room if planes > 1 && state.layout.order().fastest() == across => {
            (bundled_planes(planes, plane, element, room), room)
        }
        _ => (1, plane_bytes),
    };
    let units = planes.div_ceil(bundle) * recipe.batch;
    planes.min(bundle).saturating_mul(plane) <= room && busy(units) && recipe.memory == MemoryUse::Fast
}
