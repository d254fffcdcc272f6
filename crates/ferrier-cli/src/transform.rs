//! `ferrier transform`: one file into another.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ferrier::{
    Array, Box3, Comm, Device, Kind, Layout, LayoutSpec, Order, Planner, Precision, Problem, Real, Scale,
};
use indicatif::{ProgressBar, ProgressStyle};
use num_complex::Complex;

use crate::args::{Direction, ScaleName, TransformArgs};
use crate::failure::{Failure, Outcome, fail, io_failure, io_text};
use crate::modes::{self, Cube};
use crate::npy::{Dtype, Header};
use crate::output::{Naming, Output};
use crate::parts::{self, Elements, Number, Part};
use crate::report;
use crate::session::{self, Session};
use crate::setup;
use crate::shape::{Frame, LayoutName, real_length};

/// What all ranks need to know.
struct Job<'a> {
    args: &'a TransformArgs,
    problem: Problem,
    /// The box around the modes of a sphere.
    cube: Option<Cube>,
    choice: ferrier::Choice,
    input: File,
    header: Header,
    out_header: Header,
    /// The first bytes of the output.
    head: Vec<u8>,
}

impl Job<'_> {
    fn out_bytes(&self) -> u64 {
        self.out_header.shape.iter().product::<usize>() as u64 * self.out_header.dtype.bytes() as u64
    }

    /// Makes it one of a matrix whose elements are the points of the long axis.
    /// In the file of points it lies in C order, in that of modes in Fortran order.
    fn lengthen(&mut self, n: usize, scale: Scale, forward: bool) {
        let problem = Problem::c2c_1d(n).reproducible(self.args.common.reproducible);
        let modes = problem.shape()[1] > 1;
        (self.header.fortran, self.out_header.fortran) = (modes && !forward, modes && forward);
        self.problem = if forward { problem.scale_forward(scale) } else { problem.scale_backward(scale) };
    }

    fn in_bytes(&self) -> u64 {
        self.header.shape.iter().product::<usize>() as u64 * self.header.dtype.bytes() as u64
    }
}

/// Runs the command.
///
/// # Errors
/// Bad input; a machine that refuses. OUT is then as it was.
pub fn run(args: &TransformArgs, session: &Session) -> Outcome {
    let job = session.agree(prepare(args, session))?;
    let output = open_output(&args.output, &job.head, job.out_bytes(), session)?;
    let bar = if session.is_first() {
        progress_bar(
            (job.in_bytes() + job.out_bytes()) / session.launched().map_or(1, |l| l.comm().size() as u64),
        )
    } else {
        ProgressBar::hidden()
    };
    let done = match job.header.dtype.precision {
        Precision::F32 => session.run(&args.common, |comm| rank::<f32>(comm, &job, output.file(), &bar)),
        Precision::F64 => session.run(&args.common, |comm| rank::<f64>(comm, &job, output.file(), &bar)),
    };
    bar.finish_and_clear();
    done?;
    // Everybody's part is on disk.
    session.agree(output.commit())
}

/// The output: the first process makes it, with its first bytes and room for
/// as many more as said, the others open what it made. Collective over processes.
///
/// # Errors
/// It cannot be written.
pub fn open_output(path: &Path, head: &[u8], bytes: u64, session: &Session) -> Outcome<Output> {
    let one_host = session.launched().is_none_or(|launched| launched.comm().node_count() == 1);
    if one_host {
        match open_as(path, head, bytes, session, Naming::Late)? {
            // The processes of others are out of sight: a name will do.
            Err(_) => {}
            Ok(output) => return Ok(output),
        }
    }
    open_as(path, head, bytes, session, Naming::Early)?
}

/// The outer failure is that of making the file, the inner that of finding it.
fn open_as(
    path: &Path,
    head: &[u8],
    bytes: u64,
    session: &Session,
    naming: Naming,
) -> Outcome<Outcome<Output>> {
    let made = session.of_first(|| {
        let output = Output::create(path, naming)?;
        output.reserve(head.len() as u64 + bytes)?;
        output.file().write_all_at(head, 0).map_err(|error| io_failure("write", path, &error))?;
        let invitation = output.invitation()?;
        Ok(Some((output, invitation)))
    })?;
    let told = session.tell(made.as_ref().map_or(&[], |(_, invitation)| invitation))?;
    Ok(session.agree(made.map_or_else(|| Output::join(&told, path), |(output, _)| Ok(output))))
}

/// Looks at options and input.
fn prepare<'a>(args: &'a TransformArgs, session: &Session) -> Outcome<Job<'a>> {
    let ranks = session.size(&args.common)?;
    let forward = args.direction == Direction::Forward;
    let halves = args.real || args.common.modes.kinds.iter().flatten().any(|kind| *kind == Kind::Real);
    if args.last.is_some() && (forward || !halves) {
        return fail("--last is for --real --direction backward");
    }
    let input = File::open(&args.input).map_err(|error| io_failure("read", &args.input, &error))?;
    let header = Header::read(&input, &args.input)?;
    let frame = Frame::new(&header.shape).map_err(|failure| {
        Failure::new(format!("cannot transform {}: {}", args.input.display(), failure.message))
    })?;
    check_kind(args, header.dtype)?;
    let (problem, axes) = problem(args, &frame, header.dtype.complex)?;
    let choice = setup::choice(&args.common, &frame)?;
    let cube = Cube::new(&problem);
    let (space, modes) = (problem.shape(), cube.as_ref().map_or(problem.spectrum_shape(), |cube| cube.shape));
    if !forward && modes != frame.shape() {
        let users =
            |shape: [usize; 3]| frame.users(shape).iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        return fail(format!(
            "cannot transform {}: it has {frame} modes, {} are kept",
            args.input.display(),
            users(modes)
        ));
    }
    let out_shape = frame.users(if forward { modes } else { space });
    Frame::new(&out_shape)?;
    let (spec_in, spec_out) = layouts(args, &frame, header.fortran, ranks)?;
    let scale = match args.scale {
        ScaleName::Numpy if forward => Scale::Unscaled,
        ScaleName::Numpy | ScaleName::Full => Scale::Full,
        ScaleName::None => Scale::Unscaled,
        ScaleName::Symmetric => Scale::Symmetric,
    };
    let problem = problem.axes(&axes).reproducible(args.common.reproducible);
    if cube.is_some() && args.out_layout != LayoutName::Slabs(0) {
        return fail("--keep-sphere writes the box around the sphere in slabs:0, no other --out-layout");
    }
    let problem = setup::allowing(problem, &args.common);
    let problem = if forward {
        problem.input(spec_in).output(spec_out).scale_forward(scale)
    } else {
        problem.input(spec_out).output(spec_in).scale_backward(scale)
    };
    // Each rank has planes of the box, and of the columns.
    let problem = if cube.is_some() { problem.output(LayoutSpec::slabs(0)) } else { problem };

    let real_out = if forward { problem.has_real_spectrum() } else { problem.is_real() };
    let out_dtype = Dtype { complex: !real_out, precision: header.dtype.precision, swapped: false };
    let (out_header, head) = Header::write(out_dtype, &out_shape);
    let mut job = Job { args, problem, cube, choice, input, header, out_header, head };
    let in_layout = args.in_layout.unwrap_or(LayoutName::Slabs(0));
    let natural = args.out_layout != LayoutName::Best;
    let plain = !args.real && args.common.modes.is_plain() && args.points.is_none();
    if natural && plain && setup::is_line(&frame, in_layout, args.out_layout, &args.common) {
        job.lengthen(frame.shape()[2], scale, forward);
    }
    Ok(job)
}

/// The problem but for layouts and scales, and its axes. `complex`: is the file?
fn problem(args: &TransformArgs, frame: &Frame, complex: bool) -> Outcome<(Problem, Vec<usize>)> {
    let forward = args.direction == Direction::Forward;
    if forward && args.points.is_some() {
        return fail("--points is for --direction backward: forward, the file has all points");
    }
    let (kinds, axes) = match args.common.modes.kinds(frame)? {
        Some(kinds) => {
            modes::check_file(kinds, forward, complex, if complex { "complex ones" } else { "real ones" })?;
            (kinds, (0..3).filter(|&axis| kinds[axis] != Kind::Identity).collect())
        }
        None => {
            let axes = setup::axes(frame, &args.common, args.real)?;
            let halved = axes.last().copied().filter(|_| args.real);
            let kind = |axis: usize| match axes.contains(&axis) {
                false => Kind::Identity,
                true if halved == Some(axis) => Kind::Real,
                true => Kind::Complex,
            };
            (std::array::from_fn(kind), axes)
        }
    };
    let halved = kinds.iter().position(|&kind| kind == Kind::Real);
    let mut shape = frame.shape();
    let mut keep = None;
    if !forward {
        if let Some((lengths, kept)) = args.common.modes.back(frame, kinds, args.points.as_ref())? {
            (shape, keep) = (lengths, Some(kept));
        } else if let Some(axis) = halved {
            shape[axis] = real_length(shape[axis], args.last)?;
        }
    }
    let problem = Problem::mixed(shape, kinds);
    // Cosines and sines of a complex file are those of both parts.
    let waves = kinds.iter().all(|kind| !matches!(kind, Kind::Complex | Kind::Real));
    let problem = if waves && complex { problem.complex_values() } else { problem };
    let problem = match keep {
        Some(keep) if args.common.modes.keep_sphere.is_none() => problem.keep(keep),
        _ => problem,
    };
    Ok((args.common.modes.apply(&Frame::new(&frame.users(shape))?, problem)?, axes))
}

/// Is this the kind of file that the transform takes?
fn check_kind(args: &TransformArgs, dtype: Dtype) -> Outcome {
    match (args.real, args.direction, dtype.complex) {
        (true, Direction::Forward, true) => fail(format!(
            "cannot transform {}: --real takes real numbers forward, the file has {}",
            args.input.display(),
            dtype.name()
        )),
        (true, Direction::Backward, false) => fail(format!(
            "cannot transform {}: --real takes complex numbers backward, the file has {}",
            args.input.display(),
            dtype.name()
        )),
        _ => Ok(()),
    }
}

/// The layouts of the input, in the file's own memory order, and of the output.
fn layouts(
    args: &TransformArgs,
    frame: &Frame,
    fortran: bool,
    ranks: usize,
) -> Outcome<(LayoutSpec, LayoutSpec)> {
    if args.out_layout == LayoutName::Best && args.direction == Direction::Backward {
        return fail("--out-layout best is for forward transforms");
    }
    let slowest = if fortran { frame.ndim() as isize - 1 } else { 0 };
    let in_layout = args.in_layout.unwrap_or(LayoutName::Slabs(slowest));
    let (inward, outward) = setup::layouts(frame, in_layout, args.out_layout, &args.common, ranks)?;
    Ok((inward.order(if fortran { Order::F } else { Order::C }), outward))
}

fn progress_bar(bytes: u64) -> ProgressBar {
    // indicatif draws nothing where stderr is not a terminal.
    let bar = ProgressBar::new(bytes);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar
}

/// What one rank does: read its box, transform, write its box.
fn rank<T: Real + Number>(comm: &Comm, job: &Job<'_>, output: &File, bar: &ProgressBar) -> Outcome {
    let forward = job.args.direction == Direction::Forward;
    if job.args.common.device != Device::Cpu {
        return on_gpu::<T>(comm, job, output, bar);
    }
    let choice = crate::overlap::with_messages(comm, &job.choice)?;
    let draft = Planner::new(&job.problem).choice(choice).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let boxes =
        [&draft.recipe().input, &draft.recipe().output].map(|layout| layout.boxes()[comm.rank()].volume());
    let width = |real: bool| if real { 1 } else { 2 };
    let numbers = boxes[0] * width(job.problem.is_real()) + boxes[1] * width(job.problem.has_real_spectrum());
    setup::check_room(comm, draft.memory().total() + numbers * size_of::<T>())?;
    if comm.rank() == 0 && draft.wisdom().is_some() {
        report::say(&crate::plan::wisdom_line(draft.wisdom()))?;
    }
    let mut plan = draft.build()?;
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (input, output_array) = session::agree(comm, arrays.map_err(Into::into))?;
    let (mut from, mut to) = if forward { (input, output_array) } else { (output_array, input) };
    let (layout_in, layout_out) = match forward {
        true => (plan.input_layout().clone(), plan.output_layout().clone()),
        false => (plan.output_layout().clone(), plan.input_layout().clone()),
    };
    read(comm, job, &layout_in, &mut from, bar)?;
    stage(comm, bar, "transforming");
    if forward {
        plan.forward(&from, &mut to)?;
    } else {
        plan.backward(&from, &mut to)?;
    }
    drop(from);
    write(comm, job, &layout_out, &mut to, (output, bar))
}

#[cfg(not(feature = "cuda"))]
fn on_gpu<T: Real>(_: &Comm, job: &Job<'_>, _: &File, _: &ProgressBar) -> Outcome {
    crate::gpu::refuse(job.args.common.device)
}

/// The same with arrays on a GPU: a host array is copied there and back.
#[cfg(feature = "cuda")]
fn on_gpu<T: Real + Number>(comm: &Comm, job: &Job<'_>, output: &File, bar: &ProgressBar) -> Outcome {
    let forward = job.args.direction == Direction::Forward;
    let planner = crate::gpu::planner(&job.problem, &job.choice, job.args.common.device, comm)?;
    let draft = session::agree(comm, planner.draft::<T>(comm).map_err(Into::into))?;
    let mut plan = draft.build()?;
    let arrays = || -> ferrier::Result<_> {
        let host = [plan.make_host_input()?, plan.make_host_output()?];
        Ok((host, plan.make_input()?, plan.make_output()?))
    };
    let ([mut before, mut after], mut input, mut spectrum) =
        session::agree(comm, arrays().map_err(Into::into))?;
    let (layout_before, layout_after) = (plan.recipe().input.clone(), plan.recipe().output.clone());
    if forward {
        read(comm, job, &layout_before, &mut before, bar)?;
        stage(comm, bar, "transforming");
        input.upload(&before)?;
        plan.forward(&input, &mut spectrum)?;
        spectrum.download(&mut after)?;
        write(comm, job, &layout_after, &mut after, (output, bar))
    } else {
        read(comm, job, &layout_after, &mut after, bar)?;
        stage(comm, bar, "transforming");
        spectrum.upload(&after)?;
        plan.backward(&spectrum, &mut input)?;
        input.download(&mut before)?;
        write(comm, job, &layout_before, &mut before, (output, bar))
    }
}

/// Says what is going on, on rank 0.
fn stage(comm: &Comm, bar: &ProgressBar, message: &'static str) {
    if comm.rank() == 0 {
        bar.set_message(message);
    }
}

/// Reads this rank's box. Collective.
fn read<T: Real + Number>(
    comm: &Comm,
    job: &Job<'_>,
    layout: &Layout,
    to: &mut Array<T>,
    bar: &ProgressBar,
) -> Outcome {
    stage(comm, bar, "reading");
    let moved = |bytes: u64| bar.inc(bytes);
    let backward = job.args.direction == Direction::Backward;
    let read = match job.cube.as_ref().filter(|_| backward) {
        None => {
            let part = part(layout, own_box(to));
            parts::read(&job.input, &job.header, &part, elements(to), &moved)
        }
        Some(cube) => {
            let part = cube_part(cube, own_box(to));
            let mut all = vec![Complex::new(T::zero(), T::zero()); part.len()];
            let read = parts::read(&job.input, &job.header, &part, Elements::Complex(&mut all), &moved);
            cube.take(&all, to);
            read
        }
    };
    session::agree(comm, read.map_err(|error| io_error("read", &job.args.input, &error)))
}

/// Writes this rank's box. Collective.
fn write<T: Real + Number>(
    comm: &Comm,
    job: &Job<'_>,
    layout: &Layout,
    from: &mut Array<T>,
    (output, bar): (&File, &ProgressBar),
) -> Outcome {
    stage(comm, bar, "writing");
    let moved = |bytes: u64| bar.inc(bytes);
    let forward = job.args.direction == Direction::Forward;
    let written = match job.cube.as_ref().filter(|_| forward) {
        None => {
            let part = part(layout, own_box(from));
            parts::write(output, &job.out_header, &part, elements(from), &moved)
        }
        Some(cube) => {
            let part = cube_part(cube, own_box(from));
            let mut all = cube.filled(from);
            parts::write(output, &job.out_header, &part, Elements::Complex(&mut all), &moved)
        }
    };
    // A file of several processes: each sees to its own part. Threads share one descriptor, synced in the end.
    let written =
        written.and_then(|()| if comm.transport_name() == "mpi" { output.sync_all() } else { Ok(()) });
    session::agree(comm, written.map_err(|error| io_error("write", &job.args.output, &error)))
}

/// A rank's planes of the box around a sphere.
fn cube_part(cube: &Cube, own: Box3) -> Part {
    let own = cube.part(own);
    Part { shape: cube.shape, lo: own.lo, hi: own.hi, memory: Order::C.axes() }
}

fn own_box<T: Real>(array: &Array<T>) -> Box3 {
    if array.is_complex() { array.local_box() } else { array.real_box() }
}

/// A rank's box of an array that lies in a file.
pub fn part(layout: &Layout, own: Box3) -> Part {
    Part { shape: layout.shape(), lo: own.lo, hi: own.hi, memory: layout.order().axes() }
}

/// The elements of an array, to be read or written.
pub fn elements<T: Real>(array: &mut Array<T>) -> Elements<'_, T> {
    if array.is_real() { Elements::Real(array.real_mut()) } else { Elements::Complex(array.complex_mut()) }
}

/// The failure of doing `what` to the file at `path`, which may have changed meanwhile.
pub fn io_error(what: &str, path: &Path, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file has become shorter".to_string(),
        _ => io_text(error),
    };
    Failure::new(format!("cannot {what} {}: {why}", path.display()))
}
