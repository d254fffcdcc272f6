//! `ferrier bench`: times of transforms, their errors and the limit of the machine.

use std::path::Path;
use std::time::Duration;

use ferrier::{DeviceSpec, machine};
use ferrier_bench::charts::{timeline, trace};
use ferrier_bench::contest::{
    BenchReport, Comparison, ContestOptions, ContestResult, Labels, find_variant, title,
};
use ferrier_bench::peers::{self, PeerEntry, PeerProblem, needs_launcher};
use indicatif::ProgressBar;

use super::args::BenchArgs;
use crate::arguments::{KindName, LayoutName, ProblemArgs, setup};
use crate::failure::{Outcome, fail};
use crate::session::Session;
use crate::{cuda, print};

/// Default time to tune variants.
const BUDGET: Duration = Duration::from_secs(20);

/// Runs the command.
///
/// # Errors
/// Bad input, a missing peer; a wrong result (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    let bar = match session.is_first() {
        true => print::styled(ProgressBar::new_spinner(), "{spinner} {msg}"),
        false => ProgressBar::hidden(),
    };
    let progress = |message: String| bar.set_message(message);
    let prepare = || Ok((prepare(args, session, &progress)?, comparison(args)?));
    let (options, comparison) = session.agree(prepare())?;
    session.first(|| check_files(args))?;
    let measured = match args.problem.common.device {
        DeviceSpec::Cpu => on_cpu(args, &options, &comparison, session),
        device => cuda::contest(&args.problem.common, &options, &comparison, device, session),
    };
    bar.finish_and_clear();
    let (result, copy_gb_s) = measured?;
    session.first(|| {
        let report = BenchReport::new(&options, &comparison, &result, copy_gb_s, args.breakdown)?;
        write_charts(args, &options, &result, &report)?;
        print::report(args.json.as_deref(), &report, &report.text(args.profile))?;
        result.first_error(&options.peer_problem, options.whole).map_or(Ok(()), Err)
    })
}

/// The measurements, and the speed of a copy: the better of before and after.
fn on_cpu(
    args: &BenchArgs,
    options: &ContestOptions<'_>,
    comparison: &Comparison,
    session: &Session,
) -> Outcome<(ContestResult, f64)> {
    let before = copy_speed(options, session)?;
    let mut result = session.run(&args.problem.common, |comm| comparison.run(comm, options))?;
    if session.launched().is_none() {
        let PeerProblem { threads, .. } = options.peer_problem;
        result.copy_ms = Some(machine::copy_time(threads, options.peer_problem.input_bytes())? * 1e3);
    }
    Ok((result, before.max(copy_speed(options, session)?)))
}

/// Checks that all files can be written.
fn check_files(args: &BenchArgs) -> Outcome {
    print::check([&args.json, &args.svg])?;
    match &args.trace {
        Some(path) if !matches!(extension(path), Some("json" | "svg")) => {
            fail(format!("--trace {}: the name must end in .json or .svg", path.display()))
        }
        _ => print::check([&args.trace]),
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Writes the timeline of the fastest plan and the chart of a sweep.
fn write_charts(
    args: &BenchArgs,
    options: &ContestOptions<'_>,
    result: &ContestResult,
    report: &BenchReport,
) -> Outcome {
    let Some(fastest) = result.fastest() else { return Ok(()) };
    let title = title(options, fastest, args.trace.is_some());
    let events = &fastest.traced[usize::from(args.trace_backward)].events;
    match args.trace.as_deref() {
        Some(path) if extension(path) == Some("svg") => {
            print::write(path, &timeline::svg(&title, events))?;
        }
        Some(path) => print::json(path, &trace::chrome(&title, events))?,
        None => {}
    }
    match (&args.svg, report.sweep_svg(title)) {
        (Some(path), Some(svg)) => print::write(path, &svg),
        _ => Ok(()),
    }
}

/// The options of the contest.
pub(super) fn prepare<'a>(
    args: &BenchArgs,
    session: &'a Session,
    progress: &'a (dyn Fn(String) + Sync),
) -> Outcome<ContestOptions<'a>> {
    let common = &args.problem.common;
    if args.predict {
        setup::cpu_only(common, "the cost model of --predict")?;
    }
    let ranks = session.size(common)?;
    let (problem, axes) = setup::problem(&args.problem, ranks)?;
    if !args.variants.is_empty() && ranks < 2 {
        return fail(
            "--variants needs at least 2 ranks (--ranks 2, or mpiexec -n 2): one rank sends nothing",
        );
    }
    args.check_repeat()?;
    let peers = args.against.iter().map(|name| peers::find(name)).collect::<Outcome<Vec<_>>>()?;
    check_peers(args, session, &peers, ranks)?;
    let whole = common.modes.keeps_all();
    if !peers.is_empty() && (!whole || common.modes.kinds.is_some()) {
        return fail(
            "--against compares Fourier transforms with all modes: no --keep, --keep-sphere or --kinds",
        );
    }
    let peer_problem = PeerProblem {
        shape: args.problem.shape.shape(),
        axes,
        real: problem.is_real(),
        batch: args.problem.batch,
        precision: args.problem.precision,
        ndim: args.problem.shape.ndim(),
        transposed: args.problem.out_layout == LayoutName::Best,
        threads: ranks.saturating_mul(session.threads(common, ranks)),
    };
    let labels = Labels {
        shape: args.problem.shape.lengths().to_vec(),
        kind: kind_text(&args.problem),
        device: common.device.to_string(),
        wire: common.execution.wire.map(|wire| wire.to_string()),
        in_layout: args.problem.in_layout.to_string(),
        out_layout: args.problem.out_layout.to_string(),
    };
    Ok(ContestOptions {
        problem,
        ranks,
        peer_problem,
        repeat: args.repeat,
        in_place: args.in_place,
        predict: args.predict,
        peers,
        launch: session.launched().map(|launched| launched.for_peers()),
        whole,
        labels,
        progress,
    })
}

/// The plans to compare.
pub(super) fn comparison(args: &BenchArgs) -> Outcome<Comparison> {
    let common = &args.problem.common;
    let choice = setup::named(common, &args.problem.shape)?;
    if common.tiling.is_auto()? {
        if !args.variants.is_empty() || args.svg.is_some() {
            return fail("--tiles auto excludes --variants and --svg");
        }
        return Ok(Comparison::Tuned(choice));
    }
    let tilings = common.tiling.tilings(&args.problem.shape)?;
    let variants = args.variants.iter().map(|name| find_variant(name)).collect::<Outcome<Vec<_>>>()?;
    if !variants.is_empty() {
        if !tilings.is_empty() || args.svg.is_some() {
            return fail("--variants choose their own tiles and have no chart: leave out --tiles and --svg");
        }
        return Ok(Comparison::Variants(choice, variants, args.budget.unwrap_or(BUDGET)));
    }
    match tilings[..] {
        [] | [_] if args.svg.is_some() => {
            fail("--svg draws --exchange-only or a sweep over --tiles, such as --tiles 4,8,16")
        }
        [] | [_] => {
            let overlap = common.tiling.overlap(&args.problem.shape)?;
            Ok(Comparison::One(choice.overlap(overlap)))
        }
        _ if !args.against.is_empty() => fail("a sweep over --tiles excludes --against"),
        _ => {
            let overlaps = tilings.iter().map(|tiling| common.tiling.with_tiling(*tiling)).collect();
            Ok(Comparison::Sweep(choice, tilings, overlaps))
        }
    }
}

/// Checks that these peers can be compared with this run.
fn check_peers(args: &BenchArgs, session: &Session, peers: &[&PeerEntry], ranks: usize) -> Outcome {
    let ProblemArgs { in_layout, out_layout, common, .. } = &args.problem;
    for peer in peers {
        if peer.is_on_gpu() != matches!(common.device, DeviceSpec::Cuda(_)) {
            return fail(format!("peer {} and --device {} do not go together", peer.name, common.device));
        }
        if peer.is_on_gpu() {
            continue;
        }
        if peer.is_distributed() {
            if session.launched().is_none() {
                return fail(needs_launcher(peer.name));
            }
            let natural = [LayoutName::Same, LayoutName::Slabs(0), LayoutName::Best].contains(out_layout);
            if *in_layout != LayoutName::Slabs(0)
                || !natural
                || common.in_grid.is_some()
                || common.out_grid.is_some()
            {
                return fail(format!(
                    "peer {} supports slabs only: --in-layout slabs:0, --out-layout same (natural order) or best (transposed)",
                    peer.name
                ));
            }
        } else if session.launched().is_some() && ranks > 1 {
            return fail(format!(
                "peer {} runs in one process, while the other ranks of this launch would wait on the same cores: \
                 compare it without a launcher (--ranks {ranks})",
                peer.name
            ));
        }
    }
    Ok(())
}

/// The copy speed of all ranks together, in GB/s. Collective over processes.
fn copy_speed(options: &ContestOptions<'_>, session: &Session) -> Outcome<f64> {
    (options.progress)("measuring the copy speed".into());
    let threads = options.peer_problem.threads;
    let Some(launched) = session.launched() else { return Ok(machine::copy_speed(threads)?) };
    let comm = launched.comm();
    comm.barrier()?;
    let own = machine::copy_speed(threads / options.ranks).map_err(Into::into);
    Ok(comm.sum(&[session.agree(own)?])?[0])
}

/// The kind of transform, and the modes to keep.
pub(super) fn kind_text(problem: &ProblemArgs) -> String {
    let modes = &problem.common.modes;
    let kinds = modes.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>());
    let kind = match (kinds, problem.kind) {
        (Some(names), _) => names.join(","),
        (None, KindName::R2c) => "r2c".into(),
        (None, KindName::C2c) => "c2c".into(),
    };
    let keep = modes.keep.as_ref().map_or(String::new(), |keep| format!(" keep {keep}"));
    let sphere = modes.keep_sphere.map_or(String::new(), |radius| format!(" sphere {radius}"));
    kind + &keep + &sphere
}
