//! What crosses between ranks: codecs, tolerances, links, events.

mod codec;
mod common;
mod events;
mod tolerance;
mod wire;
