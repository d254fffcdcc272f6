//! Backend `cuda`: passes as launches of kernels, arrays in the memory of GPUs.

mod address_sets;
pub(crate) mod array;
mod binder;
mod codec;
mod cufft;
mod cufft_array;
mod cufft_lines;
mod executor;
mod formulas;
mod fused_op;
mod gpu;
mod launch;
mod library;
mod line_tables;
mod memory;
mod plan;
mod sources;
mod table_buffer;
mod tuning;
mod work;

pub(crate) use address_sets::{AddressSet, AddressSets, WIDEST};
pub use array::{DeviceArray, DeviceData, DeviceDataMut, RawArray};
pub(crate) use binder::{CudaBinder, Engine};
pub use codec::DeviceCodec;
pub use executor::Cuda;
pub(crate) use executor::share_marks;
pub use gpu::Gpu;
pub(crate) use gpu::{Function, Grid, argument};
pub(crate) use launch::MOVE_THREADS;
pub use library::{CudaInfo, GpuInfo, check, gpu_count, info};
pub(crate) use line_tables::{Flow, MoveTable};
pub use memory::Event;
pub(crate) use memory::{Block, Pinned, Stream};
pub use plan::Plan;
pub(crate) use sources::{COMMON, MOVE};
pub(crate) use table_buffer::TableBuffer;
