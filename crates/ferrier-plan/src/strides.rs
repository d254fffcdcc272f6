//! Where the elements of a user's array lie: an offset, and a stride for each axis and for the batch.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid, Result};
use crate::layout::{Box3, Layout, Order};

/// Where the elements of one rank's array lie in memory, counted in elements of that array (real or complex).
///
/// Element `[i, j, k]` of the rank's box, counted from its lower corner, of array `b` of the batch is element
/// `offset + i * axes[0] + j * axes[1] + k * axes[2] + b * batch` of the slice. Sorted by stride, the axes and the batch
/// are a memory order: each stride is at least the extent of all smaller ones. Plans neither read nor write elements
/// outside the box. Arrays larger than the address space are an error when a plan is made.
///
/// ```
/// use ferrier::{ArrayStrides, Complex, LayoutSpec, Order, Plan, Problem};
/// ferrier::ranks(2).run(|comm| {
///     // A slab of 4 planes of 6x5 with two ghost cells on each side of every axis, in an array of 8x10x9.
///     let ghosts = ArrayStrides::inside([8, 10, 9], [2, 2, 2], Order::C);
///     // Three components of a field, the component fastest: (z, y, x, 3).
///     let interleaved = ArrayStrides::interleaved([4, 6, 5], 3, Order::C);
///     let problem = Problem::c2c([8, 6, 5]);
///     let mut plan = Plan::<f64>::new(&comm, &problem.clone().input_strides(ghosts))?;
///     let field = vec![Complex::new(1.0, 0.0); 8 * 10 * 9];
///     let mut spectrum = vec![Complex::default(); 4 * 6 * 5];
///     plan.forward(&field, &mut spectrum)?;
///     let problem = problem.batch(3).input_strides(interleaved).output_strides(interleaved);
///     let plan = Plan::<f64>::new(&comm, &problem)?;
///     assert_eq!(plan.input_len(), 4 * 6 * 5 * 3);
///     Ok(())
/// })?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArrayStrides {
    /// Elements before the first element of the box.
    pub offset: usize,
    /// Elements from one index to the next along each axis, in the order of the axes whatever the memory order.
    pub axes: [usize; 3],
    /// Elements from one array of a batch to the next; `None`: each array follows the last plane of the one before.
    pub batch: Option<usize>,
    /// The longest box that fits, where the array around it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    room: Option<[usize; 3]>,
}

impl ArrayStrides {
    /// These strides, without an offset.
    pub fn new(axes: [usize; 3]) -> Self {
        ArrayStrides { offset: 0, axes, batch: None, room: None }
    }

    /// A box inside a larger array of shape `outer`, such as a brick inside its ghost cells: `margin` elements of each
    /// axis come before the box. Arrays of a batch are `outer` apart.
    pub fn inside(outer: [usize; 3], margin: [usize; 3], order: Order) -> Self {
        let axes = order.strides(outer);
        let before = |axis: usize| margin[axis].saturating_mul(axes[axis]);
        let offset = (0..3).map(before).fold(0, usize::saturating_add);
        let batch = outer.into_iter().fold(1, usize::saturating_mul);
        let room = std::array::from_fn(|axis| outer[axis].saturating_sub(margin[axis]));
        ArrayStrides { offset, axes, batch: Some(batch), room: Some(room) }
    }

    /// The arrays of a batch interleaved, with their number as the fastest axis: `(z, y, x, 3)` in C order. `shape` is
    /// that of the rank's box.
    pub fn interleaved(shape: [usize; 3], batch: usize, order: Order) -> Self {
        let axes = order.strides(shape).map(|stride| stride.saturating_mul(batch));
        ArrayStrides { offset: 0, axes, batch: Some(1), room: Some(shape) }
    }

    /// Rows of a real array padded to the size of their spectra, 2 (n/2 + 1) elements, as FFTW lays them out; rows run
    /// along the fastest axis. `shape` is that of the rank's box.
    pub fn padded_real(shape: [usize; 3], order: Order) -> Self {
        let mut outer = shape;
        outer[order.fastest()] = (shape[order.fastest()] / 2 + 1).saturating_mul(2);
        ArrayStrides { room: Some(shape), ..ArrayStrides::inside(outer, [0; 3], order) }
    }

    /// Sets the elements before the first element of the box.
    #[must_use]
    pub fn offset(mut self, elements: usize) -> Self {
        (self.offset, self.room) = (elements, None);
        self
    }

    /// Sets the elements from one array of a batch to the next.
    #[must_use]
    pub fn batch(mut self, elements: usize) -> Self {
        self.batch = Some(elements);
        self
    }

    /// Elements from one array of a batch to the next.
    pub(crate) fn batch_stride(&self, part: &Box3) -> usize {
        let shape = part.shape();
        let planes = || (0..3).map(|axis| shape[axis].saturating_mul(self.axes[axis])).max();
        self.batch.or_else(planes).unwrap_or(0)
    }

    /// Elements that an array must have for this box and batch; `usize::MAX` where that exceeds the address space.
    pub fn len(&self, part: &Box3, batch: usize) -> usize {
        let (shape, last) = (part.shape(), batch.saturating_sub(1));
        if part.is_empty() || batch == 0 {
            return 0;
        }
        let extents = (0..3).map(|axis| (shape[axis] - 1).saturating_mul(self.axes[axis]));
        let batch = last.saturating_mul(self.batch_stride(part));
        extents.chain([batch, self.offset, 1]).fold(0, usize::saturating_add)
    }

    /// Whether the box fits, and every element of it and of the batch has an address of its own.
    fn check(&self, part: &Box3, batch: usize) -> std::result::Result<(), String> {
        if part.is_empty() {
            return Ok(());
        }
        let shape = part.shape();
        let room = self.room.unwrap_or([usize::MAX; 3]);
        if let Some(axis) = (0..3).find(|&axis| shape[axis] > room[axis]) {
            return Err(format!(
                "the box has {} elements along axis {axis}, the array has room for {} there",
                shape[axis], room[axis]
            ));
        }
        let axes = (0..3).map(|axis| (Some(axis), shape[axis], self.axes[axis]));
        let count = |(_, count, _): &(Option<usize>, usize, usize)| *count > 1;
        let overflow = || "the array is larger than the address space".to_string();
        let mut sides: Vec<_> = axes.filter(count).collect();
        // The default distance of arrays is a product of these.
        let checked = |stride: usize, count: usize| stride.checked_mul(count.max(1));
        if (0..3).any(|axis| checked(self.axes[axis], shape[axis]).is_none()) {
            return Err(overflow());
        }
        sides.extend(Some((None, batch, self.batch_stride(part))).filter(count));
        sides.sort_by_key(|(_, _, stride)| *stride);
        let name = |axis: Option<usize>| axis.map_or("the batch".to_string(), |axis| format!("axis {axis}"));
        let (mut extent, mut faster) = (1_usize, None);
        for (axis, count, stride) in sides {
            if stride < extent {
                let inner = faster.map_or("the elements of it".to_string(), name);
                return Err(format!(
                    "the stride of {}, {stride}, is less than the {extent} elements that {inner} and what is faster \
                     span: elements overlap",
                    name(axis)
                ));
            }
            let more = (count - 1).checked_mul(stride).and_then(|more| extent.checked_add(more));
            (extent, faster) = (more.ok_or_else(overflow)?, Some(axis));
        }
        let bytes = extent.checked_add(self.offset).and_then(|all| all.checked_mul(32));
        bytes.filter(|&bytes| bytes <= isize::MAX as usize).map(|_| ()).ok_or_else(overflow)
    }
}

impl fmt::Display for ArrayStrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}, strides {:?}", self.offset, self.axes)?;
        self.batch.map_or(Ok(()), |batch| write!(f, ", arrays {batch} apart"))
    }
}

/// The strides of the arrays at one end of a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StridesSpec {
    /// Arrays without gaps, in the memory order of the layout.
    #[default]
    Dense,
    /// The strides of the calling rank; a plan gathers those of the other ranks.
    Local(ArrayStrides),
    /// The strides of each rank; `None`: an array without gaps.
    Ranks(Vec<Option<ArrayStrides>>),
}

impl StridesSpec {
    /// Whether arrays have no gaps on any rank.
    pub fn is_dense(&self) -> bool {
        match self {
            StridesSpec::Dense => true,
            StridesSpec::Local(_) => false,
            StridesSpec::Ranks(all) => all.iter().all(Option::is_none),
        }
    }

    /// The strides of a rank; `None`: its array has no gaps.
    pub fn of(&self, rank: usize) -> Option<&ArrayStrides> {
        match self {
            StridesSpec::Dense => None,
            StridesSpec::Local(own) => Some(own),
            StridesSpec::Ranks(all) => all.get(rank)?.as_ref(),
        }
    }

    /// Checks the strides of all ranks. `end` is `input` or `output`, `argument` the setter.
    ///
    /// # Errors
    /// [`Error::Problem`] for elements that overlap and arrays that exceed the address space.
    pub(crate) fn check(
        &self,
        (end, argument): (&str, &'static str),
        layout: &Layout,
        batch: usize,
    ) -> Result<()> {
        for (rank, part) in layout.boxes().iter().enumerate() {
            let Some(strides) = self.of(rank) else { continue };
            strides.check(part, batch).map_err(|why| {
                let message = format!("{end} strides of rank {rank} ({strides}) for the box {part}: {why}");
                Error::Problem(Invalid::new(argument, message).got(strides))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(strides: ArrayStrides, shape: [usize; 3], batch: usize) -> std::result::Result<(), String> {
        strides.check(&Box3::new([3, 0, 1], [3 + shape[0], shape[1], 1 + shape[2]]), batch)
    }

    #[test]
    fn strides_that_overlap_are_refused_with_the_axis() {
        let new = ArrayStrides::new;
        assert_eq!(check(new([20, 5, 1]), [3, 4, 5], 2), Ok(()));
        assert_eq!(check(new([1, 7, 100]).offset(9), [3, 4, 5], 1), Ok(()));
        assert_eq!(check(ArrayStrides::interleaved([3, 4, 5], 3, Order::F), [3, 4, 5], 3), Ok(()));
        // Between the axes.
        assert_eq!(check(new([60, 15, 1]).batch(5), [3, 4, 5], 3), Ok(()));
        // An axis of one point may have any stride.
        assert_eq!(check(new([0, 5, 1]), [1, 4, 5], 1), Ok(()));
        let refused = |strides, shape, batch| check(strides, shape, batch).unwrap_err();
        assert!(
            refused(new([20, 4, 1]), [3, 4, 5], 1).contains("the stride of axis 1, 4, is less than the 5")
        );
        assert!(refused(new([19, 5, 1]), [3, 4, 5], 1).contains("the stride of axis 0, 19"));
        assert!(refused(new([20, 5, 0]), [3, 4, 5], 1).contains("the stride of axis 2, 0"));
        assert!(refused(new([20, 5, 1]).batch(59), [3, 4, 5], 2).contains("the stride of the batch, 59"));
        assert!(refused(new([usize::MAX / 2, 5, 1]), [3, 4, 5], 2).contains("address space"));
    }

    #[test]
    fn boxes_that_exceed_the_array_around_them_are_refused_with_the_axis() {
        let inside = ArrayStrides::inside([5, 6, 9], [1, 2, 2], Order::C);
        assert_eq!(check(inside, [4, 4, 7], 1), Ok(()));
        // It would reach into the margin of the next plane, where no element overlaps.
        let message = check(inside, [2, 5, 5], 1).unwrap_err();
        assert_eq!(message, "the box has 5 elements along axis 1, the array has room for 4 there");
        assert!(check(inside, [2, 4, 8], 1).unwrap_err().contains("along axis 2"));
        assert_eq!(check(inside.offset(0), [2, 5, 5], 1), Ok(()));
        for strides in [
            ArrayStrides::padded_real([3, 4, 5], Order::F),
            ArrayStrides::interleaved([3, 4, 5], 2, Order::C),
        ] {
            assert_eq!(check(strides, [3, 4, 5], 1), Ok(()));
            assert!(check(strides, [4, 4, 5], 1).unwrap_err().contains("4 elements along axis 0"));
        }
    }

    /// Sizes whose products exceed 64 bits: none wraps around to a small stride.
    #[test]
    fn arrays_larger_than_the_address_space_are_refused() {
        let (huge, order) = (1 << 33, Order::C);
        for (strides, batch) in [
            (ArrayStrides::inside([4, huge, huge], [0; 3], order), 1),
            (ArrayStrides::inside([4, 2 * huge, huge], [0, huge, 0], order), 1),
            (ArrayStrides::inside([huge, huge, 5], [0; 3], order), 2),
            (ArrayStrides::interleaved([3, huge, huge], 3, order), 3),
            (ArrayStrides::padded_real([3, 4, usize::MAX], order), 1),
        ] {
            assert!(check(strides, [3, 4, 5], batch).unwrap_err().contains("address space"), "{strides}");
            assert!(strides.len(&Box3::new([0; 3], [3, 4, 5]), batch) > usize::MAX / 64, "{strides}");
        }
    }

    #[test]
    fn lengths_are_those_of_the_last_element() {
        let part = Box3::new([0; 3], [3, 4, 5]);
        assert_eq!(ArrayStrides::new([20, 5, 1]).len(&part, 1), 60);
        assert_eq!(ArrayStrides::new([20, 5, 1]).len(&part, 2), 120);
        assert_eq!(ArrayStrides::padded_real([3, 4, 5], Order::C).len(&part, 1), 2 * 24 + 3 * 6 + 5);
        assert_eq!(ArrayStrides::interleaved([3, 4, 5], 3, Order::C).len(&part, 3), 180);
        assert_eq!(ArrayStrides::inside([5, 6, 7], [1; 3], Order::C).len(&part, 1), 50 + 2 * 42 + 3 * 7 + 5);
        assert_eq!(ArrayStrides::new([20, 5, 1]).len(&Box3::EMPTY, 2), 0);
    }
}
