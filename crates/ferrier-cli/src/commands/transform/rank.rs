//! The part of one rank in the transform of a file.

use std::fs::File;

use ferrier::{Array, Box3, Comm, DeviceSpec, Layout, Order, Real};
use ferrier_bench::agree::{agree, agree_result, check_memory, draft, local_volumes};
use ferrier_bench::table::{notes_text, wisdom_line};
use ferrier_bench::tiling::with_messages;
use indicatif::ProgressBar;
use num_complex::Complex;

use super::task::TransformTask;
use crate::arguments::Direction;
use crate::commands::sphere_box::SphereBox;
use crate::failure::Outcome;
use crate::files::npy_box::{self, Elements, FileBox, io_error};
use crate::print;

/// Reads, transforms and writes a rank's box. Collective.
///
/// # Errors
/// Those of the library; a file that cannot be read or written.
pub fn run<T: Real>(comm: &Comm, task: &TransformTask<'_>, output: &File, bar: &ProgressBar) -> Outcome {
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
    let (layout_in, layout_out) = match forward {
        true => (plan.input_layout().clone(), plan.output_layout().clone()),
        false => (plan.output_layout().clone(), plan.input_layout().clone()),
    };
    read(comm, task, &layout_in, &mut from, bar)?;
    stage(comm, bar, "transforming");
    if forward {
        plan.forward(&from, &mut to)?;
    } else {
        plan.backward(&from, &mut to)?;
    }
    drop(from);
    write(comm, task, &layout_out, &mut to, (output, bar))
}

/// As `run`, on a GPU.
#[cfg(feature = "cuda")]
fn on_gpu<T: Real>(comm: &Comm, task: &TransformTask<'_>, output: &File, bar: &ProgressBar) -> Outcome {
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
        read(comm, task, &layout_before, &mut before, bar)?;
        stage(comm, bar, "transforming");
        input.upload(&before)?;
        plan.forward(&input, &mut spectrum)?;
        spectrum.download(&mut after)?;
        write(comm, task, &layout_after, &mut after, (output, bar))
    } else {
        read(comm, task, &layout_after, &mut after, bar)?;
        stage(comm, bar, "transforming");
        spectrum.upload(&after)?;
        plan.backward(&spectrum, &mut input)?;
        input.download(&mut before)?;
        write(comm, task, &layout_before, &mut before, (output, bar))
    }
}

/// Shows what is going on, on rank 0.
fn stage(comm: &Comm, bar: &ProgressBar, message: &'static str) {
    if comm.rank() == 0 {
        bar.set_message(message);
    }
}

/// Reads this rank's box. Collective.
fn read<T: Real>(
    comm: &Comm,
    task: &TransformTask<'_>,
    layout: &Layout,
    to: &mut Array<T>,
    bar: &ProgressBar,
) -> Outcome {
    stage(comm, bar, "reading");
    let progress = |bytes: u64| bar.inc(bytes);
    let backward = task.args.direction == Direction::Backward;
    let read = match task.sphere.as_ref().filter(|_| backward) {
        None => {
            let part = FileBox::new(layout, own_box(to));
            npy_box::read(&task.input, &task.header, &part, to.into(), &progress)
        }
        Some(sphere) => {
            let part = sphere_part(sphere, own_box(to));
            let mut all = vec![Complex::new(T::zero(), T::zero()); part.len()];
            let read =
                npy_box::read(&task.input, &task.header, &part, Elements::Complex(&mut all), &progress);
            sphere.to_columns(&all, to);
            read
        }
    };
    agree(comm, read.map_err(|error| io_error("read", &task.args.input, &error)))
}

/// Writes this rank's box. Collective.
fn write<T: Real>(
    comm: &Comm,
    task: &TransformTask<'_>,
    layout: &Layout,
    from: &mut Array<T>,
    (output, bar): (&File, &ProgressBar),
) -> Outcome {
    stage(comm, bar, "writing");
    let progress = |bytes: u64| bar.inc(bytes);
    let forward = task.args.direction == Direction::Forward;
    let written = match task.sphere.as_ref().filter(|_| forward) {
        None => {
            let part = FileBox::new(layout, own_box(from));
            npy_box::write(output, &task.out_header, &part, from.into(), &progress)
        }
        Some(sphere) => {
            let part = sphere_part(sphere, own_box(from));
            let mut all = sphere.fill_box(from);
            npy_box::write(output, &task.out_header, &part, Elements::Complex(&mut all), &progress)
        }
    };
    // Each process syncs its own part. Threads share one descriptor, which is synced in the end.
    let written =
        written.and_then(|()| if comm.transport_name() == "mpi" { output.sync_all() } else { Ok(()) });
    agree(comm, written.map_err(|error| io_error("write", &task.args.output, &error)))
}

/// A rank's planes of the bounding box of a sphere.
fn sphere_part(sphere: &SphereBox, own: Box3) -> FileBox {
    let own = sphere.part(own);
    FileBox { shape: sphere.shape, lo: own.lo, hi: own.hi, memory: Order::C.axes() }
}

fn own_box<T: Real>(array: &Array<T>) -> Box3 {
    if array.is_complex() { array.local_box() } else { array.real_box() }
}
