//! Options that several commands share, and what they mean for the library.

mod common;
mod files;
mod machine;
pub mod modes;
pub mod setup;
mod shape;
mod slow;
mod switches;
mod tiling;
mod words;

pub use common::{CommonArgs, ExecutionArgs, ProblemArgs};
pub use files::{InputArgs, OutputArgs};
pub use machine::{JobArgs, codec_of};
pub use shape::{Grid, LayoutName, UserShape, real_length};
pub use slow::SlowArgs;
pub use tiling::TileWord;
pub use words::{Direction, KindName, ScaleName, Words, duration, table, words};
