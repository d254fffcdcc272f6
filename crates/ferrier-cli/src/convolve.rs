//! `ferrier convolve`: one file with another.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use ferrier::spectral::{Convolution, linear_shape};
use ferrier::{Array, Box3, Choice, Comm, LayoutSpec, Planner, Precision, Problem, Real};
use num_complex::Complex;

use crate::args::WayArgs;
use crate::failure::{Outcome, fail, io_failure};
use crate::npy::{Dtype, Header};
use crate::parts::{self, Elements, Number, Part};
use crate::session::{self, Session};
use crate::setup;
use crate::shape::Frame;
use crate::transform::{io_error, open_output};

/// `ferrier convolve`.
#[derive(Args, Debug)]
pub struct ConvolveArgs {
    /// The field: .npy, 1 to 3 axes, float32/64 or complex64/128, C or Fortran order
    #[arg(value_name = "A.npy")]
    pub first: PathBuf,
    /// The kernel: as many axes and the same precision; its origin is index 0
    #[arg(value_name = "B.npy")]
    pub second: PathBuf,
    /// Where the result goes; it appears when it is whole
    #[arg(value_name = "OUT.npy")]
    pub output: PathBuf,
    /// Nothing comes round the ends: the result has a + b - 1 points along each axis
    #[arg(long)]
    pub linear: bool,
    /// The periodic correlation instead: the sum over y of conj(b(y)) a(x + y)
    #[arg(long, conflicts_with = "linear")]
    pub correlate: bool,
    /// Number of ranks, threads of this process; under mpiexec its processes are the ranks [default: 1]
    #[arg(long, value_name = "R")]
    pub ranks: Option<usize>,
    #[command(flatten)]
    pub way: WayArgs,
}

/// A file that is read.
struct Source<'a> {
    path: &'a Path,
    file: File,
    header: Header,
    shape: [usize; 3],
}

struct Job<'a> {
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
/// Bad input; a machine that refuses. OUT is then as it was.
pub fn run(args: &ConvolveArgs, session: &Session) -> Outcome {
    let common = args.way.common(args.ranks);
    let job = session.agree(prepare(args, session))?;
    let bytes = job.out_shape.iter().product::<usize>() * job.out_header.dtype.bytes();
    let output = open_output(&args.output, &job.head, bytes as u64, session)?;
    match job.field.header.dtype.precision {
        Precision::F32 => session.run(&common, |comm| rank::<f32>(comm, &job, output.file())),
        Precision::F64 => session.run(&common, |comm| rank::<f64>(comm, &job, output.file())),
    }?;
    session.agree(output.commit())
}

fn open(path: &Path) -> Outcome<Source<'_>> {
    let file = File::open(path).map_err(|error| io_failure("read", path, &error))?;
    let header = Header::read(&file, path)?;
    let shape = Frame::new(&header.shape)?.shape();
    Ok(Source { path, file, header, shape })
}

fn prepare<'a>(args: &'a ConvolveArgs, session: &Session) -> Outcome<Job<'a>> {
    let common = args.way.common(args.ranks);
    session.size(&common)?;
    let (field, kernel) = (open(&args.first)?, open(&args.second)?);
    let frame = Frame::new(&field.header.shape)?;
    let other = Frame::new(&kernel.header.shape)?;
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
            "both files must have one precision; they are {} and {}",
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
    Frame::new(&frame.users(shape))?;
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
    Ok(Job { args, field, kernel, problem, choice, out_header, out_shape, head })
}

/// What one rank does: read its boxes, convolve, write its box. Collective.
fn rank<T: Real + Number>(comm: &Comm, job: &Job<'_>, output: &File) -> Outcome {
    let draft = Planner::new(&job.problem).choice(job.choice.clone()).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let boxes =
        [&draft.recipe().input, &draft.recipe().output].map(|layout| layout.boxes()[comm.rank()].volume());
    // Input, result and what is read or written; the kernel's spectrum.
    setup::check_room(comm, draft.memory().total() + (3 * boxes[0] + boxes[1]) * 2 * size_of::<T>())?;
    let mut convolution = Convolution::with(draft)?;
    let made = convolution.plan().make_input().and_then(|one| Ok((one, convolution.plan().make_input()?)));
    let (mut array, mut result) = session::agree(comm, made.map_err(Into::into))?;
    let own = convolution.plan().input_box();
    session::agree(comm, read(&job.kernel, own, &mut array))?;
    convolution.kernel(&array)?;
    session::agree(comm, read(&job.field, own, &mut array))?;
    match job.args.correlate {
        true => convolution.correlate(&array, &mut result)?,
        false => convolution.convolve(&array, &mut result)?,
    }
    let written = write(job, own, &mut result, output);
    let written = written.and_then(|()| match comm.transport_name() {
        "mpi" => output.sync_all().map_err(|error| io_error("write", &job.args.output, &error)),
        _ => Ok(()),
    });
    session::agree(comm, written)
}

/// The part of a file that a rank's box has, densely in C order.
fn inside(shape: [usize; 3], own: Box3) -> Part {
    let part = own.intersect(&Box3::new([0; 3], shape));
    Part { shape, lo: part.lo, hi: part.hi, memory: [0, 1, 2] }
}

/// Where an index lies in a dense part.
fn place(part: &Part, index: [usize; 3]) -> Option<usize> {
    let inside = (0..3).all(|axis| part.lo[axis] <= index[axis] && index[axis] < part.hi[axis]);
    let far = |axis: usize| (index[axis] - part.lo[axis], part.hi[axis] - part.lo[axis]);
    inside.then(|| (0..3).map(far).fold(0, |at, (index, len)| at * len + index))
}

/// Reads what a rank's box has of a file; the rest is zero.
fn read<T: Real + Number>(source: &Source<'_>, own: Box3, array: &mut Array<T>) -> Outcome {
    let part = inside(source.shape, own);
    let wrong = |error| io_error("read", source.path, &error);
    if array.is_real() {
        let mut values = vec![T::zero(); part.len()];
        parts::read(&source.file, &source.header, &part, Elements::Real(&mut values), &|_| {})
            .map_err(wrong)?;
        array.fill_real(|_, index| place(&part, index).map_or(T::zero(), |at| values[at]));
    } else {
        let zero = Complex::new(T::zero(), T::zero());
        let mut values = vec![zero; part.len()];
        parts::read(&source.file, &source.header, &part, Elements::Complex(&mut values), &|_| {})
            .map_err(wrong)?;
        array.fill_complex(|_, index| place(&part, index).map_or(zero, |at| values[at]));
    }
    Ok(())
}

/// Writes what a rank's box has of the result.
fn write<T: Real + Number>(job: &Job<'_>, own: Box3, result: &mut Array<T>, output: &File) -> Outcome {
    let part = inside(job.out_shape, own);
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
    parts::write(output, &job.out_header, &part, elements, &|_| {})
        .map_err(|error| io_error("write", &job.args.output, &error))
}
