//! `ferrier convolve`: one file with another.

use std::path::PathBuf;

use clap::Args;
use ferrier::io::{Dtype, Reader, WriteOptions, Writer};
use ferrier::spectral::{Convolution, linear_shape};
use ferrier::{Choice, Comm, LayoutSpec, Problem, Real};
use ferrier_bench::agree::{agree_result, check_memory, draft, local_volumes};
use ferrier_bench::in_precision;

use crate::arguments::{ExecutionArgs, InputArgs, OutputArgs, UserShape, setup};
use crate::failure::{Outcome, fail};
use crate::session::Session;

/// `ferrier convolve`.
#[derive(Args, Debug)]
pub struct ConvolveArgs {
    /// The field: 1 to 3 axes, float32/64 or complex64/128. An .npy file in C or Fortran order; an array of a Zarr
    /// store or a part of it, such as a.zarr::density[3]; a raw file (--raw-shape)
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The kernel: as many axes and the same precision; its origin is index 0
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// The result: .zarr is a Zarr store, .raw, .bin and .dat are raw, all others are .npy; the file appears when it
    /// is complete
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Linear convolution without periodic wrap: the result has a + b - 1 points along each axis
    #[arg(long)]
    pub linear: bool,
    /// Periodic correlation: the sum over y of conj(b(y)) a(x + y)
    #[arg(long, conflicts_with = "linear")]
    pub correlate: bool,
    /// Number of ranks, as threads of this process; under mpiexec the processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    #[command(flatten)]
    pub execution: ExecutionArgs,
    #[command(flatten)]
    pub input_file: InputArgs,
    #[command(flatten)]
    pub output_file: OutputArgs,
}

/// The convolution of two files, the same on all ranks.
struct ConvolveTask<'a> {
    args: &'a ConvolveArgs,
    field: Reader,
    kernel: Reader,
    problem: Problem,
    choice: Choice,
    out_dtype: Dtype,
    out_shape: Vec<usize>,
    out_options: WriteOptions,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be read or written. OUT then keeps its contents.
pub fn run(args: &ConvolveArgs, session: &Session) -> Outcome {
    let common = args.execution.common(args.ranks);
    let task = session.agree(prepare(args, session))?;
    let precision = task.field.dtype().precision();
    in_precision!(precision, T => session.run(&common, |comm| rank::<T>(comm, &task)))
}

fn prepare<'a>(args: &'a ConvolveArgs, session: &Session) -> Outcome<ConvolveTask<'a>> {
    let common = args.execution.common(args.ranks);
    session.size(&common)?;
    let (field, kernel) = (args.input_file.open(&args.first, 0)?, args.input_file.open(&args.second, 1)?);
    let frame = UserShape::new(field.shape())?;
    let other = UserShape::new(kernel.shape())?;
    if frame.ndim() != other.ndim() {
        return fail(format!(
            "the field ({frame}) has {} axes, the kernel ({other}) has {}",
            frame.ndim(),
            other.ndim()
        ));
    }
    let (one, two) = (field.dtype(), kernel.dtype());
    if one.precision() != two.precision() {
        return fail(format!(
            "both files must have the same precision; they are {} and {}",
            one.name(),
            two.name()
        ));
    }
    let (first, second) = (frame.shape(), other.shape());
    let (shape, out_shape) = match args.linear {
        true => {
            let long = |axis: usize| first[axis] + second[axis] - 1;
            (linear_shape(first, second), [long(0), long(1), long(2)])
        }
        false => (first, first),
    };
    if (0..3).any(|axis| second[axis] > shape[axis]) {
        return fail(format!(
            "the kernel ({other}) is larger than the field ({frame}); --linear has no such limit"
        ));
    }
    UserShape::new(&frame.users(shape))?;
    let complex = one.is_complex() || two.is_complex();
    let axes: Vec<usize> = (3 - frame.ndim()..3).collect();
    let problem = if complex { Problem::c2c(shape) } else { Problem::r2c(shape) };
    let problem = problem
        .axes(&axes)
        .input(LayoutSpec::slabs(3 - frame.ndim()))
        .output(LayoutSpec::unconstrained())
        .operators(true);
    let (out_dtype, out_shape) = (Dtype::new(complex, one.precision()), frame.users(out_shape));
    let out_options = args.output_file.options(&args.output, one)?;
    let choice = setup::choice(&common, &frame)?;
    Ok(ConvolveTask { args, field, kernel, problem, choice, out_dtype, out_shape, out_options })
}

/// Reads a rank's boxes, convolves and writes its box. Collective.
fn rank<T: Real>(comm: &Comm, task: &ConvolveTask<'_>) -> Outcome {
    let ConvolveTask { args, out_dtype, out_shape, out_options, .. } = task;
    let output = agree_result(comm, Writer::create(comm, &args.output, *out_dtype, out_shape, out_options))?;
    let draft = draft::<T>(comm, &task.problem, task.choice.clone())?;
    let volumes = local_volumes(comm, draft.recipe());
    // Input, result and a layout of whole chunks; the spectrum of the kernel.
    check_memory(comm, draft.memory().total() + (3 * volumes[0] + volumes[1]) * 2 * size_of::<T>())?;
    let mut convolution = Convolution::with(draft)?;
    let made = convolution.plan().make_input().and_then(|one| Ok((one, convolution.plan().make_input()?)));
    let (mut array, mut result) = agree_result(comm, made)?;
    let threads = comm.threads();
    agree_result(comm, task.kernel.read(&mut array, threads, &|_| {}))?;
    convolution.kernel(&array)?;
    agree_result(comm, task.field.read(&mut array, threads, &|_| {}))?;
    match task.args.correlate {
        true => convolution.correlate(&array, &mut result)?,
        false => convolution.convolve(&array, &mut result)?,
    }
    agree_result(comm, output.write(comm, convolution.plan().input_layout(), &result, &|_| {}))?;
    agree_result(comm, output.commit(comm))
}
