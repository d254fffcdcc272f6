//! Memory layout of arrays: strides and offsets, in scalars.

use crate::choice::MemoryUse;
use crate::layout::{Box3, Order};
use crate::recipe::Distribution;
use crate::strides::ArrayStrides;

/// The memory of one rank's box of an array, in scalars (a complex element is two).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The box.
    pub part: Box3,
    /// Scalars before the first element.
    pub start: usize,
    /// Scalars between neighbouring elements of each axis.
    pub strides: [usize; 3],
    /// Scalars of one array of a batch, padding included.
    pub volume: usize,
    /// Scalars from one array of a batch to the next.
    pub batch: usize,
    /// Scalars of an element.
    pub width: usize,
}

impl Geometry {
    /// A dense array: no padding.
    pub fn dense(part: Box3, order: Order, real: bool) -> Geometry {
        Geometry::with_row(part, order, real, part.shape()[order.fastest()] * width(real))
    }

    /// Rows (along the fastest axis) of `row` scalars each.
    fn with_row(part: Box3, order: Order, real: bool, row: usize) -> Geometry {
        let [slow, mid, fast] = order.axes();
        let shape = part.shape();
        let mut strides = [0; 3];
        strides[fast] = width(real);
        strides[mid] = row;
        strides[slow] = row * shape[mid];
        Geometry::from_strides(part, strides, row * shape[mid] * shape[slow], real)
    }

    /// Arrays of `volume` scalars, one after the other.
    fn from_strides(part: Box3, strides: [usize; 3], volume: usize, real: bool) -> Geometry {
        Geometry { part, start: 0, strides, volume, batch: volume, width: width(real) }
    }

    /// An array as its user has it.
    pub fn strided(part: Box3, strides: &ArrayStrides, real: bool) -> Geometry {
        let width = width(real);
        let one = strides.offset(0);
        Geometry {
            part,
            start: strides.offset * width,
            strides: strides.axes.map(|stride| stride * width),
            volume: one.len(&part, 1) * width,
            batch: strides.batch_stride(&part) * width,
            width,
        }
    }

    /// Scalars that memory for this many arrays has at least.
    pub fn scalars(&self, arrays: usize) -> usize {
        match self.volume {
            0 => 0,
            volume => self.start + arrays.saturating_sub(1) * self.batch + volume,
        }
    }

    /// Whether each line along an axis of this array and the line of the other have their memory to themselves: the
    /// arrays have the same strides, or rows of one are real and those of the other their spectra, along `halved`.
    pub fn is_alike(&self, other: &Geometry, arrays: usize, halved: Option<usize>) -> bool {
        if self.volume == 0 || other.volume == 0 {
            return true;
        }
        let (one, two) = (self.part.shape(), other.part.shape());
        let same = |axis: usize| {
            one[axis].max(two[axis]) == 1
                || self.strides[axis] == other.strides[axis]
                || Some(axis) == halved && self.strides[axis].max(other.strides[axis]) == 2
        };
        self.start == other.start && (0..3).all(same) && (arrays == 1 || self.batch == other.batch)
    }

    /// Real rows padded to the size of their spectrum, as in FFTW's in-place real transforms.
    pub fn padded_real(part: Box3, order: Order) -> Geometry {
        Geometry::with_row(part, order, true, (part.shape()[order.fastest()] / 2 + 1) * 2)
    }

    /// A padded array without cache-set conflicts: the distance of rows and of planes is never a multiple of
    /// 4 KiB. Planes are aligned to cache lines; so are rows, but for packed ones. `scalar_bytes` is the size of a scalar.
    pub fn padded(part: Box3, order: Order, real: bool, scalar_bytes: usize, packed: PackedRows) -> Geometry {
        let [slow, mid, fast] = order.axes();
        let shape = part.shape();
        let line = 64 / scalar_bytes;
        let page = 4096 / scalar_bytes;
        let widen = |scalars: usize| {
            let scalars = scalars.next_multiple_of(line);
            if scalars.is_multiple_of(page) { scalars + line } else { scalars }
        };
        let mut strides = [0; 3];
        strides[fast] = width(real);
        let row = shape[fast] * width(real);
        let odd = |scalars: usize| !scalars.is_multiple_of(line);
        let packed = match packed {
            PackedRows::None => false,
            PackedRows::InWholePlanes => odd(row) && !odd(row * shape[mid]),
            PackedRows::All => odd(row),
        };
        // Rows of one element are not padded: elements of columns are adjacent.
        strides[mid] = if shape[fast] == 1 || packed { row } else { widen(row) };
        strides[slow] = widen(strides[mid] * shape[mid]);
        Geometry::from_strides(part, strides, strides[slow] * shape[slow], real)
    }

    /// An array in a thread's scratch, whose lines are transformed there: rows and planes are at distances that put few of
    /// them in one set of a first-level cache.
    pub fn in_scratch(part: Box3, order: Order, real: bool, scalar_bytes: usize) -> Geometry {
        let [slow, mid, fast] = order.axes();
        let (shape, line) = (part.shape(), 64 / scalar_bytes);
        let mut strides = [0; 3];
        strides[fast] = width(real);
        strides[mid] = spread((shape[fast] * width(real)).next_multiple_of(line), shape[mid], line);
        strides[slow] = spread(strides[mid] * shape[mid], shape[slow], line);
        Geometry::from_strides(part, strides, strides[slow] * shape[slow], real)
    }

    /// The memory of `rank`'s box of a work array.
    pub fn work(
        distribution: &Distribution,
        rank: usize,
        scalar_bytes: usize,
        memory: MemoryUse,
        packed: PackedRows,
    ) -> Geometry {
        let (part, order) = (distribution.layout.boxes()[rank], distribution.layout.order());
        match memory {
            MemoryUse::Fast => Geometry::padded(part, order, distribution.real, scalar_bytes, packed),
            MemoryUse::Small => Geometry::dense(part, order, distribution.real),
        }
    }

    /// Offset of an index of the first array of a batch, in scalars.
    pub fn offset(&self, index: [usize; 3]) -> usize {
        self.start + (0..3).map(|a| (index[a] - self.part.lo[a]) * self.strides[a]).sum::<usize>()
    }
}

/// A distance of at least `scalars`, a multiple of a cache line of `line` scalars, for `count` rows, at which few of them are in
/// one set of a first-level cache: a line along them is loaded, stored and loaded again.
fn spread(scalars: usize, count: usize, line: usize) -> usize {
    // Of 8 to 12 ways, a half for rows; the others are for the kernel's scratch.
    const SETS: usize = 64;
    const WAYS: usize = 4;
    let alone = |lines: &usize| count.min(SETS) <= WAYS * (SETS >> lines.trailing_zeros().min(SETS.ilog2()));
    let lines = scalars / line;
    (lines..).find(alone).unwrap_or(lines) * line
}

/// Which rows of a work array follow each other without padding, of those that are no multiples of a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedRows {
    /// None: each begins with a cache line.
    None,
    /// Those of planes that are multiples of a cache line.
    InWholePlanes,
    /// All.
    All,
}

/// The exposed memory of a rank that the offset of a [`Piece`] refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The input of the call.
    In = 0,
    /// The output of the call.
    Out = 1,
    /// The workspace.
    Work = 2,
}

impl Base {
    /// The rank and base of pieces in planes of scratch, which belong to no rank.
    pub fn scratch(ranks: usize) -> (usize, Base) {
        (ranks, Base::In)
    }

    /// The rank and base of pieces in this rank's window.
    pub fn window(ranks: usize) -> (usize, Base) {
        (ranks, Base::Out)
    }
}

/// A box of elements in the memory of a rank; offsets and strides in scalars.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The box.
    pub region: Box3,
    /// The rank whose memory it is in.
    pub rank: usize,
    /// The memory that `offset` refers to.
    pub base: Base,
    /// Offset of the first element of the box.
    pub offset: usize,
    /// Scalars between neighbouring elements of each axis.
    pub strides: [usize; 3],
    /// Scalars from one array of a batch to the next.
    pub batch: usize,
}

impl Piece {
    /// Whether no axis has a smaller stride.
    pub fn is_fastest(&self, axis: usize) -> bool {
        self.strides.iter().all(|&stride| self.strides[axis] <= stride)
    }
}

/// The roles of the three axes when lines are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The transformed axis.
    pub along: usize,
    /// The axis along which the lines of a block are adjacent.
    pub lanes: usize,
    /// The remaining axis.
    pub planes: usize,
}

impl Axes {
    /// Chooses lanes along the axis of the smaller stride: in the target if lines are contiguous in the source,
    /// otherwise in the source.
    pub fn choose(along: usize, from: &[Piece], to: &[Piece]) -> Axes {
        let others = [0, 1, 2].map(|a| (along + a) % 3);
        let (one, two) = (others[1].min(others[2]), others[1].max(others[2]));
        let largest = |pieces: &[Piece]| pieces.iter().max_by_key(|piece| piece.region.volume()).cloned();
        // Of two equal strides one is that of an axis of one element.
        let nearer = |pieces: &[Piece]| {
            let key =
                |piece: &Piece, axis: usize| (piece.strides[axis], usize::MAX - piece.region.shape()[axis]);
            largest(pieces).map(|piece| if key(&piece, one) < key(&piece, two) { one } else { two })
        };
        let dense = largest(from).is_some_and(|piece| piece.is_fastest(along));
        let lanes = if dense { nearer(to) } else { nearer(from) }.unwrap_or(two);
        Axes { along, lanes, planes: 3 - along - lanes }
    }
}

/// Cache lines of a row of a bundle of planes, at most. More where a row has many bundles: planes of 8 x 8 are so few points
/// that the calls of a kernel take longer than its arithmetic, and hardware predicts rows only up to the end of a page.
const BUNDLE_LINES: [usize; 2] = [8, 64];
/// Bundles of a row that are left to share out over threads where bundles have more than the first of these.
const BUNDLES: usize = 64;

/// Planes across the fastest axis that are transformed together, because they share cache lines: whole cache lines of
/// elements, as many as `room` bytes hold and half a kilobyte at most, or a page of rows that are long; one cache line where
/// not even that fits.
pub fn bundled_planes(planes: usize, plane_bytes: usize, element_bytes: usize, room: usize) -> usize {
    let line = (64 / element_bytes).max(1);
    let [usual, most] = BUNDLE_LINES.map(|lines| lines * line);
    let most = (room / plane_bytes.max(1)).min((planes / BUNDLES).clamp(usual, most)) / line * line;
    let bundles = planes.div_ceil(most.max(line)).max(1);
    planes.div_ceil(bundles).next_multiple_of(line)
}

/// Scalars per element.
pub fn width(real: bool) -> usize {
    if real { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_whole_cache_lines_that_fit() {
        let bundle = |planes, plane, room| bundled_planes(planes, plane, 16, room);
        assert_eq!(bundle(16, 1 << 20, 2 << 20), 4);
        assert_eq!(bundle(16, 64 << 10, 2 << 20), 16);
        assert_eq!(bundle(64, 64 << 10, 2 << 20), 32);
        assert_eq!(bundle(64, 100 << 10, 2 << 20), 16);
        assert_eq!(bundle(5, 1 << 10, 2 << 20), 8);
        assert_eq!(bundle(40, 1 << 10, 2 << 20), 20);
        // Long rows: up to a page of small planes.
        assert_eq!(bundle(1024, 1 << 10, 2 << 20), 32);
        assert_eq!(bundle(4096, 1 << 10, 2 << 20), 64);
        assert_eq!(bundle(65536, 1 << 10, 2 << 20), 256);
        assert_eq!(bundle(65536, 4 << 10, 512 << 10), 128);
    }

    #[test]
    fn padding_applies_to_rows_not_to_elements_of_columns() {
        let part = |shape: [usize; 3]| Box3::new([0; 3], shape);
        let strides = |shape, packed| Geometry::padded(part(shape), Order::C, false, 8, packed).strides;
        let padded = |shape| strides(shape, PackedRows::None);
        assert_eq!(padded([4, 13, 1]), [32, 2, 2]);
        assert_eq!(padded([4, 256, 1]), [520, 2, 2]);
        assert_eq!(padded([4, 3, 5]), [48, 16, 2]);
        // Rows that are whole cache lines are never packed.
        let packed = |shape| strides(shape, PackedRows::InWholePlanes);
        assert_eq!(packed([4, 4, 5]), [40, 10, 2]);
        assert_eq!(packed([4, 3, 5]), padded([4, 3, 5]));
        assert_eq!(packed([4, 4, 8]), padded([4, 4, 8]));
        let packed = |shape| strides(shape, PackedRows::All);
        assert_eq!(packed([4, 4, 5]), [40, 10, 2]);
        assert_eq!(packed([4, 3, 5]), [32, 10, 2]);
        assert_eq!(packed([4, 4, 8]), padded([4, 4, 8]));
    }
}
