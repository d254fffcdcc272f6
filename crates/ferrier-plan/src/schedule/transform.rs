//! Transforms of one axis, with fused pointwise operations.

use std::sync::Arc;

use crate::geometry::Axes;
use crate::layout::Box3;
use crate::modes::{Columns, IndexRun, Ragged, total_len};
use ferrier_kernel::LinesSpec;

/// Direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From points to modes: the steps of the recipe in order.
    Forward,
    /// From modes to points: the steps in reverse order.
    Backward,
    /// Forward up to the last transform, which is followed by its own inverse while its lines are in cache, then
    /// backward.
    RoundTrip,
}

/// A transform of one axis in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisTransform {
    /// The transformed axis.
    pub axis: usize,
    /// The 1-D transform.
    pub spec: LinesSpec,
    /// Description, as in `ferrier::StepTime`.
    pub name: String,
    /// The elements of a line that the array before holds; the others are zero.
    pub from: Vec<IndexRun>,
    /// The elements of a line that the array after holds; the others are dropped.
    pub to: Vec<IndexRun>,
    /// The runs before, if they differ from line to line; `from` is then the range that contains them all.
    pub ragged_from: Option<Arc<Ragged>>,
    /// The runs after, if they differ from line to line; `to` is then the range that contains them all.
    pub ragged_to: Option<Arc<Ragged>>,
    /// The columns that lines along this axis are merged into (`forward`) or split from (`backward`).
    pub columns: Option<Arc<Columns>>,
    /// Whether the array before is real.
    pub real_before: bool,
    /// Whether the array after is real.
    pub real: bool,
    /// A pointwise operation on the lines while they are in cache.
    pub fused_op: Option<FusedOp>,
}

/// A pointwise operation on the lines of an [`AxisTransform`] while they are in cache.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedOp {
    /// The operation.
    pub op: PointwiseOp,
    /// Before, after or between transforms.
    pub position: OpPosition,
    /// The elements of a line that are operated on.
    pub runs: Vec<IndexRun>,
    /// The same, if it differs from line to line; other elements are zero.
    pub ragged: Option<Arc<Ragged>>,
}

/// A pointwise operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointwiseOp {
    /// The operator of the call.
    Called,
    /// Multiplication by the twiddle factors between the two halves of a long transform.
    Twiddles {
        /// Length of the long transform.
        points: usize,
        /// Whether the factors are conjugated.
        backward: bool,
    },
    /// The conjugate: the spectrum of a real line with the other sign.
    Conjugate,
}

/// Position of a pointwise operation relative to its transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OpPosition {
    /// Before the transform.
    Before,
    /// After the transform.
    After,
    /// Between the transform and this one.
    Between(LinesSpec),
}

impl AxisTransform {
    /// The box after the transform of a rank's box.
    pub fn after(&self, part: &Box3) -> Box3 {
        match &self.columns {
            Some(columns) if self.ragged_to.is_some() => columns.merged(part),
            Some(columns) => columns.split(part, total_len(&self.to)),
            None => part.with_axis(self.axis, total_len(&self.to)),
        }
    }

    /// Whether it changes the indices that a rank holds along `axis`.
    pub fn changes(&self, axis: usize) -> bool {
        axis == self.axis || (self.columns.is_some() && axis == 2)
    }

    /// The roles of the axes, if ragged lines determine them.
    pub fn axes(&self) -> Option<Axes> {
        let between = self.fused_op.as_ref().and_then(|op| op.ragged.as_ref());
        let ragged = self.ragged_from.as_ref().or(self.ragged_to.as_ref()).or(between)?;
        Some(Axes { along: self.axis, lanes: ragged.lanes, planes: 3 - self.axis - ragged.lanes })
    }

    /// The box, before or after, in which lines along the axis are not merged into columns.
    pub fn lines_in(&self, part: &Box3) -> Box3 {
        let splits = self.columns.is_some() && self.ragged_from.is_some();
        if splits { self.after(part) } else { *part }
    }
}

/// The elements of the smallest box that holds every array between these transforms of a rank's box, which is `leave`
/// after them.
pub(super) fn largest_between(transforms: &[AxisTransform], leave: &Box3) -> usize {
    let mut shape = leave.shape();
    let mut largest = [0; 3];
    for transform in transforms[1..].iter().rev() {
        shape[transform.axis] = total_len(&transform.from);
        (0..3).for_each(|axis| largest[axis] = largest[axis].max(shape[axis]));
    }
    largest.iter().product()
}
