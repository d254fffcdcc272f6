//! Zarr stores of format 3, by the crate `zarrs`.
//!
//! A chunk (a shard, where there are shards) is a file that exactly one rank writes: where the boxes of ranks cut
//! chunks, data goes to a layout of whole chunks first.

mod blosc;
mod blosc_codec;
mod chunks;
mod folder;
mod metadata;
mod reader;
mod slice;
mod store;
mod writer;

pub(super) use reader::ZarrReader;
pub(super) use writer::ZarrWriter;
