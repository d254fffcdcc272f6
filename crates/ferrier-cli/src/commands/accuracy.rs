//! `ferrier accuracy`: errors of transforms with each codec, over ranks and over bits.

use std::path::PathBuf;

use clap::Args;
use ferrier::Problem;
use ferrier_bench::accuracy::{AccuracyOptions, AccuracyReport, Data, Field};

use crate::arguments::{CommonArgs, ExecutionArgs, KindName, LayoutName, UserShape, Words, setup, words};
use crate::failure::{Failure, Outcome, fail};
use crate::print;
use crate::session::Session;

/// Casts, then families over bits.
const CODECS: &str = "f32,f16,bf16,\
    trim:3,trim:7,trim:11,trim:15,trim:23,trim:31,trim:39,trim:47,\
    block:6,block:8,block:12,block:16,block:20,block:24,block:32,block:40,block:48,\
    zfp:rate=8,zfp:rate=16,zfp:rate=24,zfp:rate=32,zfp:rate=48,within:1e-4,within:1e-8,lossless";

/// The data to transform.
const DATA: &Words<Data> = &[
    ("noise", "Uniform random values", Data::Noise),
    ("smooth", "A smooth periodic function with a known spectrum", Data::Smooth),
];

/// `ferrier accuracy`.
#[derive(Args, Debug)]
pub struct AccuracyArgs {
    /// 128 (a cube), 256x256x128, or 512x512 (two axes)
    pub shape: UserShape,
    /// Numbers of ranks, as threads of this process; under mpiexec parts of the launch [default: 1,2,4,8; under mpiexec all
    /// processes]
    #[arg(long, value_name = "R,..", value_delimiter = ',')]
    pub ranks: Vec<usize>,
    /// Codecs of messages with f64 arithmetic, with their parameters
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = CODECS, hide_default_value = true)]
    pub codecs: Vec<String>,
    /// The data: noise (all f64 is compared with the defining sums in twice the precision at 256
    /// frequencies, others with all f64 at all frequencies, plus its error) or smooth (compared with the
    /// known spectrum at all frequencies; the rounding of the data counts as an error)
    #[arg(long, value_parser = words(DATA), default_value = "noise")]
    pub data: Data,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "bricks")]
    pub in_layout: LayoutName,
    /// How the output is split: as above, or same
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "same")]
    pub out_layout: LayoutName,
    /// Write all rows as comma-separated values; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-", conflicts_with = "json")]
    pub csv: Option<PathBuf>,
    /// Draw the error of the spectrum against bits on the wire, for the largest number of ranks
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the result as JSON; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub execution: ExecutionArgs,
}

/// Runs the command.
///
/// # Errors
/// Bad input; an error above its bound (exit code 1).
pub fn run(args: &AccuracyArgs, session: &Session) -> Outcome {
    let runs = session.agree(prepare(args, session))?;
    session.first(|| print::check([&args.json, &args.csv, &args.svg]))?;
    let mut rows = Vec::new();
    for (ranks, options) in &runs {
        let work = |session: &Session, common: &CommonArgs| session.run(common, |comm| options.run(comm));
        rows.extend(session.on_ranks(&args.execution.common(*ranks), work)?.into_iter().flatten());
    }
    session.first(|| {
        let report = AccuracyReport {
            shape: args.shape.lengths().to_vec(),
            kind: if args.kind == KindName::R2c { "r2c" } else { "c2c" },
            data: args.data.name(),
            exact: args.data.reference(),
            in_layout: args.in_layout.to_string(),
            out_layout: args.out_layout.to_string(),
            rows,
        };
        print::optional(args.svg.as_deref(), || report.svg())?;
        print::optional(args.csv.as_deref(), || report.csv())?;
        if !print::is_stdout(args.csv.as_deref()) {
            print::report(args.json.as_deref(), &report, &report.text())?;
        }
        report.rows.iter().find_map(|row| row.above_bound(args.data)).map_or(Ok(()), Err)
    })
}

/// The options for each number of ranks; under MPI parts of the launch.
fn prepare<'a>(
    args: &'a AccuracyArgs,
    session: &Session,
) -> Outcome<Vec<(Option<usize>, AccuracyOptions<'a>)>> {
    if args.out_layout == LayoutName::Best {
        return fail(
            "--out-layout best: the compared spectra need one layout; give bricks, slabs:A or pencils:A",
        );
    }
    for name in &args.codecs {
        ferrier_codec::codec::<f64>(name).map_err(Failure::new)?;
    }
    let list: Vec<Option<usize>> = match (&args.ranks[..], session.launched()) {
        ([], Some(_)) => vec![None],
        ([], None) => [1, 2, 4, 8].map(Some).to_vec(),
        (ranks, _) => ranks.iter().copied().map(Some).collect(),
    };
    let mut runs = Vec::new();
    for ranks in list {
        let common = args.execution.common(ranks);
        let count = match (ranks, session.launched()) {
            (Some(ranks), Some(_)) => ranks,
            _ => session.size(&common)?,
        };
        let (inward, outward) = setup::layouts(&args.shape, args.in_layout, args.out_layout, &common, count)?;
        let real = args.kind == KindName::R2c;
        let axes = setup::axes(&args.shape, &common, real)?;
        let shape = args.shape.shape();
        let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        let problem = problem.axes(&axes).input(inward).output(outward);
        let field = Field::new(args.data, shape);
        let choice = setup::choice(&common, &args.shape)?;
        runs.push((ranks, AccuracyOptions { problem, axes, choice, codecs: &args.codecs, field }));
    }
    Ok(runs)
}
