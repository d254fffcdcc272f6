//! Distribution of an array over ranks: one box per rank, and the order of the axes in memory.

mod box3;
mod boxes;
mod grid;
mod partition;
mod spec;

pub use box3::{Box3, Order};
pub use grid::factor_pairs;
pub(crate) use grid::{grid_boxes, largest_box};
pub use partition::Layout;
pub use spec::{LayoutSpec, Split};
