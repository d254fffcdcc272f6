//! `ferrier accuracy`: errors of transforms with each codec, over ranks and over bits.

use std::path::PathBuf;

use clap::Args;
use ferrier::{DeviceSpec, Problem};
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
    /// Codecs of messages with f64 arithmetic, with their parameters [default: casts, and families over bits; on a GPU
    /// those that run there]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
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
    /// Where arrays are stored and transformed: cpu, cuda, cuda:1
    #[arg(long, value_name = "NAME", default_value_t = DeviceSpec::Cpu)]
    pub device: DeviceSpec,
    #[command(flatten)]
    pub execution: ExecutionArgs,
}

impl AccuracyArgs {
    fn codecs(&self) -> Vec<String> {
        // On a GPU codecs have a fixed rate, and zfp does not run.
        let fits = |name: &&str| {
            let family = name.split(':').next().unwrap_or(name);
            self.device == DeviceSpec::Cpu || !["zfp", "within", "lossless"].contains(&family)
        };
        match &self.codecs[..] {
            [] => CODECS.split(',').filter(fits).map(String::from).collect(),
            given => given.to_vec(),
        }
    }

    /// The exchanges of the list; `None`: as the planner decides.
    fn exchanges(&self) -> Vec<Option<String>> {
        match &self.execution.exchange {
            Some(list) => list.split(',').map(|name| Some(name.into())).collect(),
            None => vec![None],
        }
    }

    /// The options of a number of ranks with one of the exchanges.
    fn common(&self, ranks: Option<usize>, exchange: Option<String>) -> CommonArgs {
        let mut common = self.execution.common(ranks);
        (common.execution.exchange, common.device) = (exchange, self.device);
        common
    }
}

/// Runs the command.
///
/// # Errors
/// Bad input; an error above its bound (exit code 1).
pub fn run(args: &AccuracyArgs, session: &Session) -> Outcome {
    let runs = session.agree(prepare(args, session))?;
    session.first(|| print::check([&args.json, &args.csv, &args.svg]))?;
    let mut rows = Vec::new();
    for (common, options) in &runs {
        let work = |session: &Session, common: &CommonArgs| session.run(common, |comm| options.run(comm));
        rows.extend(session.on_ranks(common, work)?.into_iter().flatten());
    }
    let exchanges: Vec<String> = args.exchanges().into_iter().flatten().collect();
    session.first(|| {
        let report = AccuracyReport {
            shape: args.shape.lengths().to_vec(),
            kind: if args.kind == KindName::R2c { "r2c" } else { "c2c" },
            data: args.data.name(),
            exact: args.data.reference(),
            in_layout: args.in_layout.to_string(),
            out_layout: args.out_layout.to_string(),
            device: args.device.to_string(),
            exchanges: if exchanges.len() > 1 { exchanges } else { Vec::new() },
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

/// The options for each number of ranks, under MPI parts of the launch, and each exchange.
fn prepare(args: &AccuracyArgs, session: &Session) -> Outcome<Vec<(CommonArgs, AccuracyOptions)>> {
    if args.out_layout == LayoutName::Best {
        return fail(
            "--out-layout best: the compared spectra need one layout; give bricks, slabs:A or pencils:A",
        );
    }
    for name in &args.codecs() {
        ferrier_codec::codec::<f64>(name).map_err(Failure::new)?;
    }
    let list: Vec<Option<usize>> = match (&args.ranks[..], session.launched()) {
        ([], Some(_)) => vec![None],
        ([], None) => [1, 2, 4, 8].map(Some).to_vec(),
        (ranks, _) => ranks.iter().copied().map(Some).collect(),
    };
    let mut runs = Vec::new();
    for ranks in list {
        for (number, exchange) in args.exchanges().into_iter().enumerate() {
            let common = args.common(ranks, exchange);
            let count = match (ranks, session.launched()) {
                (Some(ranks), Some(_)) => ranks,
                _ => session.size(&common)?,
            };
            let choice = setup::choice(&common, &args.shape)?;
            // One rank sends nothing.
            if count == 1 && number > 0 {
                continue;
            }
            let (inward, outward) =
                setup::layouts(&args.shape, args.in_layout, args.out_layout, &common, count)?;
            let real = args.kind == KindName::R2c;
            let axes = setup::axes(&args.shape, &common, real)?;
            let shape = args.shape.shape();
            let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
            let problem = problem.axes(&axes).input(inward).output(outward);
            let (field, codecs, device) = (Field::new(args.data, shape), args.codecs(), args.device);
            runs.push((common, AccuracyOptions { problem, axes, choice, codecs, field, device }));
        }
    }
    Ok(runs)
}
