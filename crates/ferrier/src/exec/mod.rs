//! Plans and how they run: one driver over backends that bind and run passes.

pub(crate) mod array;
pub(crate) mod backend;
pub(crate) mod bind;
mod call;
pub(crate) mod certificate;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod cuts;
pub(crate) mod data;
mod events;
pub(crate) mod field_table;
mod memory;
mod operator;
pub(crate) mod plan;
pub(crate) mod progress;
mod report;
mod run;
pub(crate) mod variant;

pub(crate) use array::Rows;
pub use array::{Array, Workspace};
pub use backend::Backend;
pub use call::Call;
pub use certificate::Certificate;
pub use cpu::Cpu;
pub use data::{Data, DataMut, Fields, FieldsMut, Input, Output, Scalars, Span};
pub use events::{Event, EventKind, StepTime};
pub use field_table::FieldSpans;
pub use memory::Memory;
pub use operator::{Formula, ModeRun, Modes, Operator, Tables, bounded, pointwise};
pub use plan::{ArrayOf, Plan};
#[doc(hidden)]
pub use plan::{Fault, Meanwhile};
