//! `ferrier bench`: how fast, how close to the limit, and is it right.

mod told;

use ferrier::{Device, Precision, machine};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::applying;
use crate::args::{BenchArgs, KindName, PrecisionName, ProblemArgs};
use crate::blocks;
use crate::codec_speed;
use crate::contender::Timed;
use crate::contest::{self, Job};
use crate::failure::{Failure, Outcome, fail};
use crate::moving;
use crate::output;
use crate::overlap;
use crate::peers::{self, Member, Task};
use crate::report;
use crate::session::Session;
use crate::setup;
use crate::shape::LayoutName;
use crate::sweep;
use crate::timing::{Measured, Work, median};
use crate::trace;
use crate::variants;
use told::{PeerReport, Report, StepReport, text};

/// Best and median of some times, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub best_ms: f64,
    pub median_ms: f64,
}

impl Times {
    /// Those of some seconds.
    pub fn new(seconds: &[f64]) -> Self {
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Times { best_ms: best * 1e3, median_ms: median(seconds) * 1e3 }
    }
}

/// Runs the command.
///
/// # Errors
/// Bad input, a peer that is not there; a result that is wrong (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    if args.codec_speed {
        return codec_speed::run(args, session);
    }
    if let Some(name) = &args.apply {
        return applying::run(args, name, session);
    }
    if args.exchange_only {
        return moving::run(args, session);
    }
    let common = &args.problem.common;
    let bar = if session.is_first() { spinner() } else { ProgressBar::hidden() };
    let (work, job) =
        session.agree(prepare(args, session, &bar).and_then(|work| Ok((work, contest::job(args)?))))?;
    session.first(|| check_files(args))?;
    let measured = match common.device {
        Device::Cpu => on_cpu(args, &work, &job, session),
        device => crate::gpu::bench(common, &work, &job, device, session),
    };
    bar.finish_and_clear();
    let (measured, copy_gb_s) = measured?;
    let Some(measured) = measured.into_iter().next() else { return fail("no rank came back") };

    session.first(|| {
        let wrong = check(&work.task, work.whole, &measured);
        let report = assemble(args, &work, &job, measured, copy_gb_s)?;
        match args.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, &report)?,
            path => {
                path.map_or(Ok(()), |path| report::json(path, &report))?;
                report::say(&text(args, &report))?;
            }
        }
        wrong.map_or(Ok(()), Err)
    })
}

/// The measurements, and the speed of a copy before and after.
fn on_cpu(args: &BenchArgs, work: &Work<'_>, job: &Job, session: &Session) -> Outcome<(Vec<Measured>, f64)> {
    let common = &args.problem.common;
    let before = copy_speed(work, session)?;
    let measured = match work.task.precision {
        Precision::F32 => session.run(common, |comm| job.run::<f32>(comm, work)),
        Precision::F64 => session.run(common, |comm| job.run::<f64>(comm, work)),
    }?;
    Ok((measured, before.max(copy_speed(work, session)?)))
}

/// Can all files be written?
fn check_files(args: &BenchArgs) -> Outcome {
    report::check_json(args.json.as_deref())?;
    args.svg.as_deref().map_or(Ok(()), output::check_text)?;
    args.trace.as_deref().map_or(Ok(()), trace::check)
}

/// What is to be timed, as the options say.
fn prepare<'a>(args: &BenchArgs, session: &'a Session, bar: &'a ProgressBar) -> Outcome<Work<'a>> {
    let common = &args.problem.common;
    if args.trace.is_some() || args.breakdown {
        setup::cpu_only(common, "the timeline of --trace and --breakdown")?;
    }
    let ranks = session.size(common)?;
    let (problem, axes) = setup::problem(&args.problem, ranks)?;
    if !args.variants.is_empty() && ranks < 2 {
        return fail("--variants needs at least 2 ranks (--ranks 2, or mpiexec -n 2): one sends nothing");
    }
    if args.repeat == Some(0) {
        return fail("--repeat 0: at least 1 repetition is needed");
    }
    let peers = args.against.iter().map(|name| peers::find(name)).collect::<Outcome<Vec<_>>>()?;
    check_peers(args, session, &peers, ranks)?;
    let whole = common.modes.keeps_all();
    if !peers.is_empty() && (!whole || common.modes.kinds.is_some()) {
        return fail("--against compares whole Fourier transforms: no --keep, --keep-sphere or --kinds");
    }
    let task = Task {
        shape: args.problem.shape.shape(),
        axes,
        real: problem.is_real(),
        batch: args.problem.batch,
        precision: precision(&args.problem),
        ndim: args.problem.shape.ndim(),
        transposed: args.problem.out_layout == LayoutName::Best,
        threads: ranks.saturating_mul(session.threads(common, ranks)),
    };
    let launched = session.launched();
    Ok(Work {
        problem,
        ranks,
        task,
        repeat: args.repeat,
        in_place: args.in_place,
        peers,
        launched,
        whole,
        bar,
    })
}

/// Can these peers be compared with this run?
fn check_peers(args: &BenchArgs, session: &Session, peers: &[&Member], ranks: usize) -> Outcome {
    let ProblemArgs { in_layout, out_layout, common, .. } = &args.problem;
    for peer in peers {
        if peer.is_on_gpu() != matches!(common.device, Device::Cuda(_)) {
            return fail(format!("peer {} and --device {} do not go together", peer.name, common.device));
        }
        if peer.is_on_gpu() {
            continue;
        }
        if peer.is_together() {
            if session.launched().is_none() {
                return fail(peers::needs_launcher(peer.name));
            }
            let natural = [LayoutName::Same, LayoutName::Slabs(0), LayoutName::Best].contains(out_layout);
            if *in_layout != LayoutName::Slabs(0)
                || !natural
                || common.in_grid.is_some()
                || common.out_grid.is_some()
            {
                return fail(format!(
                    "peer {} knows slabs only: --in-layout slabs:0, --out-layout same (natural order) or best (transposed)",
                    peer.name
                ));
            }
        } else if session.launched().is_some() && ranks > 1 {
            return fail(format!(
                "peer {} runs in one process, while the ranks of this launch would wait for it on the same cores: \
                 compare it without a launcher (--ranks {ranks})",
                peer.name
            ));
        }
    }
    Ok(())
}

/// How fast all ranks together copy memory, in GB/s. Collective over processes.
fn copy_speed(work: &Work<'_>, session: &Session) -> Outcome<f64> {
    work.bar.set_message("measuring the copy speed");
    let Some(launched) = session.launched() else { return Ok(machine::copy_speed(work.task.threads)?) };
    let comm = launched.comm();
    comm.barrier()?;
    let own = machine::copy_speed(work.task.threads / work.ranks).map_err(Into::into);
    Ok(comm.sum(&[session.agree(own)?])?[0])
}

/// The precision that was asked for.
pub fn precision(args: &ProblemArgs) -> Precision {
    match args.precision {
        PrecisionName::F32 => Precision::F32,
        PrecisionName::F64 => Precision::F64,
    }
}

fn spinner() -> ProgressBar {
    // Without a tick of its own, which would be a thread that disturbs; drawn
    // only where stderr is a terminal.
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Points over which a transform mixes: the product of the transformed axes.
fn points(task: &Task) -> f64 {
    task.axes.iter().map(|&axis| task.shape[axis] as f64).product()
}

/// What is wrong with the results, if anything.
fn check(task: &Task, whole: bool, measured: &Measured) -> Option<Failure> {
    let allowed = 4.0 * task.precision.epsilon() * points(task).log2().max(1.0);
    for timed in &measured.timed {
        let [there, back] = timed.bounds.unwrap_or([allowed; 2]);
        for (what, error, allowed) in
            [("spectrum", timed.error_forward, there), ("round trip", timed.error_l2, back)]
        {
            // A NaN is not within either; what was dropped does not come back.
            let within = error <= allowed || (what == "round trip" && !whole);
            if !within {
                return Some(Failure::wrong(format!(
                    "the {what} is wrong: relative error {error:.1e}, {allowed:.1e} is allowed"
                )));
            }
        }
    }
    // Peers may be less careful than we are; this only sees that they do the same.
    let other = measured.peers.iter().find(|peer| peer.error.is_nan() || peer.error > 1e3 * allowed);
    other.map(|peer| {
        Failure::wrong(format!(
            "peer {} does another transform: relative error {:.1e}",
            peer.name, peer.error
        ))
    })
}

/// The fastest of what was compared.
fn fastest(timed: &[Timed]) -> Option<&Timed> {
    timed.iter().min_by(|a, b| median(&a.forward).total_cmp(&median(&b.forward)))
}

/// Writes the drawings, and makes the report of the fastest.
fn assemble(
    args: &BenchArgs,
    work: &Work<'_>,
    job: &Job,
    measured: Measured,
    copy_gb_s: f64,
) -> Outcome<Report> {
    let task = &work.task;
    let Some(timed) = fastest(&measured.timed) else { return fail("nothing was measured") };
    let forward = Times::new(&timed.forward);
    let title = title(args, work, timed);
    if let Some(path) = &args.trace {
        trace::write(path, &title, &timed.events)?;
    }
    let (mut sweep, mut variants) = (Vec::new(), Vec::new());
    match job {
        Job::One(_) => {}
        Job::Sweep(_, tilings, _) => sweep = sweep::points(tilings, &measured.timed, task.ndim),
        Job::Variants(_, members, _) => variants = variants::reports(members, &measured.timed),
    }
    if let (Some(path), false) = (&args.svg, sweep.is_empty()) {
        let longest = task.shape.into_iter().max().unwrap_or(1);
        output::write_text(path, &sweep::svg(&sweep, title, longest))?;
    }
    let breakdown = match args.breakdown {
        true => blocks::blocks(&timed.events, timed.typical_ms),
        false => Vec::new(),
    };
    let elements = task.shape.iter().product::<usize>() as f64 * task.batch as f64;
    let array_bytes = elements * (task.precision.bytes() * if task.real { 1 } else { 2 }) as f64;
    let flops = 5.0 * elements * points(task).log2() * if task.real { 0.5 } else { 1.0 };
    let seconds = forward.median_ms / 1e3;
    let peers = measured.peers.into_iter().map(|peer| {
        let Times { best_ms, median_ms } = Times::new(&peer.seconds);
        let (name, version, way, error_forward) = (peer.name, peer.version, peer.way, peer.error);
        PeerReport {
            name,
            version,
            best_ms,
            median_ms,
            ratio: median_ms / forward.median_ms,
            way,
            error_forward,
        }
    });
    Ok(Report {
        shape: args.problem.shape.lengths().to_vec(),
        kind: kind_text(args),
        precision: task.precision.name(),
        device: args.problem.common.device.to_string(),
        gpu: measured.gpu,
        ranks: work.ranks,
        nodes: measured.nodes,
        threads: measured.threads,
        transport: measured.transport,
        wire: args.problem.common.wire.map(|wire| wire.to_string()),
        exchange: timed.exchange.clone(),
        codec: timed.codec.clone(),
        kernel: timed.kernel.clone(),
        in_layout: args.problem.in_layout.to_string(),
        out_layout: args.problem.out_layout.to_string(),
        batch: task.batch,
        in_place: args.in_place,
        repeat: timed.forward.len(),
        forward,
        backward: Times::new(&timed.backward),
        gflops: flops / seconds / 1e9,
        error_l2: timed.error_l2,
        error_forward: timed.error_forward,
        error_bound: timed.error_bound,
        memory_bytes_per_rank: timed.memory,
        wire_bytes: timed.wire,
        copy_gb_s,
        notes: timed.notes.clone(),
        overlap: Some(timed.overlap.clone()).filter(overlap::is_cut),
        wisdom: timed.wisdom.clone(),
        planning_ms: timed.planning_ms,
        limit_fraction: 3.0 * 2.0 * array_bytes / (copy_gb_s * 1e9) / seconds,
        steps: timed.steps.iter().map(StepReport::new).collect(),
        breakdown,
        sweep,
        hidden_fraction: variants::hidden_fraction(&variants),
        variants,
        peers: peers.collect(),
    })
}

/// What is transformed, and what is kept of it.
fn kind_text(args: &BenchArgs) -> String {
    let modes = &args.problem.common.modes;
    let kinds = modes.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>());
    let kind = match (kinds, args.problem.kind) {
        (Some(names), _) => names.join(","),
        (None, KindName::R2c) => "r2c".into(),
        (None, KindName::C2c) => "c2c".into(),
    };
    let keep = modes.keep.as_ref().map_or(String::new(), |keep| format!(" keep {keep}"));
    let sphere = modes.keep_sphere.map_or(String::new(), |radius| format!(" sphere {radius}"));
    kind + &keep + &sphere
}

/// The run in a few words, over drawings.
fn title(args: &BenchArgs, work: &Work<'_>, timed: &Timed) -> String {
    let kind = kind_text(args);
    let ranks = format!("{} rank{}", work.ranks, if work.ranks == 1 { "" } else { "s" });
    let tiles = overlap::is_cut(&timed.overlap) && args.trace.is_some();
    let tiles = tiles.then(|| format!(", tiles of {}", overlap::text(&timed.overlap, work.task.ndim)));
    let wire = args.problem.common.wire.map_or(String::new(), |wire| format!(" over {wire}"));
    format!(
        "{} {kind} {}, {ranks}, {}{wire}{}",
        args.problem.shape,
        work.task.precision.name(),
        timed.exchange,
        tiles.unwrap_or_default()
    )
}
