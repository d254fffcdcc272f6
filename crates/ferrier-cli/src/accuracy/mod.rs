//! `ferrier accuracy`: how exact transforms are, with each codec, over ranks and over bits.

mod exact;
mod show;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ferrier::codec::RAW;
use ferrier::{Array, Choice, Comm, Plan, Planner, Problem, Real};
use num_complex::Complex;
use serde::Serialize;

use crate::args::{KindName, WayArgs};
use crate::failure::{Failure, Outcome, fail};
use crate::output;
use crate::parts::Number;
use crate::report;
use crate::session::{self, Session};
use crate::setup;
use crate::shape::{Frame, LayoutName};
use crate::view::{distance, value};

use exact::{Exact, Field};

/// Casts, then members over bits.
const CODECS: &str = "f32,f16,bf16,\
    trim:3,trim:7,trim:11,trim:15,trim:23,trim:31,trim:39,trim:47,\
    block:6,block:8,block:12,block:16,block:20,block:24,block:32,block:40,block:48,\
    zfp:rate=8,zfp:rate=16,zfp:rate=24,zfp:rate=32,zfp:rate=48,within:1e-4,within:1e-8,lossless";

/// What is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DataName {
    /// Uniform random numbers.
    Noise,
    /// A smooth periodic pulse with a known spectrum.
    Smooth,
}

/// `ferrier accuracy`.
#[derive(Args, Debug)]
pub struct AccuracyArgs {
    /// 128 (a cube), 256x256x128, or 512x512 (two axes)
    pub shape: Frame,
    /// Numbers of ranks, threads of this process [default: 1,2,4,8; under mpiexec its processes]
    #[arg(long, value_name = "R,..", value_delimiter = ',')]
    pub ranks: Vec<usize>,
    /// Codecs on the wire of f64 arithmetic, with their parameters
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = CODECS, hide_default_value = true)]
    pub codecs: Vec<String>,
    /// What is transformed: noise (exact is, for all f64, the defining sums in twice the precision at 256
    /// frequencies; the others are compared with all f64 everywhere, and its error is added) or smooth
    /// (exact is the known spectrum, everywhere; that data are rounded counts as an error)
    #[arg(long, value_enum, default_value_t = DataName::Noise)]
    pub data: DataName,
    /// Complex to complex, or real to complex
    #[arg(long, value_enum, default_value_t = KindName::C2c)]
    pub kind: KindName,
    /// How the input is split: bricks, slabs:A (axis A is split), pencils:A (axis A is whole)
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "bricks")]
    pub in_layout: LayoutName,
    /// How the output is split: as above, or same
    #[arg(long, value_name = "LAYOUT", allow_hyphen_values = true, default_value = "same")]
    pub out_layout: LayoutName,
    /// Write all rows as comma-separated values; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-", conflicts_with = "json")]
    pub csv: Option<PathBuf>,
    /// Draw the error of the spectrum against bits on the wire, for the most ranks
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the result as JSON; `-` is stdout, which then carries nothing else
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub way: WayArgs,
}

/// One transform; the keys are part of the contract.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// Precision of data and arithmetic.
    arithmetic: &'static str,
    codec: String,
    ranks: usize,
    /// Of the round trip: distance from the data over their norm.
    error_l2: f64,
    /// Of the spectrum: distance from the exact one over its norm.
    error_forward: f64,
    /// Of the spectrum: what was lost, and rounding at worst.
    error_bound: f64,
    /// Between ranks, in one forward transform.
    wire_bytes: u64,
    /// The same for each number that crosses, in bits; null where none does.
    bits: Option<f64>,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct Report {
    shape: Vec<usize>,
    kind: &'static str,
    data: &'static str,
    /// What errors of the spectrum are measured against.
    exact: &'static str,
    in_layout: String,
    out_layout: String,
    rows: Vec<Row>,
}

/// What is to be done with one number of ranks.
struct Work<'a> {
    problem: Problem,
    axes: Vec<usize>,
    choice: Choice,
    codecs: &'a [String],
    field: Field,
}

/// Runs the command.
///
/// # Errors
/// Bad input; an error beyond its bound (exit code 1).
pub fn run(args: &AccuracyArgs, session: &Session) -> Outcome {
    let works = session.agree(prepare(args, session))?;
    session.first(|| {
        report::check_json(args.json.as_deref())?;
        report::check_json(args.csv.as_deref())?;
        args.svg.as_deref().map_or(Ok(()), output::check_text)
    })?;
    let mut rows = Vec::new();
    for (ranks, work) in &works {
        let own = session.run(&args.way.common(*ranks), |comm| measure(comm, work))?;
        rows.extend(own.into_iter().next().unwrap_or_default());
    }
    session.first(|| {
        let wrong = rows.iter().find_map(|row| beyond(row, args.data));
        let report = Report {
            shape: args.shape.lengths().to_vec(),
            kind: if args.kind == KindName::R2c { "r2c" } else { "c2c" },
            data: if args.data == DataName::Smooth { "smooth" } else { "noise" },
            exact: match args.data {
                DataName::Noise => {
                    "of all f64 the defining sums in twice the precision, at up to 256 frequencies; of others f64, everywhere"
                }
                DataName::Smooth => "the known spectrum of the pulse, at all frequencies",
            },
            in_layout: args.in_layout.to_string(),
            out_layout: args.out_layout.to_string(),
            rows,
        };
        if let Some(path) = &args.svg {
            output::write_text(path, &show::svg(&report))?;
        }
        let dash = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
        if let Some(path) = &args.json {
            report::json(path, &report)?;
        }
        match &args.csv {
            Some(_) if dash(&args.csv) => report::say(&show::csv(&report))?,
            Some(path) => output::write_text(path, &show::csv(&report))?,
            None => {}
        }
        if !dash(&args.json) && !dash(&args.csv) {
            report::say(&show::text(&report))?;
        }
        wrong.map_or(Ok(()), Err)
    })
}

/// What to do for each number of ranks; under MPI there is but one.
fn prepare<'a>(args: &'a AccuracyArgs, session: &Session) -> Outcome<Vec<(Option<usize>, Work<'a>)>> {
    if args.out_layout == LayoutName::Best {
        return fail(
            "--out-layout best: the spectra that are compared must lie alike; say bricks, slabs:A or pencils:A",
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
    let mut works = Vec::new();
    for ranks in list {
        let common = args.way.common(ranks);
        let count = session.size(&common)?;
        let (inward, outward) = setup::layouts(&args.shape, args.in_layout, args.out_layout, &common, count)?;
        let real = args.kind == KindName::R2c;
        let axes = setup::axes(&args.shape, &common, real)?;
        let shape = args.shape.shape();
        let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        let problem = problem.axes(&axes).input(inward).output(outward);
        let field = Field::new(args.data, shape);
        let choice = setup::choice(&common, &args.shape)?;
        works.push((ranks, Work { problem, axes, choice, codecs: &args.codecs, field }));
    }
    Ok(works)
}

/// The failure of a row whose error is not within its bound.
fn beyond(row: &Row, data: DataName) -> Option<Failure> {
    // The pulse is known better than its rounded values.
    let rounded = if row.arithmetic == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let allowed = row.error_bound + if data == DataName::Smooth { 4.0 * rounded } else { 0.0 };
    let within = row.error_forward <= allowed;
    (!within).then(|| {
        Failure::wrong(format!(
            "{} with codec {} on {} ranks: the error {:.2e} is beyond its bound {:.2e}",
            row.arithmetic, row.codec, row.ranks, row.error_forward, row.error_bound
        ))
    })
}

/// What every rank does. Collective.
fn measure(comm: &Comm, work: &Work<'_>) -> Outcome<Vec<Row>> {
    let mut double = Trip::<f64>::new(comm, work, RAW, |x| x)?;
    let exact = Exact::new(comm, work, &double.input)?;
    let mut rows = vec![double.row(comm, work, &exact)?];
    let own = rows[0].error_forward;
    // Data of f32 are other numbers, of which f64 knows the spectrum as well.
    let mut single = Trip::<f32>::new(comm, work, RAW, |x| x)?;
    let of_single = match &exact {
        Exact::Known => Exact::Known,
        _ => Exact::Double(Trip::<f64>::new(comm, work, RAW, |x| f64::from(x as f32))?.spectrum(comm)?, own),
    };
    rows.push(single.row(comm, work, &of_single)?);
    drop((single, of_single));
    let exact = match exact {
        Exact::Known => Exact::Known,
        _ => Exact::Double(double.spectrum, own),
    };
    // A rank alone sends nothing.
    for name in work.codecs.iter().filter(|_| comm.size() > 1) {
        rows.push(Trip::<f64>::new(comm, work, name, |x| x)?.row(comm, work, &exact)?);
    }
    Ok(rows)
}

/// A plan with its arrays.
struct Trip<T: Real> {
    codec: String,
    plan: Plan<T>,
    input: Array<T>,
    spectrum: Array<T>,
    back: Array<T>,
}

impl<T: Real + Number + Into<f64>> Trip<T> {
    /// With the data of `work`, each number through `change`. Collective.
    fn new(comm: &Comm, work: &Work<'_>, codec: &str, change: impl Fn(f64) -> f64) -> Outcome<Self> {
        let choice = work.choice.clone().codec(codec);
        let draft = Planner::new(&work.problem).choice(choice).draft::<T>(comm);
        let draft = session::agree(comm, draft.map_err(Into::into))?;
        let volumes = [&draft.recipe().input, &draft.recipe().output]
            .map(|layout| layout.boxes()[comm.rank()].volume());
        // Up to three such trips are there at once.
        let needed = draft.memory().total() + 2 * size_of::<T>() * (2 * volumes[0] + volumes[1]);
        setup::check_room(comm, 3 * needed)?;
        let plan = draft.build()?;
        let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?, plan.make_input()?)));
        let (mut input, spectrum, back) = session::agree(comm, arrays.map_err(Into::into))?;
        let at = |index| {
            let Complex { re, im } = work.field.at(index);
            Complex::new(T::rounded(change(re)), T::rounded(change(im)))
        };
        match input.is_real() {
            true => input.fill_real(|_, index| at(index).re),
            false => input.fill_complex(|_, index| at(index)),
        }
        Ok(Trip { codec: codec.into(), plan, input, spectrum, back })
    }

    /// The spectrum alone. Collective.
    fn spectrum(mut self, comm: &Comm) -> Outcome<Array<T>> {
        self.plan.forward(&self.input, &mut self.spectrum)?;
        comm.barrier()?;
        Ok(self.spectrum)
    }

    /// There and back, with the errors. Collective.
    fn row(&mut self, comm: &Comm, work: &Work<'_>, exact: &Exact) -> Outcome<Row> {
        let Trip { codec, plan, input, spectrum, back } = self;
        plan.forward(&*input, spectrum)?;
        let (sent, error_bound) = sent(comm, plan)?;
        let error_forward = exact.error(comm, &work.field, plan, spectrum)?;
        plan.backward(&*spectrum, back)?;
        let (off, norm) = distance(comm, back, |index| value(input, index))?;
        let numbers = plan.recipe().wire_bytes() as f64 / size_of::<T>() as f64;
        Ok(Row {
            arithmetic: plan.recipe().precision.name(),
            codec: codec.clone(),
            ranks: comm.size(),
            error_l2: off / norm,
            error_forward,
            error_bound,
            wire_bytes: sent,
            bits: (numbers > 0.0).then(|| sent as f64 * 8.0 / numbers),
        })
    }
}

/// What all ranks sent in the last transform, and the bound of its error. Collective.
fn sent<T: Real>(comm: &Comm, plan: &Plan<T>) -> Outcome<(u64, f64)> {
    let Some(certificate) = plan.certificate() else { return fail("a transform left no certificate") };
    Ok((comm.sum(&[plan.wire_bytes() as f64])?[0] as u64, certificate.bound()))
}

/// A real number as a complex one.
fn complex(value: f64) -> Complex<f64> {
    Complex::from(value)
}
