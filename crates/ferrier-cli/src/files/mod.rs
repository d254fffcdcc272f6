//! Text files that appear complete or not at all, and the removal of unfinished files when a signal ends the process.
//! Files of arrays are those of the library, `ferrier::io`.

pub mod signals;
pub mod text;
