//! Every codec: names, bytes, losses and quality.

mod common;
mod names;
mod properties;
mod quality;
mod roundtrip;
