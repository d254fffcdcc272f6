//! Lowering: from the ends of a pass to pieces of memory with offsets and strides.

mod context;
mod ends;
mod pieces;
mod volumes;
mod workspace;

pub use context::{MemoryPolicy, RankContext, ReshapeTile};
pub use ends::EndStrides;
pub use pieces::MessageEnd;
pub use volumes::volumes;
pub use workspace::WorkspaceLayout;
