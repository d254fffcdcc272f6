//! heFFTe's interfaces on top of Ferrier.
//!
//! * `heffte_c.h`: the functions of module [`c`].
//! * The headers for C++ and the Fortran modules are thin: they gather arguments and call module [`abi`], whose functions
//!   `include/ferrier_heffte.h` declares.
//! * Both make a [`Transform`](transform::Transform): boxes, options and the plans of Ferrier that calls needed so far.
//!
//! heFFTe's dimension 0 is the fastest in memory by default, Ferrier's axis 2 is: dimension d is axis 2 - d.

pub mod abi;
pub mod c;
mod choice;
mod engine;
mod geometry;
mod transform;

/// Programs and scripts look for this name to tell this library from heFFTe's own.
#[unsafe(no_mangle)]
pub static ferrier_heffte_drop_in: std::ffi::c_int = 1;
