//! Files: `.npy` arrays, and output that appears complete or not at all.

pub mod npy;
pub mod npy_box;
pub mod output;
mod pending;
pub mod signals;
