//! `ferrier bench`: times and errors of transforms, exchanges, operators and codecs.

pub mod args;
mod contest;
mod exchanges;
pub mod study;

use ferrier::{DeviceSpec, LayoutSpec};
use ferrier_bench::block_bench::BlockBench;
use ferrier_bench::codec_speed;
use ferrier_bench::halo_bench::HaloBench;
use ferrier_bench::operator_bench::{OperatorBench, find_operator};

use crate::arguments::setup;
use crate::failure::{Outcome, fail};
use crate::session::Session;
use crate::{cuda, print};
use args::BenchArgs;

/// Runs the command.
///
/// # Errors
/// Bad input, a missing peer; a wrong result (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    match &args.apply {
        _ if args.codec_speed => codecs(args, session),
        _ if args.halo.is_some() => ghost_cells(args, session),
        Some(name) => operator(args, name, session),
        None if args.blocks => blocks(args, session),
        None if args.exchange_only => exchanges::run(args, session),
        None if args.csv.is_some() || args.weak => study::run(vec![study::alone(args)], session),
        None => contest::run(args, session),
    }
}

/// `ferrier bench --codec-speed`.
fn codecs(args: &BenchArgs, session: &Session) -> Outcome {
    session.agree(setup::cpu_only(&args.problem.common, "--codec-speed"))?;
    session.first(|| {
        print::check([&args.json])?;
        let elements = args.problem.shape.shape().iter().product::<usize>().checked_mul(2);
        let Some(scalars) = elements.filter(|&scalars| scalars < usize::MAX / 64) else {
            return fail(format!("shape {} is too large to measure codecs with", args.problem.shape));
        };
        let report = codec_speed::run(args.problem.common.codec.as_deref(), scalars)?;
        print::report(args.json.as_deref(), &report, &report.text())
    })
}

/// `ferrier bench --blocks`.
fn blocks(args: &BenchArgs, session: &Session) -> Outcome {
    let bench = session.agree(prepare_blocks(args, session))?;
    session.first(|| print::check([&args.json]))?;
    let report = session.run(&args.problem.common, |comm| bench.run(comm))?;
    session.first(|| print::report(args.json.as_deref(), &report, &report.text()))
}

fn prepare_blocks(args: &BenchArgs, session: &Session) -> Outcome<BlockBench> {
    let common = &args.problem.common;
    setup::cpu_only(common, "--blocks")?;
    if !args.against.is_empty() || !args.variants.is_empty() || args.in_place || args.exchange_only {
        return fail("--blocks excludes --against, --variants, --in-place, --exchange-only");
    }
    args.check_repeat()?;
    let (problem, _) = setup::problem(&args.problem, session.size(common)?)?;
    Ok(BlockBench {
        problem,
        precision: args.problem.precision,
        choice: setup::choice(common, &args.problem.shape)?,
        repeat: args.repeat.unwrap_or(5),
        shape: args.problem.shape.lengths().to_vec(),
    })
}

/// `ferrier bench --halo`.
fn ghost_cells(args: &BenchArgs, session: &Session) -> Outcome {
    let bench = session.agree(prepare_ghost_cells(args, session))?;
    session.first(|| print::check([&args.json]))?;
    let report = session.run(&args.problem.common, |comm| match bench.device {
        DeviceSpec::Cpu => bench.run(comm),
        _ => cuda::halo_bench(comm, &bench),
    })?;
    session.first(|| print::report(args.json.as_deref(), &report, &report.text()))
}

fn prepare_ghost_cells(args: &BenchArgs, session: &Session) -> Outcome<HaloBench> {
    let common = &args.problem.common;
    if !args.against.is_empty() || !args.variants.is_empty() || args.apply.is_some() || args.exchange_only {
        return fail("--halo excludes --against, --variants, --apply, --exchange-only");
    }
    args.check_repeat()?;
    let (problem, _) = setup::problem(&args.problem, session.size(common)?)?;
    Ok(HaloBench {
        shape: problem.shape,
        precision: args.problem.precision,
        layout: problem.input,
        width: args.halo.unwrap_or(1),
        device: common.device,
        exchange: setup::named(common, &args.problem.shape)?.exchange,
        wire: common.execution.wire,
        repeat: args.repeat,
    })
}

/// `ferrier bench --apply`.
fn operator(args: &BenchArgs, name: &str, session: &Session) -> Outcome {
    let bench = session.agree(prepare_operator(args, name, session))?;
    session.first(|| print::check([&args.json]))?;
    let report = session.run(&args.problem.common, |comm| match bench.device {
        DeviceSpec::Cpu => bench.run(comm),
        _ => cuda::operator_bench(comm, &bench),
    })?;
    session.first(|| print::report(args.json.as_deref(), &report, &report.text()))
}

fn prepare_operator(args: &BenchArgs, name: &str, session: &Session) -> Outcome<OperatorBench> {
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
