//! Device `cuda`: the same recipes with arrays in GPU memory.
//!
//! Nothing of CUDA is needed to build: the driver, NVRTC and cuFFT are loaded
//! at run time ([`info`] says what was found). A pass over memory is one launch
//! of our own kernel, which loads lines from wherever they lie (this rank's
//! array, a neighbour's, a receive buffer), transforms them and stores them
//! where they are wanted; or cuFFT, where that is faster.
//!
//! [`Redistribution`](crate::Redistribution), [`PencilFamily`](crate::PencilFamily), [`Halo`](crate::Halo) and
//! [`GhostSum`](crate::GhostSum) have a constructor `on` for a GPU. As plans do, they enqueue their work on a stream and return; what
//! works on the same arrays should have the same stream (`set_stream`), or be synchronised.

mod halo;
mod redistribution;
mod streams;

pub use crate::copies::cuda::{DeviceElements, DeviceElementsMut, DeviceField, DeviceSum};
pub use crate::exec::cuda::{
    Cuda, CudaInfo, DeviceArray, DeviceCodec, DeviceData, DeviceDataMut, Event, Gpu, GpuInfo, Plan, RawArray,
    check, gpu_count, info,
};
