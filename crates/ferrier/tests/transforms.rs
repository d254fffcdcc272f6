//! Properties of transforms beyond the case table.

mod bits;
mod common;
mod long;
mod modes;
mod operators;
mod properties;
mod recipes;
mod solve;
mod spectral;
