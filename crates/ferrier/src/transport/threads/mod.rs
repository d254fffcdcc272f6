//! Transport `threads`: every rank is a thread of this process.

mod node_counters;
mod rank;
mod ranks;
mod transfer;
mod window;
mod wire;
mod world;

pub use ranks::{Ranks, ranks};
pub use wire::Wire;
