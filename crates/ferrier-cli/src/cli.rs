//! The command line. Names are part of the contract.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    accuracy, bench, convolve, info, model, plan, simulate, solve, spectrum, transform, tune, wisdom,
};
use crate::failure::{Failure, Outcome, fail};
use crate::session::Session;

/// Fast Fourier transforms of distributed arrays.
#[derive(Debug, Parser)]
#[command(
    name = "ferrier",
    version,
    about = "Fast Fourier transforms of distributed arrays",
    after_help = "Examples:
  ferrier transform field.npy spectrum.npy --ranks 4
  ferrier bench 256 --ranks 2 --json result.json
  ferrier plan 256x256x128 --ranks 12 --in-layout bricks
  ferrier info
  mpiexec -n 4 ferrier bench 256

Exit codes: 0 success, 1 wrong result, 2 bad input or system error."
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Transform a file (.npy, Zarr, raw) into another; the result equals numpy's.
    #[command(after_help = "Examples:
  ferrier transform a.npy b.npy                                  numpy.fft.fftn(a)
  ferrier transform b.npy a.npy --direction backward             numpy.fft.ifftn(b)
  ferrier transform a.npy b.npy --real --axes 0,2                numpy.fft.rfftn(a, axes=(0, 2))
  ferrier transform b.npy a.npy --direction backward --real --last 9
  ferrier transform a.npy b.npy --kinds dct2,c2c,none            scipy.fft.dct along axis 0, fft along axis 1
  ferrier transform a.npy b.npy --keep 64x64x64                  the lowest modes only
  ferrier transform b.npy a.npy --direction backward --points 128x128x128
  ferrier transform a.npy b.npy --ranks 4 --in-layout bricks --in-grid 2x2x1
  ferrier transform run.zarr::density[3] modes.zarr --real --ranks 4 --chunks 64,64,64 --shards 256,256,256
  ferrier transform a.raw b.npy --raw-shape 256x256x256 --raw-dtype float32")]
    Transform(transform::args::TransformArgs),
    /// Time a transform, check its result, and compare it with the limit of the memory.
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
  ferrier bench 128 --ranks 2 --wire 10gbit:5us --variants blocking,new,new-0,th,th-0 --budget 30s
  ferrier bench 64,128 --ranks 1,2,4 --decomposition slab,pencil --csv study.csv --svg study.svg
  ferrier bench 128 --ranks 4 --tiles 8 --blocks
  ferrier bench 32 --ranks 4 --exchange-only --overlap --svg overlap.svg
  ferrier bench 1d:16777216 --ranks 4
  ferrier bench --codec-speed
  mpiexec -n 2 ferrier bench 256 --out-layout best --against fftw-mpi",
        mut_arg("shape", |shape| shape.required(false).required_unless_present("codec_speed").default_value_if("codec_speed", "true", "192")))]
    Bench(bench::args::BenchArgs),
    /// Print the steps of a transform, its messages and its memory.
    #[command(after_help = "Examples:
  ferrier plan 256 --ranks 12 --in-layout bricks
  ferrier plan 256 --ranks 12 --in-layout pencils:2 --out-layout best --json")]
    Plan(plan::PlanArgs),
    /// Predict times on machines that are given as files: scaling, roofline, what limits.
    #[command(after_help = "Examples:
  ferrier model 1024 --machine summit --ranks 24,96,384,1536,6144
  ferrier model 1024 --machine summit --processor cpu --per-node 40 --ranks 1280
  ferrier model 1024 --machine summit --ranks 6,24,96,384,1536,6144 --svg summit.svg
  ferrier model 2048 --machine h100-ndr --ranks 1024 --search
  ferrier model 512 --machine here.toml --ranks 8,16 --exchange hierarchical --tolerance 1e-6 --json
  ferrier model --measure here.toml
  mpiexec -n 8 ferrier model --measure here.toml
  ferrier model --list")]
    Model(model::ModelArgs),
    /// Simulate a transform on a machine that is given as a file, event by event.
    #[command(after_help = "Examples:
  ferrier simulate 1024 --machine summit --ranks 1536
  ferrier simulate 512 --machine genoa-hdr --ranks 64 --tiles 16 --trace overlap.svg
  ferrier simulate 512 --machine genoa-hdr --ranks 64 --slow-node 3=2
  ferrier simulate 1024 --machine summit --ranks 96 --slow-link 7=2 --noise 0.05
  ferrier simulate 256 --machine genoa-hdr --ranks 64 --engine simgrid
  ferrier simulate 256 --machine summit --ranks 24 --export goal --to call.goal")]
    Simulate(simulate::SimulateArgs),
    /// Search for the fastest choice for a problem and store it as wisdom.
    #[command(after_help = "Examples:
  ferrier tune 256 --ranks 4
  ferrier tune 256 --ranks 4 --effort patient --budget 5m --explain
  ferrier tune 256 --ranks 4 --apply
  ferrier tune 256 --ranks 4 --random 200 --svg spread.svg
  ferrier tune 128 --ranks 4 --wire 10gbit:5us --random 200 --tune-only T,W,F --svg spread.svg
  ferrier tune 128 --ranks 4 --wire 10gbit:5us --start paper
  ferrier tune 256 --ranks 4 --cross other-machine.json
  ferrier tune --measure-machine --ranks 4",
        mut_arg("shape", |shape| shape.required(false).required_unless_present("measure_machine").default_value_if("measure_machine", "true", "64")))]
    Tune(tune::TuneArgs),
    /// Measure errors of transforms with each codec, over ranks and over bits on the wire.
    #[command(after_help = "Examples:
  ferrier accuracy 64
  ferrier accuracy 128 --ranks 8 --codecs f32,f16,block:16 --json -
  ferrier accuracy 128 --ranks 2,4,8 --data smooth --svg accuracy.svg --csv accuracy.csv
  mpiexec -n 4 ferrier accuracy 64")]
    Accuracy(accuracy::AccuracyArgs),
    /// Print the power spectrum of a file (.npy, Zarr, raw), summed over shells of equal wave number.
    #[command(after_help = "Examples:
  ferrier spectrum field.npy
  ferrier spectrum run.zarr::velocity[2,0]
  ferrier spectrum field.npy --ranks 4 --lengths 1,1,2 --csv spectrum.csv --svg spectrum.svg")]
    Spectrum(spectrum::SpectrumArgs),
    /// Convolve a file (.npy, Zarr, raw) with another: numpy's ifftn(fftn(a) * fftn(b)).
    #[command(after_help = "Examples:
  ferrier convolve field.npy kernel.npy out.npy                  periodic; a smaller kernel is padded
  ferrier convolve a.npy b.npy out.npy --linear                  scipy.signal.convolve(a, b)
  ferrier convolve field.npy kernel.npy out.npy --correlate --ranks 4")]
    Convolve(convolve::ConvolveArgs),
    /// Solve an equation with a known solution: print errors, times and bytes.
    Solve(solve::SolveArgs),
    /// List, merge or remove wisdom, the stored results of tuning.
    #[command(after_help = "Examples:
  ferrier wisdom list
  ferrier wisdom show 1f2e3d4c
  ferrier wisdom merge other.json
  ferrier wisdom forget 1f2e3d4c")]
    Wisdom(wisdom::WisdomArgs),
    /// Describe this machine: processor, memory, MPI, GPUs.
    Info(info::InfoArgs),
}

impl Command {
    /// Runs the subcommand. Collective over processes.
    ///
    /// # Errors
    /// Those of the subcommand.
    pub fn run(&self, session: &Session) -> Outcome {
        match self {
            Command::Transform(args) => transform::run(args, session),
            Command::Bench(args) => bench::run(args, session),
            Command::Plan(args) => plan::run(args, session),
            Command::Model(args) => model::run(args, session),
            Command::Simulate(args) => simulate::run(args, session),
            Command::Tune(args) => tune::run(args, session),
            Command::Accuracy(args) => accuracy::run(args, session),
            Command::Spectrum(args) => spectrum::run(args, session),
            Command::Convolve(args) => convolve::run(args, session),
            Command::Solve(args) => solve::run(args, session),
            Command::Wisdom(args) => session.first(|| wisdom::run(args)),
            Command::Info(args) => info::run(args, session),
        }
    }
}

/// The arguments of `bench` in a command line.
///
/// # Errors
/// Those of the command line; another subcommand.
pub fn bench_args(words: &[OsString]) -> Outcome<bench::args::BenchArgs> {
    match Cli::try_parse_from(words) {
        Ok(Cli { command: Command::Bench(args) }) => Ok(args),
        Ok(_) => fail("lists of options are for bench"),
        Err(error) => Err(usage_failure(&error)),
    }
}

/// clap's error, which has several lines, on one line.
pub fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::new(format!("no command; {}; try --help", commands(&text)));
    }
    let mut lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip:"))
        .map(String::from)
        .collect();
    if error.kind() == ErrorKind::InvalidSubcommand {
        lines.push(format!("({})", commands(&text)));
    }
    let text = lines.join(" ");
    Failure::new(format!("{}; try --help", text.strip_prefix("error: ").unwrap_or(&text)))
}

/// The subcommands of the command whose usage is in clap's text.
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
    fn usage_errors_have_one_line() {
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
