//! `ferrier bench --exchange-only`.

use ferrier_bench::exchange_bench::ExchangeBench;

use super::args::BenchArgs;
use crate::arguments::{KindName, setup};
use crate::failure::{Outcome, fail};
use crate::print;
use crate::session::Session;

/// Runs the command.
///
/// # Errors
/// Bad input; wrong data after an exchange (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    let common = &args.problem.common;
    let bench = session.agree(prepare(args, session))?;
    session.first(|| {
        print::check(args.json.as_deref())?;
        print::check(args.svg.as_deref())
    })?;
    let report = session.run(common, |comm| bench.run(comm))?;
    session.first(|| {
        if let Some(path) = &args.svg {
            print::write(path, &report.svg())?;
        }
        print::report(args.json.as_deref(), &report, &report.text())
    })
}

fn prepare(args: &BenchArgs, session: &Session) -> Outcome<ExchangeBench> {
    let common = &args.problem.common;
    setup::cpu_only(common, "--exchange-only")?;
    let ranks = session.size(common)?;
    if ranks < 2 {
        return fail("--exchange-only needs at least 2 ranks (--ranks 4, or mpiexec -n 4)");
    }
    if args.problem.kind != KindName::C2c || !args.against.is_empty() || args.profile || args.in_place {
        return fail("--exchange-only needs --kind c2c, and excludes --against, --profile, --in-place");
    }
    let tiled = !common.tiling.tiles.is_empty() || !args.variants.is_empty();
    if tiled || args.breakdown || args.trace.is_some() {
        return fail("--exchange-only excludes --tiles, --variants, --breakdown, --trace");
    }
    args.check_repeat()?;
    let (problem, _) = setup::problem(&args.problem, ranks)?;
    let choice = setup::named(common)?;
    Ok(ExchangeBench { problem, precision: args.problem.precision, choice, repeat: args.repeat })
}
