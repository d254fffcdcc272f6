//! The command line. Names are part of the contract.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use ferrier::{Device, codec::CODECS, device::DEVICES, exchange::EXCHANGES, kernel::KERNELS};

use crate::failure::Failure;
use crate::shape::{AxisList, Frame, Grid, LayoutName};

/// Fast Fourier transforms of arrays that are split over ranks.
#[derive(Debug, Parser)]
#[command(
    name = "ferrier",
    version,
    about = "Fast Fourier transforms of arrays that are split over ranks",
    after_help = "Examples:
  ferrier transform field.npy spectrum.npy --ranks 4
  ferrier bench 256 --ranks 2 --json result.json
  ferrier plan 256x256x128 --ranks 12 --in-layout bricks
  ferrier info
  mpiexec -n 4 ferrier bench 256

Exit codes: 0 done, 1 a result came out wrong, 2 bad input or a machine that refuses."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Transform an .npy file into another; the result equals numpy's.
    #[command(after_help = "Examples:
  ferrier transform a.npy b.npy                                  numpy.fft.fftn(a)
  ferrier transform b.npy a.npy --direction backward             numpy.fft.ifftn(b)
  ferrier transform a.npy b.npy --real --axes 0,2                numpy.fft.rfftn(a, axes=(0, 2))
  ferrier transform b.npy a.npy --direction backward --real --last 9
  ferrier transform a.npy b.npy --kinds dct2,c2c,none            scipy.fft.dct along axis 0, fft along axis 1
  ferrier transform a.npy b.npy --keep 64x64x64                  the lowest modes only
  ferrier transform b.npy a.npy --direction backward --points 128x128x128
  ferrier transform a.npy b.npy --ranks 4 --in-layout bricks --in-grid 2x2x1")]
    Transform(TransformArgs),
    /// Time a transform, check it, and say how close it is to the machine's limit.
    #[command(after_help = "Examples:
  ferrier bench 128 --ranks 4
  ferrier bench 256x256x128 --kind r2c --precision f32 --profile
  ferrier bench 256 --against fftw,mkl --json -
  ferrier bench 512 --device cuda --against cufft
  ferrier bench 128 --ranks 4 --exchange-only --svg exchanges.svg
  ferrier bench 128 --ranks 2 --tiles 4,8,16,32 --window 1,2,4 --svg tiles.svg
  ferrier bench 256 --ranks 2 --keep 128
  ferrier bench 128 --ranks 4 --tolerance 1e-4
  ferrier bench 128 --ranks 4 --codec block:16 --exchange ring
  ferrier bench 128 --ranks 2 --tiles 8 --breakdown --trace overlap.svg
  ferrier bench 256 --kind r2c --ranks 2 --apply laplacian
  ferrier bench 128 --ranks 2 --wire 10gbit:5us --variants blocking,th-0,th,new --budget 30s
  ferrier bench 1d:16777216 --ranks 4
  ferrier bench --codec-speed
  mpiexec -n 2 ferrier bench 256 --out-layout best --against fftw-mpi",
        mut_arg("shape", |shape| shape.required(false).required_unless_present("codec_speed").default_value_if("codec_speed", "true", "192")))]
    Bench(BenchArgs),
    /// Print the steps of a transform, what each rank sends, and the memory it needs.
    #[command(after_help = "Examples:
  ferrier plan 256 --ranks 12 --in-layout bricks
  ferrier plan 256 --ranks 12 --in-layout pencils:2 --out-layout best --json")]
    Plan(PlanArgs),
    /// Try choices for a problem, keep the fastest, and remember it.
    #[command(after_help = "Examples:
  ferrier tune 256 --ranks 4
  ferrier tune 256 --ranks 4 --effort patient --budget 5m --explain
  ferrier tune 256 --ranks 4 --apply
  ferrier tune 256 --ranks 4 --random 200 --svg spread.svg
  ferrier tune 256 --ranks 4 --cross other-machine.json")]
    Tune(crate::tune::TuneArgs),
    /// Measure errors of transforms with each codec, over ranks and over bits on the wire.
    #[command(after_help = "Examples:
  ferrier accuracy 64
  ferrier accuracy 128 --ranks 8 --codecs f32,f16,block:16 --json -
  ferrier accuracy 128 --ranks 2,4,8 --data smooth --svg accuracy.svg --csv accuracy.csv
  mpiexec -n 4 ferrier accuracy 64")]
    Accuracy(crate::accuracy::AccuracyArgs),
    /// The power spectrum of an .npy file, summed over shells of equal wave number.
    #[command(after_help = "Examples:
  ferrier spectrum field.npy
  ferrier spectrum field.npy --ranks 4 --lengths 1,1,2 --csv spectrum.csv --svg spectrum.svg")]
    Spectrum(crate::spectrum::SpectrumArgs),
    /// Convolve an .npy file with another: numpy's ifftn(fftn(a) * fftn(b)).
    #[command(after_help = "Examples:
  ferrier convolve field.npy kernel.npy out.npy                  periodic; a smaller kernel is padded
  ferrier convolve a.npy b.npy out.npy --linear                  scipy.signal.convolve(a, b)
  ferrier convolve field.npy kernel.npy out.npy --correlate --ranks 4")]
    Convolve(crate::convolve::ConvolveArgs),
    /// Solve an equation whose solution is known: see how exact, how fast, what a tolerance saves.
    Solve(crate::solve::SolveArgs),
    /// Look at, merge or forget what tuning has learned.
    #[command(after_help = "Examples:
  ferrier wisdom list
  ferrier wisdom show 1f2e3d4c
  ferrier wisdom merge other.json
  ferrier wisdom forget 1f2e3d4c")]
    Wisdom(crate::wisdom::WisdomArgs),
    /// Describe this machine as far as it matters here.
    Info(InfoArgs),
}

/// The way of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Sign -1: numpy's fftn, rfftn.
    Forward,
    /// Sign +1: numpy's ifftn, irfftn.
    Backward,
}

/// What the result is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleName {
    /// None forward, full backward.
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

/// What is encoded on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressName {
    /// What crosses between nodes.
    BetweenNodes,
    /// What crosses between ranks.
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

/// Options of every command that makes a plan.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Number of ranks, threads of this process; under mpiexec its processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    /// Threads of each rank [default: cores / ranks]
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    #[arg(long, value_name = "NAME", help = table("How ranks exchange data", EXCHANGES.iter().map(|m| (m.name, m.summary))))]
    pub exchange: Option<String>,
    #[arg(long, value_name = "NAME", help = codecs())]
    pub codec: Option<String>,
    /// The error that is allowed, relative to the norm of the result: what crosses between ranks is encoded
    /// with as few bytes as keep it
    #[arg(long, value_name = "E")]
    pub tolerance: Option<f64>,
    /// What is encoded [default: between-nodes where there are several, else between-ranks]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub compress: Option<CompressName>,
    #[arg(long, value_name = "NAME", help = table("What transforms the lines", KERNELS.iter().map(|m| (m.name, m.summary))) + "; on a GPU: auto, native, cufft")]
    pub kernel: Option<String>,
    #[arg(long, value_name = "NAME", default_value_t = Device::Cpu, help = table("Where arrays live and passes run", DEVICES.iter().map(|m| (m.name, m.summary))))]
    pub device: Device,
    /// Axes to transform, such as 0,2; negative ones count from the last. For real transforms the
    /// last one listed is halved [default: all]
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
    /// Pretend that ranks are apart: what one sends to another arrives after the time that such a link
    /// would take, as 10gbit:5us or 100mbit:1ms (in-process ranks; each is then a node)
    #[arg(long, value_name = "RATE:LATENCY")]
    pub wire: Option<ferrier::Wire>,
    #[command(flatten)]
    pub modes: crate::modes::ModesArgs,
    #[command(flatten)]
    pub tiling: crate::overlap::TilingArgs,
}

/// How plans are run, for commands that know their problems themselves.
#[derive(Args, Clone, Debug, Default)]
pub struct WayArgs {
    /// Threads of each rank [default: cores / ranks]
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    #[arg(long, value_name = "NAME", help = table("How ranks exchange data", EXCHANGES.iter().map(|m| (m.name, m.summary))))]
    pub exchange: Option<String>,
    #[arg(long, value_name = "NAME", help = table("What transforms the lines", KERNELS.iter().map(|m| (m.name, m.summary))))]
    pub kernel: Option<String>,
    /// What is encoded [default: between-nodes where there are several, else between-ranks]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub compress: Option<CompressName>,
    /// Pretend that ranks are apart, as 10gbit:5us (in-process ranks; each is then a node)
    #[arg(long, value_name = "RATE:LATENCY")]
    pub wire: Option<ferrier::Wire>,
}

impl WayArgs {
    /// The same as options of a command that makes a plan.
    pub fn common(&self, ranks: Option<usize>) -> Common {
        let WayArgs { threads, exchange, kernel, compress, wire } = self.clone();
        Common { ranks, threads, exchange, kernel, compress, wire, ..Common::default() }
    }
}

/// `ferrier transform`.
#[derive(Args, Debug)]
pub struct TransformArgs {
    /// The array: .npy, 1 to 3 axes, float32/64 or complex64/128, C or Fortran order
    #[arg(value_name = "IN.npy")]
    pub input: PathBuf,
    /// Where the result goes (may be IN.npy itself); it appears when it is whole
    #[arg(value_name = "OUT.npy")]
    pub output: PathBuf,
    /// Direction of the transform
    #[arg(long, value_enum, default_value_t = Direction::Forward)]
    pub direction: Direction,
    /// Real transform: real input forward (rfftn), real output backward (irfftn)
    #[arg(long, conflicts_with = "kinds")]
    pub real: bool,
    /// Lengths of the axes in space, such as 128x128x128, for --direction backward from modes that were kept
    #[arg(long, value_name = "SHAPE", conflicts_with = "last")]
    pub points: Option<Grid>,
    /// Real length of the halved axis, for --real --direction backward [default: 2 (m - 1)]
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// Scale of the result; numpy means none forward and full backward
    #[arg(long, value_enum, default_value_t = ScaleName::Numpy)]
    pub scale: ScaleName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    /// [default: slabs of the file's slowest axis]
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true)]
    pub in_layout: Option<LayoutName>,
    /// How the output is split: as above, or same, or best (forward: where the spectrum falls)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "slabs:0")]
    pub out_layout: LayoutName,
    #[command(flatten)]
    pub common: Common,
}

/// What `bench` and `plan` have in common: the problem.
#[derive(Args, Clone, Debug)]
pub struct ProblemArgs {
    /// 256 (a cube), 256x256x128, 512x512 (two axes), or 1d:16777216 (one axis, over all ranks)
    pub shape: Frame,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// Precision
    #[arg(long, value_enum, default_value_t = PrecisionName::F64)]
    pub precision: PrecisionName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "slabs:0")]
    pub in_layout: LayoutName,
    /// How the output is split: as above, or same, or best (where the spectrum falls)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "same")]
    pub out_layout: LayoutName,
    /// Arrays in one plan
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub batch: usize,
    #[command(flatten)]
    pub common: Common,
}

/// `ferrier bench`.
#[derive(Args, Debug)]
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
    /// Time the exchanges alone: every one (or --exchange) on the reshapes of this transform and over message sizes
    #[arg(long)]
    pub exchange_only: bool,
    /// Time codecs alone, on one core, into and out of a buffer as large as the array (192^3 unless SHAPE is
    /// given): every one, or that of --codec
    #[arg(long)]
    pub codec_speed: bool,
    /// Draw speed against message size (--exchange-only), or time against tiles (a list of --tiles)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print where the time goes: transforms, copies, posts, tests, waits; min, mean and max over ranks
    #[arg(long)]
    pub breakdown: bool,
    /// Write what every rank does when: a timeline for ui.perfetto.dev or chrome://tracing (FILE.json), or
    /// a drawing (FILE.svg)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = table("Time an operator on the spectrum, fused with the transforms and not", crate::applying::OPERATORS.iter().map(|m| (m.name, m.summary))))]
    pub apply: Option<String>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help = table("Compare ways to overlap, in one run", crate::variants::VARIANTS.iter().map(|v| (v.name, v.summary))))]
    pub variants: Vec<String>,
    /// Time to tune the variants that are tuned, all together, such as 60s or 5m [default: 20s]
    #[arg(long, value_name = "TIME", requires = "variants", value_parser = crate::tune::duration)]
    pub budget: Option<std::time::Duration>,
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help = table("Time these libraries too, interleaved with ours", crate::peers::PEERS.iter().map(|p| (p.name, p.summary))))]
    pub against: Vec<String>,
    /// Write the result as JSON; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
}

/// `ferrier plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// File of wisdom [default: FERRIER_WISDOM, else the user's own]
    #[arg(long, value_name = "FILE")]
    pub wisdom: Option<PathBuf>,
    /// Write the recipe as JSON, to stdout if no file is named
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// `ferrier info`.
#[derive(Args, Debug)]
pub struct InfoArgs {
    /// Write JSON, to stdout if no file is named
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Help that lists the codecs with their parameters.
fn codecs() -> String {
    let names: Vec<_> = CODECS.iter().map(|m| (format!("{}{}", m.name, m.parameter), m.summary)).collect();
    table("How values are encoded on their way", names.iter().map(|(name, summary)| (&**name, *summary)))
}

/// Help that lists the members of a table.
pub fn table<'a>(what: &str, members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let list: Vec<_> = members.map(|(name, summary)| format!("{name} ({summary})")).collect();
    format!("{what}: {}", list.join(", "))
}

/// clap's complaint, which takes several lines, on one.
pub fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::new(format!("no command; {}; try --help", commands(&text)));
    }
    let mut said: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip:"))
        .map(String::from)
        .collect();
    if error.kind() == ErrorKind::InvalidSubcommand {
        said.push(format!("({})", commands(&text)));
    }
    let said = said.join(" ");
    Failure::new(format!("{}; try --help", said.strip_prefix("error: ").unwrap_or(&said)))
}

/// The commands of that command of which clap's text shows the usage.
fn commands(text: &str) -> String {
    let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: ferrier")).unwrap_or_default();
    let mut command = Cli::command();
    for word in usage.split_whitespace() {
        let Some(own) = command.find_subcommand(word) else { break };
        command = own.clone();
    }
    let list: Vec<_> = command.get_subcommands().map(|command| command.get_name()).collect();
    format!("commands are: {}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn complaints_take_one_line() {
        for words in [
            &["ferrier"][..],
            &["ferrier", "dance"],
            &["ferrier", "solve"],
            &["ferrier", "solve", "dance"],
            &["ferrier", "bench"],
            &["ferrier", "bench", "8", "--kind", "c3c"],
            &["ferrier", "bench", "8", "--frobnicate"],
            &["ferrier", "bench", "8", "--ranks", "many"],
        ] {
            let failure = usage_failure(&Cli::try_parse_from(words).unwrap_err());
            assert_eq!(failure.line().lines().count(), 1);
            assert!(!failure.message.contains('\n'), "{}", failure.message);
        }
    }
}
