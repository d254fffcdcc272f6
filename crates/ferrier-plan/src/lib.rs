//! Planning of distributed Fourier transforms as pure functions.
//!
//! A [`Problem`] and a [`Choice`] give a [`Recipe`] ([`design`]). A recipe gives a [`schedule`] of passes over
//! memory, cut into [`tiles`] and put in [`order`]; [`lowering`] gives the pieces of memory that each pass accesses,
//! with offsets and strides. Nothing here starts a thread, opens a file, reads a clock or the environment.
//!
//! Lengths and offsets are in *elements* (real or complex), *scalars* (a complex element is two) or *bytes*, as
//! documented at each item.
#![forbid(unsafe_code)]

mod choice;
pub mod cost;
mod design;
mod error;
pub mod geometry;
mod kind;
pub mod layout;
pub mod lowering;
pub mod messages;
pub mod modes;
pub mod order;
mod problem;
pub mod recipe;
pub mod ring;
mod rounding;
pub mod schedule;
mod setters;
mod speeds;
mod strides;
pub mod threads;
pub mod tiles;

pub use choice::{Choice, Compress, Decomposition, MemoryUse, Overlap, Progress, RAW, Tiling};
pub use design::{Designed, Freedom, design, design_free, design_on};
pub use error::{Error, Invalid, Result};
pub use ferrier_kernel::Precision;
pub use kind::{Kind, Scale, Sign};
pub use layout::{Box3, Layout, LayoutSpec, Order};
pub use modes::{Keep, Radii};
pub use problem::{Problem, Tolerance};
pub use recipe::{Recipe, Step, StepTraffic};
pub use speeds::MachineSpeeds;
pub use strides::{ArrayStrides, StridesSpec};
