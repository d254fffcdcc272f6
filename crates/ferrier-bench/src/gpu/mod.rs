//! Benchmarks on GPUs.

mod cufft;
mod device;
mod halo;
mod hosted;
mod operator;
mod transform;
mod tune;

pub use device::{copy_speed, of_rank};
pub use halo::halo_bench;
pub use hosted::HostedGpuPlan;
pub use operator::operator_bench;
pub use transform::contest;
pub use tune::GpuTuning;
