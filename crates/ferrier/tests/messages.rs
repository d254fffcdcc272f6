//! What crosses between ranks, and to and from files: codecs, tolerances, links, events, files.

mod codec;
mod common;
mod events;
mod files;
mod tolerance;
mod wire;
