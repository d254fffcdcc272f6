//! Values of options.

use clap::ValueEnum;
use ferrier::{Compress, Precision, Progress};

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Sign -1: numpy's fftn, rfftn.
    Forward,
    /// Sign +1: numpy's ifftn, irfftn.
    Backward,
}

/// The factor of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleName {
    /// 1 forward, 1/N backward.
    Numpy,
    /// 1.
    None,
    /// 1/N.
    Full,
    /// 1/sqrt(N).
    Symmetric,
}

/// Complex or real input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindName {
    /// Complex to complex.
    C2c,
    /// Real to complex.
    R2c,
}

/// Which messages are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressName {
    /// Messages between nodes.
    BetweenNodes,
    /// Messages between ranks.
    BetweenRanks,
}

/// The precision of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionName {
    /// Single.
    F32,
    /// Double.
    F64,
}

/// How tiles in flight make progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressName {
    /// Passes poll.
    Poll,
    /// A thread of each rank polls.
    Thread,
}

impl From<CompressName> for Compress {
    fn from(name: CompressName) -> Compress {
        match name {
            CompressName::BetweenNodes => Compress::BetweenNodes,
            CompressName::BetweenRanks => Compress::BetweenRanks,
        }
    }
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Precision {
        match name {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::F64 => Precision::F64,
        }
    }
}

impl From<ProgressName> for Progress {
    fn from(name: ProgressName) -> Progress {
        match name {
            ProgressName::Poll => Progress::Poll,
            ProgressName::Thread => Progress::Thread,
        }
    }
}
