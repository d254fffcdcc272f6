//! `libferrier`: Ferrier for C, C++ and Fortran.
//!
//! `include/ferrier.h` is generated from this crate and has the documentation of every function;
//! `include/ferrier.hpp` and `fortran/ferrier.f90` are written on top of it. Rust programs use the crate `ferrier`.
//!
//! - Handles are numbers in the shape of pointers, looked up in a table ([`handle`]): one that was destroyed, is
//!   NULL or belongs to another kind of object gives an error, and nothing is ever read through it.
//! - Everything else that C hands over is checked where it can be ([`pointer`]); that module holds the unsafe code.
//! - Every function returns a [`Status`](status::Status); the text of the last error is kept per thread. Nothing
//!   unwinds out of this library.

mod elements;
mod engine;
#[cfg(feature = "cuda")]
mod engine_cuda;
pub mod handle;
mod json;
mod padded;
pub mod pointer;

// In the order of the header.
pub mod status;
pub mod text;

pub mod info;

pub mod comm;

pub mod problem;

pub mod layout;

pub mod options;

pub mod plan;

pub mod call;

pub mod operator;

pub mod named;

pub mod make;

pub mod array;

pub mod report;

pub mod certificate;

pub mod draft;

pub mod redistribution;

pub mod halo;

pub mod ghost_sum;
