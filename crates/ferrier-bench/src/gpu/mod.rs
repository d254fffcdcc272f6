//! Benchmarks on GPUs.

mod cufft;
mod device;
mod halo;
mod operator;
mod transform;

pub use device::{copy_speed, of_rank};
pub use halo::halo_bench;
pub use operator::operator_bench;
pub use transform::contest;
