//! Arrays of plans in files: `.npy`, raw elements, and Zarr stores (feature `zarr`).
//!
//! Ranks read and write their own boxes. [`read`] and [`write()`] are whole; [`Reader`] and [`Writer`] are their
//! steps, with options. A file that is written appears when it is complete: until then it has a hidden name or none,
//! and an older file keeps its contents.
//!
//! ```
//! use ferrier::{LayoutSpec, Plan, Problem, io};
//!
//! let folder = tempfile::tempdir()?;
//! let (field, modes) = (folder.path().join("field.npy"), folder.path().join("modes.npy"));
//! let problem = Problem::r2c([8, 6, 4]).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0));
//! ferrier::ranks(4).run(|comm| {
//!     let mut plan = Plan::<f64>::new(&comm, &problem)?;
//!     let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
//!     input.fill_real(|_, [i, j, k]| (i + 2 * j + 3 * k) as f64);
//!     io::write(&comm, &field, plan.input_layout(), &input)?;
//!
//!     input.fill_real(|_, _| 0.0);
//!     io::read(&comm, &field, plan.input_layout(), &mut input)?;
//!     plan.forward(&input, &mut output)?;
//!     io::write(&comm, &modes, plan.output_layout(), &output)
//! })?;
//! assert_eq!(io::Reader::open(&modes)?.shape(), [8, 6, 3]);
//! # Ok::<(), ferrier::Error>(())
//! ```

mod dtype;
mod failure;
mod flat;
mod location;
mod npy;
mod options;
mod output;
mod pending;
mod reader;
mod view;
mod writer;
#[cfg(feature = "zarr")]
mod zarr;
#[cfg(not(feature = "zarr"))]
#[path = "no_zarr.rs"]
mod zarr;

pub use dtype::Dtype;
#[doc(hidden)]
pub use failure::io_text;
pub use location::Format;
pub use options::{Compression, WriteOptions};
pub use output::AtomicFile;
#[doc(hidden)]
pub use pending::{Watcher, watch};
pub use reader::{Raw, Reader, read};
pub use writer::{Writer, write};
