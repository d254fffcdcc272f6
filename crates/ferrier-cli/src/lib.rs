//! The command `ferrier`: transforms files, plans, tunes, runs benchmarks, describes the machine.

mod arguments;
mod cli;
mod commands;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
mod cuda;
mod drafted;
mod failure;
mod files;
mod print;
mod session;

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

use clap::Parser;

use cli::Cli;
use failure::{Failure, Outcome};
use files::signals;
use session::Session;

/// Message and place of the first panic, for the line that is printed.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the command with these arguments, of which the first is its own name: the exit code. Collective over the
/// processes of an MPI launch.
pub fn run(arguments: Vec<OsString>) -> u8 {
    signals::guard_files();
    // A panic is a bug; the user gets one line, not a backtrace.
    panic::set_hook(Box::new(|info| {
        let mut first = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let payload = info.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        first.get_or_insert_with(|| format!("{}{}", text.unwrap_or("no message"), place.unwrap_or_default()));
    }));
    let session = match Session::start() {
        Ok(session) => session,
        Err(failure) => {
            print::complain(&failure);
            return failure.code;
        }
    };
    let outcome =
        panic::catch_unwind(AssertUnwindSafe(|| command(&session, &arguments))).unwrap_or_else(|_| {
            let what = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            Err(Failure::new(format!("internal error: {}", what.unwrap_or_default())))
        });
    session.end(outcome)
}

fn command(session: &Session, arguments: &[OsString]) -> Outcome {
    session.check_arguments(arguments)?;
    if let Some(points) = commands::bench::study::points(arguments, cli::bench_args) {
        return commands::bench::study::run(session.agree(points)?, session);
    }
    let parsed = match Cli::try_parse_from(arguments) {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if !error.use_stderr() => {
            session.first(|| print::say(&error.render().to_string()))?;
            Ok(None)
        }
        Err(error) => Err(cli::usage_failure(&error)),
    };
    let Some(cli) = session.agree(parsed)? else { return Ok(()) };
    cli.command.run(session)
}
