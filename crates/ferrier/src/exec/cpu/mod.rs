//! Backend `cpu`: passes on the threads of a rank, in main memory.

mod arrays;
mod bases;
mod block_at;
mod coding;
mod copy;
mod executor;
mod line_op;
mod lines;
mod norm;
mod pass;
mod plane_store;
mod planes;
mod real_parts;
mod shares;
mod side;
mod spans;
mod sparse_lines;
mod tables;
mod tail;
mod twiddle;
mod worker;

pub use executor::Cpu;
pub(crate) use executor::CpuBinder;
