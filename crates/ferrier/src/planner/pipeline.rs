//! How a reshape is pipelined.

use serde::Serialize;

/// The pipeline of a reshape, in the terms of the literature (Hoefler and Zerah, 2007): instead of one exchange there
/// are `depth` smaller ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pipeline {
    /// The step's name, as in `StepTime`.
    pub name: String,
    /// Of `backward`.
    pub backward: bool,
    /// Number of exchanges (tiles).
    pub depth: usize,
    /// The most bytes that this rank receives from others in one of them, before any codec.
    pub bytes: u64,
}
