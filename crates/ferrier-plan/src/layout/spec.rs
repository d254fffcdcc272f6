//! Specification of a layout, before the number of ranks is known.

use serde::{Deserialize, Serialize};

use super::box3::{Box3, Order};
use super::grid::{best_grid, grid_boxes};
use super::partition::{Layout, check_size};
use crate::error::{Error, Invalid, Result};
use crate::setters::setters;

/// How an array is distributed over ranks; becomes a [`Layout`] once the shape and the number of ranks are known.
///
/// ```
/// use ferrier::{Box3, LayoutSpec};
/// let layout = LayoutSpec::slabs(0).layout([8, 4, 4], 2)?;
/// assert_eq!(layout.boxes()[1], Box3::new([4, 0, 0], [8, 4, 4]));
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayoutSpec {
    /// Which axes are split.
    pub split: Split,
    /// The number of parts of each axis; `None`: chosen from the shape and the number of ranks.
    pub grid: Option<[usize; 3]>,
    /// The memory order of the axes.
    pub order: Order,
}

/// Which axes of an array are split over ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Split {
    /// Any axis may be split.
    Bricks,
    /// Only this axis is split.
    Slabs(usize),
    /// This axis is not split, the other two are.
    Pencils(usize),
    /// A list of boxes, one per rank.
    Boxes(Vec<Box3>),
    /// The box of the calling rank; a plan gathers those of the other ranks.
    #[serde(rename = "Mine")]
    Local(Box3),
    /// The planner chooses (outputs only).
    #[serde(rename = "Best")]
    Unconstrained,
}

impl LayoutSpec {
    fn new(split: Split) -> Self {
        LayoutSpec { split, grid: None, order: Order::C }
    }

    /// Any axis may be split.
    pub fn bricks() -> Self {
        Self::new(Split::Bricks)
    }

    /// Only `axis` is split.
    pub fn slabs(axis: usize) -> Self {
        Self::new(Split::Slabs(axis))
    }

    /// `axis` is not split, the other two are.
    pub fn pencils(axis: usize) -> Self {
        Self::new(Split::Pencils(axis))
    }

    /// A list of boxes, one per rank; checked by [`layout`](Self::layout).
    pub fn boxes(boxes: Vec<Box3>) -> Self {
        Self::new(Split::Boxes(boxes))
    }

    /// The box of the calling rank; the boxes of the other ranks are gathered when the plan is made.
    pub fn local(own: Box3) -> Self {
        Self::new(Split::Local(own))
    }

    /// The layout in which the transform ends at the least cost (outputs only).
    pub fn unconstrained() -> Self {
        Self::new(Split::Unconstrained)
    }

    setters! {
        /// Sets the number of parts of each axis, instead of a grid chosen from the shape and the number of ranks.
        /// Only for bricks, slabs and pencils.
        grid(grid: [usize; 3]) = Some(grid);

        /// Sets the memory order of the axes (default: C).
        order(order: Order) = order;
    }

    /// The layout for this shape and number of ranks.
    ///
    /// # Errors
    /// [`Error::Layout`] for an axis above 2, a grid whose size is not the number of ranks or that splits an axis
    /// that must be whole, boxes that do not tile the shape; and for [`local`](Self::local) and
    /// [`unconstrained`](Self::unconstrained), which need a plan.
    pub fn layout(&self, shape: [usize; 3], ranks: usize) -> Result<Layout> {
        if ranks == 0 {
            return fail(
                Invalid::new("ranks", "a layout needs at least one rank, got 0").expected("1 or more").got(0),
            );
        }
        check_size(shape)?;
        let whole = match &self.split {
            Split::Bricks => [false; 3],
            Split::Slabs(axis) => std::array::from_fn(|a| a != *axis),
            Split::Pencils(axis) => std::array::from_fn(|a| a == *axis),
            Split::Boxes(boxes) => return self.layout_of_boxes(shape, ranks, boxes),
            Split::Local(_) => {
                return fail(Invalid::new("local", "the boxes of the other ranks are known only to a plan"));
            }
            Split::Unconstrained => {
                return fail(Invalid::new("unconstrained", "only a plan knows where its output falls best"));
            }
        };
        if let Split::Slabs(axis) | Split::Pencils(axis) = self.split
            && axis > 2
        {
            let message = format!("axes are 0, 1 and 2; got {axis}");
            return fail(Invalid::new("axis", message).expected("0, 1 or 2").got(axis));
        }
        let grid = match self.grid {
            Some(grid) => check_grid(grid, ranks, whole)?,
            None => best_grid(shape, ranks, whole),
        };
        Ok(Layout::trusted(shape, grid_boxes(shape, grid, ranks), self.order))
    }

    fn layout_of_boxes(&self, shape: [usize; 3], ranks: usize, boxes: &[Box3]) -> Result<Layout> {
        if self.grid.is_some() {
            return fail(Invalid::new("grid", "a list of boxes takes no grid"));
        }
        if boxes.len() != ranks {
            let message = format!("{} boxes were given for {ranks} ranks", boxes.len());
            return fail(Invalid::new("boxes", message).expected(ranks).got(boxes.len()));
        }
        Layout::from_boxes(shape, boxes.to_vec(), self.order)
    }
}

fn fail<T>(invalid: Invalid) -> Result<T> {
    Err(Error::Layout(invalid))
}

fn check_grid(grid: [usize; 3], ranks: usize, whole: [bool; 3]) -> Result<[usize; 3]> {
    let text = format!("{}x{}x{}", grid[0], grid[1], grid[2]);
    let size = grid.iter().try_fold(1usize, |size, &g| size.checked_mul(g));
    if size != Some(ranks) {
        let size = size.map_or("too many".to_string(), |size| size.to_string());
        let message = format!("the grid {text} has {size} ranks, but there are {ranks}");
        return fail(Invalid::new("grid", message).expected(format!("a grid of {ranks} ranks")).got(text));
    }
    if let Some(axis) = (0..3).find(|&a| whole[a] && grid[a] != 1) {
        let message = format!("the grid {text} splits axis {axis}, which this layout keeps whole");
        return fail(Invalid::new("grid", message).expected(format!("1 part along axis {axis}")).got(text));
    }
    Ok(grid)
}
