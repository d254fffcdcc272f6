//! Benchmarks of Ferrier, as the command `ferrier` runs them.
//!
//! - [`contest`]: transforms, in turn with other libraries ([`peers`]) or with other tiles.
//! - [`block_bench`]: a transform block by block, as papers time them.
//! - [`study`]: lists of options as one table with speed-up and efficiency.
//! - [`exchange_bench`]: exchanges alone. [`operator_bench`]: operators on the spectrum. [`halo_bench`]: ghost
//!   cells.
//! - [`codec_speed`], [`accuracy`]: codecs alone, and errors of transforms with codecs.
//! - [`hosted_plan`]: plans on any device, between arrays in main memory.
//! - [`charts`]: line charts, histograms and timelines as SVG, traces as JSON.
//!
//! Each benchmark takes a plain struct of options and returns a report. A report serialises to
//! JSON and has a `text` for terminals. Functions that take a [`Comm`](ferrier::Comm) are
//! collective: every rank calls them with the same options.

pub mod accuracy;
pub mod agree;
pub mod block_bench;
pub mod charts;
pub mod codec_speed;
pub mod contest;
pub mod exchange_bench;
pub mod failure;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod halo_bench;
pub mod hosted_plan;
pub mod noise;
pub mod operator_bench;
pub mod peers;
pub mod reference;
pub mod scalars;
pub mod study;
pub mod table;
pub mod test_function;
pub mod tiling;
pub mod timing;
pub mod view;
