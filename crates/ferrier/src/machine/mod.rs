//! This machine: its processor, caches and memory; threads, buffers and waiting.

pub(crate) mod buffer;
mod copy_speed;
mod info;
mod memory_limit;
mod model;
mod pages;
mod placement;
pub(crate) mod pool;
mod send_ptr;
pub(crate) mod waiting;

pub(crate) use copy_speed::copy_seconds;
pub use copy_speed::{copy_speed, copy_time};
pub use info::{Cache, Info, cores, info};
pub(crate) use info::{last_level_bytes, level2};
pub use memory_limit::memory_left;
pub use model::model;
pub(crate) use pages::{advise_huge_pages, huge_page_setting, huge_pages_note};
pub(crate) use placement::own_socket;
pub use placement::{PciDevice, Placement, RankPlacement, binding_warnings};
pub(crate) use send_ptr::SendPtr;
