//! A guide: five minutes from the first transform to MPI, then one page per topic.
//!
//! | page | what it shows |
//! | --- | --- |
//! | [`first`] | a transform on four in-process ranks, forward and back |
//! | [`mpi`] | the same program under any `mpiexec` |
//! | [`layouts`] | how arrays are split over ranks, own boxes, memory order |
//! | [`arrays`] | strides, ghost cells, padded rows, interleaved batches, lists of fields |
//! | [`transforms`] | real, cosine and sine transforms, batches, truncated spectra, scaling |
//! | [`calls`] | in place, workspaces, operators, a scale per call |
//! | [`tuning`] | choices, efforts, wisdom, overlap |
//! | [`tolerance`] | fewer bytes on the wire, with a certified error |
//! | [`gpu`] | the same plan on NVIDIA GPUs |
//! | [`errors`] | what errors say and what happens to the other ranks |

#[doc = include_str!("first.md")]
pub mod first {}

#[doc = include_str!("mpi.md")]
pub mod mpi {}

#[doc = include_str!("layouts.md")]
pub mod layouts {}

#[doc = include_str!("arrays.md")]
pub mod arrays {}

#[doc = include_str!("transforms.md")]
pub mod transforms {}

#[doc = include_str!("calls.md")]
pub mod calls {}

#[doc = include_str!("tuning.md")]
pub mod tuning {}

#[doc = include_str!("tolerance.md")]
pub mod tolerance {}

#[doc = include_str!("gpu.md")]
pub mod gpu {}

#[doc = include_str!("errors.md")]
pub mod errors {}
