//! `ferrier convolve`: one file with another.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use ferrier::spectral::{Convolution, linear_shape};
use ferrier::{Array, Box3, Choice, Comm, LayoutSpec, Problem, Real};
use ferrier_bench::agree::{agree, agree_result, check_memory, draft, local_volumes};
use ferrier_bench::in_precision;
use num_complex::Complex;

use super::shared_output::open_output;
use crate::arguments::{ExecutionArgs, UserShape, setup};
use crate::failure::{Outcome, fail, io_failure};
use crate::files::npy::{Dtype, Header};
use crate::files::npy_box::{self, Elements, FileBox, io_error};
use crate::session::Session;

/// `ferrier convolve`.
#[derive(Args, Debug)]
pub struct ConvolveArgs {
    /// The field: .npy, 1 to 3 axes, float32/64 or complex64/128, C or Fortran order
    #[arg(value_name = "A.npy")]
    pub first: PathBuf,
    /// The kernel: as many axes and the same precision; its origin is index 0
    #[arg(value_name = "B.npy")]
    pub second: PathBuf,
    /// The result; the file appears when it is complete
    #[arg(value_name = "OUT.npy")]
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
}

/// A file that is read.
struct Source<'a> {
    path: &'a Path,
    file: File,
    header: Header,
    shape: [usize; 3],
}

/// The convolution of two files, the same on all ranks.
struct ConvolveTask<'a> {
    args: &'a ConvolveArgs,
    field: Source<'a>,
    kernel: Source<'a>,
    problem: Problem,
    choice: Choice,
    out_header: Header,
    out_shape: [usize; 3],
    head: Vec<u8>,
}

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be read or written. OUT then keeps its contents.
pub fn run(args: &ConvolveArgs, session: &Session) -> Outcome {
    let common = args.execution.common(args.ranks);
    let task = session.agree(prepare(args, session))?;
    let bytes = task.out_shape.iter().product::<usize>() * task.out_header.dtype.bytes();
    let output = open_output(&args.output, &task.head, bytes as u64, session)?;
    let precision = task.field.header.dtype.precision;
    in_precision!(precision, T => session.run(&common, |comm| rank::<T>(comm, &task, output.file())))?;
    session.agree(output.commit())
}

fn open(path: &Path) -> Outcome<Source<'_>> {
    let file = File::open(path).map_err(|error| io_failure("read", path, &error))?;
    let header = Header::read(&file, path)?;
    let shape = UserShape::new(&header.shape)?.shape();
    Ok(Source { path, file, header, shape })
}

fn prepare<'a>(args: &'a ConvolveArgs, session: &Session) -> Outcome<ConvolveTask<'a>> {
    let common = args.execution.common(args.ranks);
    session.size(&common)?;
    let (field, kernel) = (open(&args.first)?, open(&args.second)?);
    let frame = UserShape::new(&field.header.shape)?;
    let other = UserShape::new(&kernel.header.shape)?;
    if frame.ndim() != other.ndim() {
        return fail(format!(
            "the field ({frame}) has {} axes, the kernel ({other}) has {}",
            frame.ndim(),
            other.ndim()
        ));
    }
    let (one, two) = (field.header.dtype, kernel.header.dtype);
    if one.precision != two.precision {
        return fail(format!(
            "both files must have the same precision; they are {} and {}",
            one.name(),
            two.name()
        ));
    }
    let (shape, out_shape) = match args.linear {
        true => {
            let long = |axis: usize| field.shape[axis] + kernel.shape[axis] - 1;
            (linear_shape(field.shape, kernel.shape), [long(0), long(1), long(2)])
        }
        false => (field.shape, field.shape),
    };
    if (0..3).any(|axis| kernel.shape[axis] > shape[axis]) {
        return fail(format!(
            "the kernel ({other}) is larger than the field ({frame}); --linear has no such limit"
        ));
    }
    UserShape::new(&frame.users(shape))?;
    let complex = one.complex || two.complex;
    let axes: Vec<usize> = (3 - frame.ndim()..3).collect();
    let problem = if complex { Problem::c2c(shape) } else { Problem::r2c(shape) };
    let problem = problem
        .axes(&axes)
        .input(LayoutSpec::slabs(3 - frame.ndim()))
        .output(LayoutSpec::unconstrained())
        .operators(true);
    let dtype = Dtype { complex, precision: one.precision, swapped: false };
    let (out_header, head) = Header::write(dtype, &frame.users(out_shape));
    let choice = setup::choice(&common, &frame)?;
    Ok(ConvolveTask { args, field, kernel, problem, choice, out_header, out_shape, head })
}

/// Reads a rank's boxes, convolves and writes its box. Collective.
fn rank<T: Real>(comm: &Comm, task: &ConvolveTask<'_>, output: &File) -> Outcome {
    let draft = draft::<T>(comm, &task.problem, task.choice.clone())?;
    let volumes = local_volumes(comm, draft.recipe());
    // Input, result and the buffer of a file; the spectrum of the kernel.
    check_memory(comm, draft.memory().total() + (3 * volumes[0] + volumes[1]) * 2 * size_of::<T>())?;
    let mut convolution = Convolution::with(draft)?;
    let made = convolution.plan().make_input().and_then(|one| Ok((one, convolution.plan().make_input()?)));
    let (mut array, mut result) = agree_result(comm, made)?;
    let own = convolution.plan().input_box();
    agree(comm, read(&task.kernel, own, &mut array))?;
    convolution.kernel(&array)?;
    agree(comm, read(&task.field, own, &mut array))?;
    match task.args.correlate {
        true => convolution.correlate(&array, &mut result)?,
        false => convolution.convolve(&array, &mut result)?,
    }
    let written = write(task, own, &mut result, output);
    let written = written.and_then(|()| match comm.transport_name() {
        "mpi" => output.sync_all().map_err(|error| io_error("write", &task.args.output, &error)),
        _ => Ok(()),
    });
    agree(comm, written)
}

/// The part of a file inside a rank's box, dense in C order.
fn inside(shape: [usize; 3], own: Box3) -> FileBox {
    let part = own.intersect(&Box3::new([0; 3], shape));
    FileBox { shape, lo: part.lo, hi: part.hi, memory: [0, 1, 2] }
}

/// The offset of an index in a dense part.
fn offset(part: &FileBox, index: [usize; 3]) -> Option<usize> {
    let inside = (0..3).all(|axis| part.lo[axis] <= index[axis] && index[axis] < part.hi[axis]);
    let far = |axis: usize| (index[axis] - part.lo[axis], part.hi[axis] - part.lo[axis]);
    inside.then(|| (0..3).map(far).fold(0, |at, (index, len)| at * len + index))
}

/// Reads the part of a file inside a rank's box; the rest is zero.
fn read<T: Real>(source: &Source<'_>, own: Box3, array: &mut Array<T>) -> Outcome {
    let part = inside(source.shape, own);
    let wrong = |error| io_error("read", source.path, &error);
    if array.is_real() {
        let mut values = vec![T::zero(); part.len()];
        npy_box::read(&source.file, &source.header, &part, Elements::Real(&mut values), &|_| {})
            .map_err(wrong)?;
        array.fill_real(|_, index| offset(&part, index).map_or(T::zero(), |at| values[at]));
    } else {
        let zero = Complex::new(T::zero(), T::zero());
        let mut values = vec![zero; part.len()];
        npy_box::read(&source.file, &source.header, &part, Elements::Complex(&mut values), &|_| {})
            .map_err(wrong)?;
        array.fill_complex(|_, index| offset(&part, index).map_or(zero, |at| values[at]));
    }
    Ok(())
}

/// Writes the part of the result inside a rank's box.
fn write<T: Real>(task: &ConvolveTask<'_>, own: Box3, result: &mut Array<T>, output: &File) -> Outcome {
    let part = inside(task.out_shape, own);
    let mut real = Vec::new();
    let mut complex = Vec::new();
    for i in part.lo[0]..part.hi[0] {
        for j in part.lo[1]..part.hi[1] {
            for k in part.lo[2]..part.hi[2] {
                let at = result.index(0, [i, j, k]).unwrap_or_default();
                match result.is_real() {
                    true => real.push(result.real()[at]),
                    false => complex.push(result.complex()[at]),
                }
            }
        }
    }
    let elements = if result.is_real() { Elements::Real(&mut real) } else { Elements::Complex(&mut complex) };
    npy_box::write(output, &task.out_header, &part, elements, &|_| {})
        .map_err(|error| io_error("write", &task.args.output, &error))
}
