//! `ferrier spectrum`: the power spectrum of a file.

use std::f64::consts::TAU;
use std::path::PathBuf;

use clap::Args;
use ferrier::io::Reader;
use ferrier::spectral::{Shell, WaveNumbers, power_spectrum};
use ferrier::{Choice, Comm, LayoutSpec, Order, Problem, Real};
use ferrier_bench::agree::{agree_result, check_memory, draft, local_volumes};
use ferrier_bench::charts::chart::Chart;
use ferrier_bench::in_precision;
use ferrier_bench::table::{columns, digits};

use crate::arguments::{ExecutionArgs, InputArgs, UserShape, setup};
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// `ferrier spectrum`.
#[derive(Args, Debug)]
pub struct SpectrumArgs {
    /// The array: 1 to 3 axes, float32/64 or complex64/128. An .npy file in C or Fortran order; an array of a Zarr
    /// store or a part of it, such as a.zarr::density[3]; a raw file (--raw-shape)
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Length of the box along each axis, such as 1,1,2 [default: 2 pi each, so that wave numbers are integers]
    #[arg(long, value_name = "L,..", value_delimiter = ',')]
    pub lengths: Vec<f64>,
    /// Write the shells as CSV; `-` is stdout, which then has no other output
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,
    /// Draw power against wave number
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Number of ranks, as threads of this process; under mpiexec the processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    #[command(flatten)]
    pub execution: ExecutionArgs,
    #[command(flatten)]
    pub input_file: InputArgs,
}

/// The spectrum of a file, the same on all ranks.
struct SpectrumTask {
    input: Reader,
    problem: Problem,
    lengths: [f64; 3],
    choice: Choice,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be read or written.
pub fn run(args: &SpectrumArgs, session: &Session) -> Outcome {
    let common = args.execution.common(args.ranks);
    let task = session.agree(prepare(args, session))?;
    session.first(|| print::check([&args.csv, &args.svg]))?;
    let precision = task.input.dtype().precision();
    let shells = in_precision!(precision, T => session.run(&common, |comm| rank::<T>(comm, &task)))?;
    session.first(|| {
        print::optional(args.svg.as_deref(), || svg(args, &shells))?;
        print::optional(args.csv.as_deref(), || csv(&shells))?;
        if print::is_stdout(args.csv.as_deref()) { Ok(()) } else { print::say(&table(&shells)) }
    })
}

fn prepare(args: &SpectrumArgs, session: &Session) -> Outcome<SpectrumTask> {
    let common = args.execution.common(args.ranks);
    session.size(&common)?;
    let input = args.input_file.open(&args.input, 0)?;
    let shape = UserShape::new(input.shape())?;
    let mut lengths = [TAU; 3];
    if !args.lengths.is_empty() {
        if args.lengths.len() != shape.ndim() {
            let (got, axes) = (args.lengths.len(), shape.ndim());
            return fail(format!("--lengths has {got} numbers, but the array ({shape}) has {axes} axes"));
        }
        if let Some(length) = args.lengths.iter().find(|&&length| !(length > 0.0 && length.is_finite())) {
            return fail(format!("--lengths: sides must be positive, got {length}"));
        }
        lengths[3 - shape.ndim()..].copy_from_slice(&args.lengths);
    }
    let problem = match input.dtype().is_complex() {
        true => Problem::c2c(shape.shape()),
        false => Problem::r2c(shape.shape()),
    };
    let (slowest, order) = if input.is_fortran() { (2, Order::F) } else { (3 - shape.ndim(), Order::C) };
    let axes: Vec<usize> = (3 - shape.ndim()..3).collect();
    let problem = problem
        .axes(&axes)
        .input(LayoutSpec::slabs(slowest).order(order))
        .output(LayoutSpec::unconstrained());
    Ok(SpectrumTask { input, problem, lengths, choice: setup::choice(&common, &shape)? })
}

/// Reads a rank's box, transforms and sums. Collective.
fn rank<T: Real>(comm: &Comm, task: &SpectrumTask) -> Outcome<Vec<Shell>> {
    let draft = draft::<T>(comm, &task.problem, task.choice.clone())?;
    let elements = local_volumes(comm, draft.recipe()).iter().sum::<usize>();
    check_memory(comm, draft.memory().total() + elements * 2 * size_of::<T>())?;
    let mut plan = draft.build()?;
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (mut field, mut spectrum) = agree_result(comm, arrays)?;
    agree_result(comm, task.input.read(&mut field, comm.threads(), &|_| {}))?;
    plan.forward(&field, &mut spectrum)?;
    let waves = WaveNumbers::new(plan.recipe(), task.lengths)?;
    Ok(power_spectrum(comm, &plan, &waves, &spectrum)?)
}

fn csv(shells: &[Shell]) -> String {
    let row = |shell: &Shell| format!("{},{},{:e},{:e}\n", shell.k, shell.modes, shell.power, shell.mean());
    shells.iter().map(row).fold("k,modes,power,mean\n".into(), |text, row| text + &row)
}

fn table(shells: &[Shell]) -> String {
    let row = |shell: &Shell| {
        let [power, mean] = [shell.power, shell.mean()].map(|power| format!("{power:.6e}"));
        vec![digits(shell.k), shell.modes.to_string(), power, mean]
    };
    columns(&["k", "modes", "power", "per mode"], shells.iter().map(row))
}

fn svg(args: &SpectrumArgs, shells: &[Shell]) -> String {
    let name = args.input.file_name().unwrap_or_default().to_string_lossy();
    let mut chart = Chart::new(format!("{name}: power spectrum"), "wave number", "power in a shell");
    chart.line("power", shells.iter().map(|shell| (shell.k, shell.power)).collect());
    // Labels for shells of powers of two: all would not fit.
    let unit = shells.get(1).map_or(1.0, |shell| shell.k);
    let named = |k: f64| ((k / unit).round() as usize).is_power_of_two();
    chart.svg(|k| if named(k) { digits(k) } else { String::new() })
}
