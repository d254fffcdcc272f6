//! The command `ferrier`: transform files, benchmark, plan, describe the machine.

mod accuracy;
mod applying;
mod args;
mod bench;
mod blocks;
mod chart;
mod codec_speed;
mod contender;
mod contest;
mod convolve;
mod failure;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(not(feature = "cuda"))]
#[path = "gpu/none.rs"]
mod gpu;
mod info;
mod modes;
mod moving;
mod noise;
mod npy;
mod output;
mod overlap;
mod parts;
mod peers;
mod pending;
mod plan;
mod pulse;
mod reference;
mod report;
mod session;
mod setup;
mod shape;
mod signals;
mod solve;
mod spectrum;
mod spread;
mod sweep;
mod timeline;
mod timing;
mod trace;
mod transform;
mod tune;
mod turns;
mod variants;
mod view;
mod wisdom;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;

use args::{Cli, Command};
use failure::{Failure, Outcome};
use session::Session;

/// Where the first panic was, for the one line that is printed about it.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    signals::outlive_limits();
    // A panic is a bug of ours; the user still gets one line, not a backtrace.
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
            report::complain(&failure);
            return ExitCode::from(failure.code);
        }
    };
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| command(&session))).unwrap_or_else(|_| {
        let what = PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        Err(Failure::new(format!("internal error: {}", what.unwrap_or_default())))
    });
    session.end(outcome)
}

fn command(session: &Session) -> Outcome {
    session.check_words()?;
    let parsed = match Cli::try_parse() {
        Ok(cli) => Ok(Some(cli)),
        Err(error) if !error.use_stderr() => {
            session.first(|| report::say(&error.render().to_string()))?;
            Ok(None)
        }
        Err(error) => Err(args::usage_failure(&error)),
    };
    let Some(cli) = session.agree(parsed)? else { return Ok(()) };
    match cli.command {
        Command::Transform(args) => transform::run(&args, session),
        Command::Bench(args) => bench::run(&args, session),
        Command::Plan(args) => plan::run(&args, session),
        Command::Tune(args) => tune::run(&args, session),
        Command::Accuracy(args) => accuracy::run(&args, session),
        Command::Spectrum(args) => spectrum::run(&args, session),
        Command::Convolve(args) => convolve::run(&args, session),
        Command::Solve(args) => solve::run(&args, session),
        Command::Wisdom(args) => session.first(|| wisdom::run(&args)),
        Command::Info(args) => info::run(&args, session),
    }
}
