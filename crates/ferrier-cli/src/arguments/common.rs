//! Options of several commands.

use clap::Args;
use ferrier::{Compress, DeviceSpec, Precision, device::DEVICES};

use super::modes::ModesArgs;
use super::shape::{AxisList, Grid, LayoutName, UserShape};
use super::switches::{OrderArgs, SwitchArgs};
use super::tiling::TilingArgs;
use super::words::{self, COMPRESS, KindName, PRECISIONS, words};

/// How plans are run.
#[derive(Args, Clone, Debug, Default)]
pub struct ExecutionArgs {
    /// Threads of each rank [default: cores / ranks]
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    #[arg(long, value_name = "NAME", help = words::exchanges())]
    pub exchange: Option<String>,
    #[arg(long, value_name = "NAME", help = words::kernels())]
    pub kernel: Option<String>,
    /// Which messages are encoded [default: between-nodes if there are several nodes, else between-ranks]
    #[arg(long, value_parser = words(COMPRESS), value_name = "WHAT")]
    pub compress: Option<Compress>,
    /// Emulate a network between in-process ranks, such as 10gbit:5us or 100mbit:1ms: messages arrive
    /// after the time of such a link, and each rank is a node
    #[arg(long, value_name = "RATE:LATENCY")]
    pub wire: Option<ferrier::Wire>,
}

impl ExecutionArgs {
    /// As options of a command that makes a plan.
    pub fn common(&self, ranks: Option<usize>) -> CommonArgs {
        CommonArgs { ranks, execution: self.clone(), ..CommonArgs::default() }
    }
}

/// Options of every command that makes a plan.
#[derive(Args, Clone, Debug, Default)]
pub struct CommonArgs {
    /// Number of ranks, as threads of this process; under mpiexec the processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    #[command(flatten)]
    pub execution: ExecutionArgs,
    #[arg(long, value_name = "NAME", help = words::codecs())]
    pub codec: Option<String>,
    /// Allowed error relative to the norm of the result: messages between ranks are encoded with as few
    /// bytes as keep it
    #[arg(long, value_name = "E")]
    pub tolerance: Option<f64>,
    #[arg(long, value_name = "NAME", default_value_t = DeviceSpec::Cpu, help = words::table("Where arrays are stored and transformed", DEVICES.iter().map(|entry| (entry.name, entry.summary))) + "; kernels of a GPU are auto, native, cufft")]
    pub device: DeviceSpec,
    /// Axes to transform, such as 0,2; negative numbers count from the last axis. Real transforms halve
    /// the last axis listed [default: all]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub axes: Option<AxisList>,
    /// The axis that a real transform halves [default: the last one listed]
    #[arg(long, value_name = "A", allow_hyphen_values = true)]
    pub halved: Option<isize>,
    /// Rank grid of the input, one number per axis, such as 2x2x1
    #[arg(long, value_name = "GRID")]
    pub in_grid: Option<Grid>,
    /// Rank grid of the output
    #[arg(long, value_name = "GRID")]
    pub out_grid: Option<Grid>,
    /// Make the bits of the result independent of the number of ranks
    #[arg(long)]
    pub reproducible: bool,
    #[command(flatten)]
    pub modes: ModesArgs,
    #[command(flatten)]
    pub tiling: TilingArgs,
    #[command(flatten)]
    pub switches: SwitchArgs,
}

/// The problem of `bench`, `plan` and `tune`.
#[derive(Args, Clone, Debug)]
pub struct ProblemArgs {
    /// 256 (a cube), 256x256x128, 512x512 (two axes), or 1d:16777216 (one axis, distributed over all ranks)
    pub shape: UserShape,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// Precision of elements and arithmetic
    #[arg(long, value_parser = words(PRECISIONS), default_value = "f64")]
    pub precision: Precision,
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
    pub orders: OrderArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}
