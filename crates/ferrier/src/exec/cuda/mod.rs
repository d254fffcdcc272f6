//! Device `cuda`: the same recipes with arrays in GPU memory.
//!
//! Nothing of CUDA is needed to build: the driver, NVRTC and cuFFT are loaded
//! at run time ([`info`] says what was found). A pass over memory is one launch
//! of our own kernel, which loads lines from wherever they lie (this rank's
//! array, a neighbour's, a receive buffer), transforms them and stores them
//! where they are wanted; or cuFFT, where that is faster.

mod apply;
mod array;
mod batch;
mod bind;
mod codec;
mod draft;
mod fft;
mod gpu;
mod launch;
mod library;
mod memory;
mod plan;
mod run;
mod tables;
mod touch;
mod tuning;
mod upload;
mod whole;

#[doc(hidden)]
pub use array::Streams;
pub use array::{DeviceArray, DeviceData, DeviceDataMut, RawArray, Span};
pub use codec::DeviceCodec;
pub use draft::{CudaDraft, CudaMemory, CudaPlanner};
pub use gpu::Gpu;
pub use library::{CudaInfo, GpuInfo, check, gpu_count, info};
pub use memory::Event;
pub use plan::Plan;
