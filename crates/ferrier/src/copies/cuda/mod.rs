//! Copies in the memory of GPUs: kernels load from the arrays of other ranks, and messages are packed before they leave.

mod arrays;
mod copier;
mod sums;
mod sweep;

pub use arrays::{DeviceElements, DeviceElementsMut, DeviceField};
pub(crate) use copier::CudaCopier;
pub use sums::DeviceSum;
