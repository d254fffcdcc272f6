//! Where the elements of an array lie in memory.

use crate::recipe::Distribution;
use crate::{Box3, MemoryUse, Order};

/// The memory of one rank's part of an array, in numbers (a complex element
/// is two).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub part: Box3,
    /// Numbers between neighbours on each axis.
    pub strides: [usize; 3],
    /// Numbers of one array of a batch.
    pub volume: usize,
}

impl Geometry {
    /// Dense.
    pub fn dense(part: Box3, order: Order, real: bool) -> Geometry {
        Geometry::with_row(part, order, real, part.shape()[order.fastest()] * width(real))
    }

    /// Rows (along the fastest axis) of `row` numbers each.
    fn with_row(part: Box3, order: Order, real: bool, row: usize) -> Geometry {
        let [slow, mid, fast] = order.axes();
        let shape = part.shape();
        let mut strides = [0; 3];
        strides[fast] = width(real);
        strides[mid] = row;
        strides[slow] = row * shape[mid];
        Geometry { part, strides, volume: row * shape[mid] * shape[slow] }
    }

    /// Real rows with room for their spectrum, as FFTW lays out real arrays
    /// that are transformed in place.
    pub fn padded_real(part: Box3, order: Order) -> Geometry {
        Geometry::with_row(part, order, true, (part.shape()[order.fastest()] / 2 + 1) * 2)
    }

    /// Strides that no cache maps to a handful of its sets: rows and planes
    /// are never a multiple of 4 KiB apart. Rows begin with cache lines, or
    /// (`packed_rows`, where they would not by themselves) follow each other in planes that do.
    pub fn spread(part: Box3, order: Order, real: bool, number: usize, packed_rows: bool) -> Geometry {
        let [slow, mid, fast] = order.axes();
        let shape = part.shape();
        let line = 64 / number;
        let page = 4096 / number;
        let widen = |numbers: usize| {
            let numbers = numbers.next_multiple_of(line);
            if numbers.is_multiple_of(page) { numbers + line } else { numbers }
        };
        let mut strides = [0; 3];
        strides[fast] = width(real);
        let row = shape[fast] * width(real);
        let packed_rows = packed_rows && !row.is_multiple_of(line) && (row * shape[mid]).is_multiple_of(line);
        // Rows of one element are none: those of columns lie side by side.
        strides[mid] = if shape[fast] == 1 || packed_rows { row } else { widen(row) };
        strides[slow] = widen(strides[mid] * shape[mid]);
        Geometry { part, strides, volume: strides[slow] * shape[slow] }
    }

    /// Of a work array.
    pub fn work(
        state: &Distribution,
        rank: usize,
        number: usize,
        memory: MemoryUse,
        packed_rows: bool,
    ) -> Geometry {
        let (part, order) = (state.layout.boxes()[rank], state.layout.order());
        match memory {
            MemoryUse::Fast => Geometry::spread(part, order, state.real, number, packed_rows),
            MemoryUse::Small => Geometry::dense(part, order, state.real),
        }
    }

    /// Where an index lies, counted from the start of the array.
    pub fn offset(&self, index: [usize; 3]) -> usize {
        (0..3).map(|a| (index[a] - self.part.lo[a]) * self.strides[a]).sum()
    }
}

/// Which of a rank's lent pointers a piece counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    In = 0,
    Out = 1,
    Work = 2,
}

/// A box of elements somewhere in memory; all distances in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub region: Box3,
    pub rank: usize,
    pub base: Base,
    /// Of the first element of the region.
    pub offset: usize,
    pub strides: [usize; 3],
    /// From one array of a batch to the next.
    pub batch: usize,
}

/// The axes of a grid: lines run along `along`, lie side by side along
/// `lanes`, and planes follow each other along `planes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    pub along: usize,
    pub lanes: usize,
    pub planes: usize,
}

impl Axes {
    /// Lanes run along the axis that is nearest in memory: of the target
    /// where lines lie densely in the source, of the source otherwise.
    pub fn choose(along: usize, from: &[Piece], to: &[Piece]) -> Axes {
        let others = [0, 1, 2].map(|a| (along + a) % 3);
        let (one, two) = (others[1].min(others[2]), others[1].max(others[2]));
        let nearer = |pieces: &[Piece]| {
            pieces.first().map(|piece| if piece.strides[one] < piece.strides[two] { one } else { two })
        };
        let dense =
            from.first().is_some_and(|piece| (0..3).all(|a| piece.strides[along] <= piece.strides[a]));
        let lanes = if dense { nearer(to) } else { nearer(from) }.unwrap_or(two);
        Axes { along, lanes, planes: 3 - along - lanes }
    }
}

/// Numbers per element.
pub fn width(real: bool) -> usize {
    if real { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_columns_are_padded_not_their_elements() {
        let part = |shape: [usize; 3]| Box3::new([0; 3], shape);
        let spread = |shape: [usize; 3]| Geometry::spread(part(shape), Order::C, false, 8, false).strides;
        assert_eq!(spread([4, 13, 1]), [32, 2, 2]);
        assert_eq!(spread([4, 256, 1]), [520, 2, 2]);
        assert_eq!(spread([4, 3, 5]), [48, 16, 2]);
        // Tight rows follow each other where planes fill cache lines, and only where rows do not.
        let packed_rows = |shape: [usize; 3]| Geometry::spread(part(shape), Order::C, false, 8, true).strides;
        assert_eq!(packed_rows([4, 4, 5]), [40, 10, 2]);
        assert_eq!(packed_rows([4, 3, 5]), spread([4, 3, 5]));
        assert_eq!(packed_rows([4, 4, 8]), spread([4, 4, 8]));
    }
}
