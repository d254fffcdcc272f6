//! `ferrier bench --apply`.

use ferrier::{DeviceSpec, LayoutSpec};
use ferrier_bench::operator_bench::{OperatorBench, find_operator};

use super::args::BenchArgs;
use crate::arguments::setup;
use crate::failure::{Outcome, fail};
use crate::session::Session;
use crate::{cuda, print};

/// Runs the command.
///
/// # Errors
/// Bad input; a wrong result (exit code 1).
pub fn run(args: &BenchArgs, name: &str, session: &Session) -> Outcome {
    let bench = session.agree(prepare(args, name, session))?;
    session.first(|| print::check(args.json.as_deref()))?;
    let report = session.run(&args.problem.common, |comm| match bench.device {
        DeviceSpec::Cpu => bench.run(comm),
        _ => cuda::operator_bench(comm, &bench),
    })?;
    session.first(|| print::report(args.json.as_deref(), &report, &report.text()))
}

fn prepare(args: &BenchArgs, name: &str, session: &Session) -> Outcome<OperatorBench> {
    let operator = find_operator(name)?;
    if !args.against.is_empty() || !args.variants.is_empty() || args.in_place || args.exchange_only {
        return fail("--apply excludes --against, --variants, --in-place, --exchange-only");
    }
    args.check_repeat()?;
    let common = &args.problem.common;
    let (problem, _) = setup::problem(&args.problem, session.size(common)?)?;
    Ok(OperatorBench {
        problem: problem.output(LayoutSpec::unconstrained()).operators(true),
        precision: args.problem.precision,
        choice: setup::choice(common, &args.problem.shape)?,
        operator,
        device: common.device,
        shape: args.problem.shape.lengths().to_vec(),
        repeat: args.repeat,
    })
}
