//! Arguments of `ferrier transform`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{CommonArgs, Direction, Grid, InputArgs, LayoutName, OutputArgs, ScaleName};

/// `ferrier transform`.
#[derive(Args, Debug)]
pub struct TransformArgs {
    /// The array: 1 to 3 axes, float32/64 or complex64/128. An .npy file in C or Fortran order; an array of a Zarr
    /// store, such as a.zarr or a.zarr::density, or a part of it, such as a.zarr::density[3] or
    /// a.zarr::density[3,:,0:64]; a raw file (--raw-shape)
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The result (may be IN itself): .zarr is a Zarr store, .raw, .bin and .dat are raw, all others are .npy; the
    /// file appears when it is complete
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Direction of the transform
    #[arg(long, value_enum, default_value_t = Direction::Forward)]
    pub direction: Direction,
    /// Real transform: real input forward (rfftn), real output backward (irfftn)
    #[arg(long, conflicts_with = "kinds")]
    pub real: bool,
    /// Lengths of the axes in space, such as 128x128x128, for --direction backward from kept modes
    #[arg(long, value_name = "SHAPE", conflicts_with = "last")]
    pub points: Option<Grid>,
    /// Real length of the halved axis, for --real --direction backward [default: 2 (m - 1)]
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// Scale of the result; numpy: none forward, full backward
    #[arg(long, value_enum, default_value_t = ScaleName::Numpy)]
    pub scale: ScaleName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    /// [default: slabs of the file's slowest axis]
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true)]
    pub in_layout: Option<LayoutName>,
    /// How the output is split: as above, or same, or best (forward only: the layout that needs no reshape)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "slabs:0")]
    pub out_layout: LayoutName,
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub input_file: InputArgs,
    #[command(flatten)]
    pub output_file: OutputArgs,
}
