//! The part of one rank in the transform of a file.

use ferrier::io::Writer;
use ferrier::{Array, Box3, Comm, DeviceSpec, Element, Layout, Order, Real};
use ferrier_bench::agree::{agree_result, check_memory, draft, local_volumes};
use ferrier_bench::table::{notes_text, wisdom_line};
use ferrier_bench::tiling::with_messages;
use indicatif::ProgressBar;
use num_complex::Complex;

use super::progress::stage;
use super::redistribute;
use super::task::TransformTask;
use crate::arguments::Direction;
use crate::failure::Outcome;
use crate::print;

/// Reads, transforms and writes a rank's box. Collective.
///
/// # Errors
/// Those of the library; a file that cannot be read or written.
pub fn run<T: Real + Element>(comm: &Comm, task: &TransformTask<'_>, bar: &ProgressBar) -> Outcome {
    let TransformTask { args, out_dtype, out_shape, out_options, .. } = task;
    let output = agree_result(comm, Writer::create(comm, &args.output, *out_dtype, out_shape, out_options))?;
    let output = match task.out_matrix {
        Some((shape, fortran)) => output.reshaped(shape, fortran),
        None => output,
    };
    match task.redistributes {
        true => redistribute::run::<T>(comm, task, &output, bar)?,
        false => transform::<T>(comm, task, &output, bar)?,
    }
    // All parts are on disk.
    agree_result(comm, output.commit(comm))
}

/// Reads, transforms and writes a rank's box. Collective.
fn transform<T: Real>(comm: &Comm, task: &TransformTask<'_>, output: &Writer, bar: &ProgressBar) -> Outcome {
    let forward = task.args.direction == Direction::Forward;
    if task.args.common.device != DeviceSpec::Cpu {
        #[cfg(feature = "cuda")]
        return on_gpu::<T>(comm, task, output, bar);
        #[cfg(not(feature = "cuda"))]
        return crate::cuda::refuse(task.args.common.device);
    }
    let choice = with_messages(comm, &task.choice)?;
    let draft = draft::<T>(comm, &task.problem, choice)?;
    let volumes = local_volumes(comm, draft.recipe());
    let width = |real: bool| if real { 1 } else { 2 };
    let scalars =
        volumes[0] * width(task.problem.is_real()) + volumes[1] * width(task.problem.has_real_spectrum());
    check_memory(comm, draft.memory().total() + scalars * size_of::<T>())?;
    let wisdom = draft.wisdom().map_or(String::new(), |known| wisdom_line(Some(known)));
    let mut plan = draft.build()?;
    let said = notes_text(plan.notes()) + &wisdom;
    if comm.rank() == 0 && !said.is_empty() {
        print::say(&said)?;
    }
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (input, output_array) = agree_result(comm, arrays)?;
    let (mut from, mut to) = if forward { (input, output_array) } else { (output_array, input) };
    let layout = if forward { plan.output_layout().clone() } else { plan.input_layout().clone() };
    read(comm, task, &mut from, bar)?;
    stage(comm, bar, "transforming");
    if forward {
        plan.forward(&from, &mut to)?;
    } else {
        plan.backward(&from, &mut to)?;
    }
    drop(from);
    drop(plan);
    write(comm, task, &layout, &to, (output, bar))
}

/// As `run`, on a GPU.
#[cfg(feature = "cuda")]
fn on_gpu<T: Real>(comm: &Comm, task: &TransformTask<'_>, output: &Writer, bar: &ProgressBar) -> Outcome {
    let forward = task.args.direction == Direction::Forward;
    let planner = crate::cuda::planner(&task.problem, &task.choice, task.args.common.device, comm)?;
    let mut plan = agree_result(comm, planner.draft::<T>(comm))?.build()?;
    let arrays = || -> ferrier::Result<_> {
        let host = [plan.make_host_input()?, plan.make_host_output()?];
        Ok((host, plan.make_input()?, plan.make_output()?))
    };
    let ([mut before, mut after], mut input, mut spectrum) = agree_result(comm, arrays())?;
    let (layout_before, layout_after) = (plan.recipe().input.clone(), plan.recipe().output.clone());
    if forward {
        read(comm, task, &mut before, bar)?;
        stage(comm, bar, "transforming");
        input.upload(&before)?;
        plan.forward(&input, &mut spectrum)?;
        spectrum.download(&mut after)?;
        write(comm, task, &layout_after, &after, (output, bar))
    } else {
        read(comm, task, &mut after, bar)?;
        stage(comm, bar, "transforming");
        spectrum.upload(&after)?;
        plan.backward(&spectrum, &mut input)?;
        input.download(&mut before)?;
        write(comm, task, &layout_before, &before, (output, bar))
    }
}

/// Reads this rank's box. Collective.
fn read<T: Real>(comm: &Comm, task: &TransformTask<'_>, to: &mut Array<T>, bar: &ProgressBar) -> Outcome {
    stage(comm, bar, "reading");
    let (threads, progress) = (comm.threads(), |bytes: u64| bar.inc(bytes));
    let backward = task.args.direction == Direction::Backward;
    let read = match task.sphere.as_ref().filter(|_| backward) {
        None => task.input.read(to, threads, &progress),
        Some(sphere) => {
            let part = sphere.part(to.local_box());
            let mut all = vec![Complex::new(T::zero(), T::zero()); part.volume()];
            let read = task.input.read_box(part, Order::C, &mut all, threads, &progress);
            sphere.to_columns(&all, to);
            read
        }
    };
    agree_result(comm, read)
}

/// Writes this rank's box. Collective.
fn write<T: Real>(
    comm: &Comm,
    task: &TransformTask<'_>,
    layout: &Layout,
    from: &Array<T>,
    (output, bar): (&Writer, &ProgressBar),
) -> Outcome {
    stage(comm, bar, "writing");
    let progress = |bytes: u64| bar.inc(bytes);
    let forward = task.args.direction == Direction::Forward;
    let written = match task.sphere.as_ref().filter(|_| forward) {
        None => output.write(comm, layout, from, &progress),
        Some(sphere) => {
            // A rank's planes of the bounding box of the sphere.
            let boxes: Vec<Box3> = layout.boxes().iter().map(|own| sphere.part(*own)).collect();
            let layout = Layout::from_boxes(sphere.shape, boxes, Order::C)?;
            output.write_box(comm, &layout, &sphere.fill_box(from), &progress)
        }
    };
    agree_result(comm, written)
}
