//! The problem of `bench`, `plan` and `tune`.

use clap::Args;

use super::common::CommonArgs;
use super::names::{KindName, PrecisionName};
use super::shape::{LayoutName, UserShape};

/// The problem of `bench`, `plan` and `tune`.
#[derive(Args, Clone, Debug)]
pub struct ProblemArgs {
    /// 256 (a cube), 256x256x128, 512x512 (two axes), or 1d:16777216 (one axis, distributed over all ranks)
    pub shape: UserShape,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// Precision of elements and arithmetic
    #[arg(long, value_enum, default_value_t = PrecisionName::F64)]
    pub precision: PrecisionName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "slabs:0")]
    pub in_layout: LayoutName,
    /// How the output is split: as above, or same, or best (the layout that needs no reshape)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "same")]
    pub out_layout: LayoutName,
    /// Number of arrays that one plan transforms
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub batch: usize,
    #[command(flatten)]
    pub common: CommonArgs,
}
