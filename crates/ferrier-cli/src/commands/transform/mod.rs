//! `ferrier transform`: one file into another.

pub mod args;
mod progress;
mod rank;
mod redistribute;
mod task;

use ferrier::Comm;
use ferrier_bench::in_precision;
use indicatif::ProgressBar;

use crate::failure::Outcome;
use crate::print;
use crate::session::Session;
use args::TransformArgs;

/// Runs the command.
///
/// # Errors
/// Bad input; a file that cannot be read or written. OUT then keeps its contents.
pub fn run(args: &TransformArgs, session: &Session) -> Outcome {
    let task = session.agree(task::prepare(args, session))?;
    let bar = if session.is_first() {
        let processes = session.launched().map_or(1, |launched| launched.comm().size() as u64);
        let bar = ProgressBar::new((task.input.bytes() + task.out_bytes()) / processes);
        print::styled(bar, "{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    } else {
        ProgressBar::hidden()
    };
    let precision = task.input.dtype().precision();
    let work = |comm: &Comm| in_precision!(precision, T => rank::run::<T>(comm, &task, &bar));
    let done = session.run(&args.common, work);
    bar.finish_and_clear();
    done
}
