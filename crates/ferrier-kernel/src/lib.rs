//! Kernels: many 1-D transforms at once.
//!
//! A kernel is one file and one entry of [`KERNELS`]. It constructs [`Lines`]
//! of one length, kind and scale, which transform *blocks of lines*: load the
//! lines from strided memory ([`Strip`]s of this rank's memory, of another
//! rank's, of a receive buffer), transform them in cache, and store them to
//! strided memory. So packing, unpacking, transposing and scaling need no
//! passes of their own.

mod entry;
mod fftw;
mod gathered;
mod installed;
mod lines;
mod mkl;
mod native;
mod r2r;
mod real;
mod roots;
mod rustfft;
mod spec;
mod stream_copy;
mod table;

/// For the tests of this crate, so that they need not compile the kernels
/// again: kernel `native` on a given instruction set.
#[doc(hidden)]
pub mod internals {
    pub use crate::native::{Isa, lines_f32_on, lines_f64_on};
    pub use crate::roots::Roots;
}

pub use entry::KernelEntry;
pub use lines::{LineBlock, Lines, Repeat, StoreHint, Strip, fence};
pub use real::{Precision, Real};
pub use spec::{LineKind, LinesSpec, R2r};
pub use stream_copy::StreamCopy;
pub use table::{INSTALLED, KERNELS, UnknownSimd, find, lines, simd};
