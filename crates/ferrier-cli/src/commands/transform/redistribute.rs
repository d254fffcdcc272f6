//! A file in another layout: nothing is transformed, and elements stay what they are.

use ferrier::io::Writer;
use ferrier::{Choice, Comm, Complex, DataMut, DeviceSpec, Element, Layout, Problem, Real, Redistribution};
use ferrier_bench::agree::{agree_result, check_memory};
use ferrier_bench::table::notes_text;
use indicatif::ProgressBar;

use super::progress::stage;
use super::task::TransformTask;
use crate::arguments::Direction;
use crate::failure::Outcome;
use crate::print;

/// Reads a rank's box and writes that of the other layout. Collective.
///
/// # Errors
/// Those of the library; a file that cannot be read or written.
pub fn run<T: Real + Element>(
    comm: &Comm,
    task: &TransformTask<'_>,
    output: &Writer,
    bar: &ProgressBar,
) -> Outcome {
    match task.out_dtype.is_complex() {
        false => run_elements::<T, T>(comm, task, output, bar),
        true => run_elements::<T, Complex<T>>(comm, task, output, bar),
    }
}

/// The same for elements of scalars `T`.
fn run_elements<T: Real, E: Element>(
    comm: &Comm,
    task: &TransformTask<'_>,
    output: &Writer,
    bar: &ProgressBar,
) -> Outcome
where
    [E]: DataMut<T>,
{
    let TransformTask { problem, choice, .. } = task;
    let (mut from, mut to) = (problem.input.clone(), problem.output.clone());
    if task.args.direction == Direction::Backward {
        (from, to) = (to, from);
    }
    let problem = Problem::redistribute(problem.shape()).input(from).output(to);
    let redistribution = agree_result(comm, Redistribution::<E>::with(comm, &problem, choice))?;
    let said = notes_text(redistribution.notes());
    if comm.rank() == 0 && !said.is_empty() {
        print::say(&said)?;
    }
    let (layout_in, layout_out) =
        (redistribution.input_layout().clone(), redistribution.output_layout().clone());
    let elements = redistribution.input_box().volume() + redistribution.output_box().volume();
    check_memory(comm, redistribution.memory() + elements * size_of::<E>())?;
    let arrays = redistribution.make_input().and_then(|input| Ok((input, redistribution.make_output()?)));
    let (mut before, mut after) = agree_result(comm, arrays)?;
    stage(comm, bar, "reading");
    let part = redistribution.input_box();
    let (threads, progress) = (comm.threads(), |bytes: u64| bar.inc(bytes));
    let read = task.input.read_box(part, layout_in.order(), &mut before[..], threads, &progress);
    agree_result(comm, read)?;
    stage(comm, bar, "transforming");
    move_elements(comm, (task.args.common.device, &problem, choice), redistribution, &before, &mut after)?;
    drop(before);
    stage(comm, bar, "writing");
    write(comm, &layout_out, &after[..], (output, bar))
}

/// Redistributes on the device that was asked for. Collective.
fn move_elements<E: Element>(
    comm: &Comm,
    (device, problem, choice): (DeviceSpec, &Problem, &Choice),
    mut redistribution: Redistribution<E>,
    before: &[E],
    after: &mut [E],
) -> Outcome {
    if device == DeviceSpec::Cpu {
        return Ok(redistribution.run(before, after)?);
    }
    #[cfg(feature = "cuda")]
    {
        let gpu = ferrier_bench::gpu::of_rank(device, comm)?;
        let mut redistribution = agree_result(comm, Redistribution::on_with(&gpu, comm, problem, choice))?;
        let arrays = redistribution.make_input().and_then(|input| Ok((input, redistribution.make_output()?)));
        let (mut input, mut output) = agree_result(comm, arrays)?;
        input.upload(before)?;
        redistribution.run(&input, &mut output)?;
        Ok(output.download(after)?)
    }
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (comm, problem, choice);
        crate::cuda::refuse(device)
    }
}

/// Writes this rank's box. Collective.
fn write<T: Real, E: Element>(
    comm: &Comm,
    layout: &Layout,
    elements: &[E],
    (output, bar): (&Writer, &ProgressBar),
) -> Outcome
where
    [E]: DataMut<T>,
{
    agree_result(comm, output.write_box(comm, layout, elements, &|bytes: u64| bar.inc(bytes)))
}
