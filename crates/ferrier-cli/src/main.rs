//! The command `ferrier`: transform files, benchmark, plan, describe the machine.

mod args;
mod bench;
mod failure;
mod info;
mod noise;
mod npy;
mod output;
mod parts;
mod peers;
mod plan;
mod reference;
mod report;
mod setup;
mod shape;
mod signals;
mod spread;
mod timing;
mod transform;
mod tune;
mod view;
mod wisdom;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;

use args::{Cli, Command};
use failure::{Failure, Outcome};

/// Where the first panic was, for the one line that is printed about it.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    // A panic is a bug of ours; the user still gets one line, not a backtrace.
    panic::set_hook(Box::new(|info| {
        let mut first = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let payload = info.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        first.get_or_insert_with(|| format!("{}{}", text.unwrap_or("no message"), place.unwrap_or_default()));
    }));
    let outcome = panic::catch_unwind(AssertUnwindSafe(command)).unwrap_or_else(|_| {
        let what = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        Err(Failure::new(format!("internal error: {}", what.unwrap_or_default())))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::complain(&failure);
            ExitCode::from(failure.code)
        }
    }
}

fn command() -> Outcome {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => return report::say(&error.render().to_string()),
        Err(error) => return Err(args::usage_failure(&error)),
    };
    if !matches!(cli.command, Command::Info(_) | Command::Wisdom(_)) {
        refuse_launchers()?;
    }
    match cli.command {
        Command::Transform(args) => transform::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Wisdom(args) => wisdom::run(&args),
        Command::Info(args) => info::run(&args),
    }
}

/// Under a launcher every process would do the whole work and write the same
/// file: refused until the command takes part in MPI.
fn refuse_launchers() -> Outcome {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
    if !matches!(ferrier::mpi::find(), Ok(None)) {
        return Err(Failure::new(
            "started by an MPI launcher, but the command does not take part in MPI yet: run it alone with --ranks, \
             or set FERRIER_MPI=off to run every process by itself"
                .to_string(),
        ));
    }
    Ok(())
}
