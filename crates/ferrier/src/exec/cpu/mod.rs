//! Backend `cpu`: passes on the threads of a rank, in main memory.

pub(crate) mod bind;
pub(crate) mod coding;
mod copy;
pub(crate) mod line_op;
pub(crate) mod lines;
pub(crate) mod pass;
mod plane_store;
mod sparse_lines;
mod twiddle;
