//! The oracle that Ferrier is tested against.
//!
//! It does not use `ferrier`: boxes are pairs of triples, orders are
//! permutations, kinds are plain enums, so that an error in the library's own
//! types cannot hide itself.
//!
//! - [`dft`]: the naive transform in double-double arithmetic (about 1e-30),
//!   so that measured errors are those of the library alone;
//! - [`mixed`]: a transform of its own for each axis, truncation and padding;
//! - [`cases`]: the table `cases.txt`, run over every exchange, kernel and
//!   number of ranks;
//! - [`tiling`]: random boxes that tile a shape;
//! - [`rng`]: a seeded generator that prints its seed when a test fails, and
//!   fields whose values depend on the global index alone;
//! - [`measure`]: relative L2 error and the tolerance `c * eps * log2 N`;
//! - [`mod@watchdog`]: turns a hang into a failure.

pub mod cases;
mod dd;
pub mod dft;
pub mod measure;
pub mod mixed;
pub mod rng;
pub mod tiling;
pub mod watchdog;

pub use cases::{Case, Kind, RANKS, Scale, Split};
pub use measure::{Errors, Sum, Ulp, tolerance};
pub use rng::{Field, Rng};
pub use tiling::{Tile, tiles};
pub use watchdog::watchdog;
