//! Copies of boxes between the arrays of ranks, of any element type: what redistributions and ghost cells are made of.
//!
//! A [`Pattern`] says which box of which rank's array goes where. A [`CopyPlan`] runs it: ranks of a node load from
//! each other's arrays, or from segments that the owner has packed; others get messages of an exchange.

mod bind;
mod bound_route;
mod box_copy;
mod copier;
mod copy_plan;
mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod element;
mod field;
mod node_link;
mod pattern;
mod sweep;

pub(crate) use box_copy::{BoxCopy, Place};
pub(crate) use copier::Copier;
pub use copier::CopyBackend;
pub(crate) use copy_plan::{CopyPlan, Settings};
pub(crate) use cpu::CpuCopier;
pub use element::Element;
pub use field::Field;
pub(crate) use pattern::{Pattern, Route, collect_routes};
pub(crate) use sweep::Planes;
