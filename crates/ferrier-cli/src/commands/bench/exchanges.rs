//! `ferrier bench --exchange-only`: exchanges alone.

use ferrier_bench::exchange_bench::ExchangeBench;

use super::args::BenchArgs;
use crate::arguments::{KindName, setup};
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// `ferrier bench --exchange-only`.
///
/// # Errors
/// Bad input; wrong data after an exchange.
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    let bench = session.agree(prepare(args, session))?;
    session.first(|| print::check([&args.json, &args.svg]))?;
    let report = session.run(&args.problem.common, |comm| bench.run(comm))?;
    session.first(|| {
        print::optional(args.svg.as_deref(), || report.svg())?;
        print::report(args.json.as_deref(), &report, &report.text())
    })
}

/// The options of the benchmark.
///
/// # Errors
/// Options that do not fit each other.
pub fn prepare(args: &BenchArgs, session: &Session) -> Outcome<ExchangeBench> {
    let common = &args.problem.common;
    if args.overlap {
        setup::cpu_only(common, "--overlap, which computes on the cores,")?;
    }
    let ranks = session.size(common)?;
    if ranks < 2 {
        return fail("--exchange-only needs at least 2 ranks (--ranks 4, or mpiexec -n 4)");
    }
    if args.problem.kind != KindName::C2c || !args.against.is_empty() || args.profile || args.in_place {
        return fail("--exchange-only needs --kind c2c, and excludes --against, --profile, --in-place");
    }
    let tiled = common.tiling.has_tiles() || !args.variants.is_empty();
    if tiled || args.breakdown || args.trace.is_some() {
        return fail("--exchange-only excludes --tiles, --variants, --breakdown, --trace");
    }
    args.check_repeat()?;
    let (problem, _) = setup::problem(&args.problem, ranks)?;
    let choice = setup::named(common, &args.problem.shape)?;
    Ok(ExchangeBench {
        problem,
        precision: args.problem.precision,
        choice,
        repeat: args.repeat,
        overlap: args.overlap,
        device: common.device,
    })
}
