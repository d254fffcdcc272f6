//! `ferrier bench`: times and errors of transforms, exchanges, operators and codecs.

pub mod args;
mod codecs;
mod contest;
mod exchange;
mod operator;

use crate::failure::Outcome;
use crate::session::Session;
use args::BenchArgs;

/// Runs the command.
///
/// # Errors
/// Bad input, a missing peer; a wrong result (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    match &args.apply {
        _ if args.codec_speed => codecs::run(args, session),
        Some(name) => operator::run(args, name, session),
        None if args.exchange_only => exchange::run(args, session),
        None => contest::run(args, session),
    }
}
