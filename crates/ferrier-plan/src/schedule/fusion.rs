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

/// Whether the array before this transform, the first one of a pass, is better a work array than the output: where many
/// threads take lines whose elements are pages apart, in arrays that their second-level caches hold. In the output, which has
/// no gaps, these elements meet in few sets of a cache, and each cache line changes cores twice, because the pass before
/// stores to lines that the other threads have stored last. The limits are as for [`may_fuse`].
pub fn better_aside(
    recipe: &Recipe,
    (plane_bytes, threads): (usize, usize),
    transform: &AxisTransform,
    state: &Distribution,
) -> bool {
    const MANY_THREADS: usize = 8;
    const PAGE: usize = 4096;
    const ROW: usize = 512;
    let Some(own) = state.layout.boxes().iter().max_by_key(|part| part.volume()) else { return false };
    let [slow, mid, fast] = state.layout.order().axes();
    let (shape, element) = (own.shape(), width(state.real) * recipe.precision.bytes());
    let row = shape[fast] * element;
    let apart = [(mid, row), (slow, row * shape[mid])].iter().any(|&(axis, bytes)| {
        axis == transform.axis && bytes.is_multiple_of(PAGE) && (bytes / PAGE).is_power_of_two()
    });
    let fits = own.volume() * element * recipe.batch <= threads.saturating_mul(plane_bytes / 4);
    threads >= MANY_THREADS && recipe.memory == MemoryUse::Fast && apart && row >= ROW && fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;
    use crate::design::design;
    use crate::problem::Problem;
    use crate::schedule::{Direction, stages};
    use ferrier_kernel::Precision;

    /// The last transform of `forward`, with 2 MiB of second-level cache.
    fn aside(shape: [usize; 3], real: bool, precision: Precision, batch: usize, threads: usize) -> bool {
        let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) }.batch(batch);
        let recipe = design(&problem, &Choice::default(), precision, 1).unwrap();
        let stages = stages(&recipe, Direction::Forward, false);
        let last = stages.into_iter().rfind(|stage| stage.transform.is_some()).unwrap();
        better_aside(&recipe, (4 << 20, threads), &last.transform.unwrap(), &last.before)
    }

    #[test]
    fn lines_whose_elements_are_pages_apart_pass_through_a_work_array() {
        let (single, double) = (Precision::F32, Precision::F64);
        assert!(aside([64; 3], false, double, 1, 16) && aside([1, 256, 256], false, double, 1, 8));
        assert!(aside([128; 3], false, single, 1, 16));
        // Few threads; spectra of real arrays and other lengths; larger arrays and batches; short rows.
        assert!(!aside([64; 3], false, double, 1, 4));
        assert!(!aside([64; 3], true, double, 1, 16) && !aside([96; 3], false, double, 1, 16));
        assert!(!aside([128; 3], false, double, 1, 16) && !aside([64; 3], false, double, 16, 16));
        assert!(!aside([512, 512, 4], false, single, 1, 16));
    }
}
