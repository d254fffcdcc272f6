//! Options that several commands share, and what they mean for the library.

pub mod common;
pub mod duration;
pub mod help;
pub mod modes;
pub mod names;
pub mod problem;
pub mod setup;
pub mod shape;
pub mod tiling;
