//! Ghost cells: copies of the cells of other ranks around the box of a rank.

mod ghosts;
mod pattern;
mod plan;
mod sum;

pub use ghosts::Ghosts;
pub use plan::{Halo, HaloInFlight};
pub use sum::GhostSum;
#[cfg(feature = "cuda")]
pub(crate) use sum::reversed;
