//! `ferrier bench --codec-speed`.

use ferrier_bench::codec_speed;

use super::args::BenchArgs;
use crate::arguments::setup::cpu_only;
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    session.agree(cpu_only(&args.problem.common, "--codec-speed"))?;
    session.first(|| {
        print::check(args.json.as_deref())?;
        let elements = args.problem.shape.shape().iter().product::<usize>().checked_mul(2);
        let Some(scalars) = elements.filter(|&scalars| scalars < usize::MAX / 64) else {
            return fail(format!("shape {} is too large to measure codecs with", args.problem.shape));
        };
        let report = codec_speed::run(args.problem.common.codec.as_deref(), scalars)?;
        print::report(args.json.as_deref(), &report, &report.text())
    })
}
