//! Arguments of `ferrier bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ferrier_bench::contest::VARIANTS;
use ferrier_bench::operator_bench::OPERATORS;
use ferrier_bench::peers::PEERS;

use crate::arguments::{ProblemArgs, duration, table};
use crate::failure::{Outcome, fail};

/// `ferrier bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Timed repetitions [default: about a second's worth, at least 5]
    #[arg(long, value_name = "N")]
    pub repeat: Option<usize>,
    /// Transform in place
    #[arg(long)]
    pub in_place: bool,
    /// Print time, bytes and speed of every step
    #[arg(long)]
    pub profile: bool,
    /// Time exchanges alone, on the reshapes of this transform and over message sizes: all, or that of
    /// --exchange
    #[arg(long)]
    pub exchange_only: bool,
    /// With --exchange-only: the blocking time of each exchange against posting, testing and waiting around computation
    /// that takes as long
    #[arg(long, requires = "exchange_only")]
    pub overlap: bool,
    /// Time the exchange of so many ghost cells on each side of a periodic real array, in the input layout, and a
    /// copy of the same boxes without an exchange
    #[arg(long, value_name = "WIDTH")]
    pub halo: Option<usize>,
    /// Time codecs alone, on one core, into and out of a buffer as large as the array (192^3 unless SHAPE is
    /// given): all, or that of --codec
    #[arg(long)]
    pub codec_speed: bool,
    /// Lists of SHAPE, --ranks, --exchange, --codec, --kernel, --decomposition, --grid, --wire and most other options,
    /// such as --ranks 1,2,4,8, are a study: every combination in one run, with speed-up and efficiency. This writes
    /// its table as comma-separated values; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,
    /// The shape is that of one rank: arrays grow with the ranks
    #[arg(long)]
    pub weak: bool,
    /// Draw speed against message size (--exchange-only), time against tiles (a list of --tiles), or speed against
    /// ranks or rows (a study)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the time of transforms, copies, posts, tests and waits of both directions: min, mean and max over ranks
    #[arg(long)]
    pub breakdown: bool,
    /// Run every block of a transform on its own (each transform, pack, exchange, unpack), as papers time them, and
    /// print min, mean and max over ranks. The bits of the result are the same
    #[arg(long)]
    pub blocks: bool,
    /// Print the times of every step that the cost model predicts, beside the measured ones
    #[arg(long)]
    pub predict: bool,
    /// Write a timeline of every rank: for ui.perfetto.dev or chrome://tracing (FILE.json), or as a
    /// chart (FILE.svg)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// The timeline is that of the backward transform
    #[arg(long, requires = "trace")]
    pub trace_backward: bool,
    #[arg(long, value_name = "NAME", help = table("Time an operator on the spectrum, fused with the transforms and not", OPERATORS.iter().map(|entry| (entry.name, entry.summary))))]
    pub apply: Option<String>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help = table("Compare variants of overlap in one run", VARIANTS.iter().map(|entry| (entry.name, entry.summary))))]
    pub variants: Vec<String>,
    /// Time to tune all variants together, such as 60s or 5m [default: 20s]
    #[arg(long, value_name = "TIME", requires = "variants", value_parser = duration)]
    pub budget: Option<Duration>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help = table("Time these libraries too, in turn with Ferrier", PEERS.iter().map(|entry| (entry.name, entry.summary))))]
    pub against: Vec<String>,
    /// Write the result as JSON; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
}

impl BenchArgs {
    /// Checks `--repeat`.
    ///
    /// # Errors
    /// It is 0.
    pub fn check_repeat(&self) -> Outcome {
        match self.repeat {
            Some(0) => fail("--repeat 0: at least 1 repetition is needed"),
            _ => Ok(()),
        }
    }
}
