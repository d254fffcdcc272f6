//! Device `cuda`: the same recipes with arrays in GPU memory.
//!
//! Nothing of CUDA is needed to build: the driver, NVRTC and cuFFT are loaded
//! at run time ([`info`] says what was found). A pass over memory is one launch
//! of our own kernel, which loads lines from wherever they lie (this rank's
//! array, a neighbour's, a receive buffer), transforms them and stores them
//! where they are wanted; or cuFFT, where that is faster.

mod array;
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

pub use array::{DeviceArray, DeviceData, DeviceDataMut, RawArray};
pub(crate) use binder::{CudaBinder, Engine};
pub use codec::DeviceCodec;
pub use executor::Cuda;
pub use gpu::Gpu;
pub use library::{CudaInfo, GpuInfo, check, gpu_count, info};
pub use memory::Event;
pub use plan::Plan;
