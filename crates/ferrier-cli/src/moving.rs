//! `ferrier bench --exchange-only`: how fast the exchanges move bytes.
//!
//! A plan without transforms is a reshape and nothing else, so what is timed
//! here is the code that a transform runs: the store into send buffers, the
//! exchange, the load out of them; for `direct`, the load alone.

use ferrier::exchange::EXCHANGES;
use ferrier::{Choice, Comm, Error, LayoutSpec, Planner, Precision, Problem, Real, Recipe, Step};
use serde::Serialize;

use crate::args::{BenchArgs, KindName};
use crate::bench::precision;
use crate::chart::Chart;
use crate::failure::{Failure, Outcome, fail};
use crate::noise::Noise;
use crate::output;
use crate::parts::Number;
use crate::report::{self, bytes, digits};
use crate::session::{self, Session};
use crate::setup;
use crate::timing::{median, timed};
use crate::view::{View, rounded};

/// Bytes from each rank to each other one; 80 000 is what the literature likes to show.
const SIZES: [usize; 8] = [1 << 10, 4 << 10, 16 << 10, 80_000, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// No rank's array is longer than this.
const LONGEST: usize = 1 << 30;
/// What the repetitions of one measurement should take, about.
const WANTED_SECONDS: f64 = 0.2;

/// One reshape under one exchange.
#[derive(Clone, Debug, Serialize)]
struct Moved {
    what: String,
    exchange: &'static str,
    /// The most that one rank sends to another.
    bytes_per_pair: u64,
    /// All that ranks take from others.
    bytes_total: u64,
    /// What leaves the node that sends most.
    bytes_leaving_node: u64,
    #[serde(flatten)]
    speed: Option<Speed>,
    /// Why there is no speed, or what else to know.
    note: Option<String>,
}

/// How fast it went.
#[derive(Clone, Copy, Debug, Serialize)]
struct Speed {
    best_ms: f64,
    median_ms: f64,
    /// Of that the exchange itself, without loads and stores; none where they are one.
    exchange_ms: Option<f64>,
    gb_s_per_rank: f64,
    gb_s_per_node: f64,
}

/// All that is known; the keys are part of the contract.
#[derive(Debug, Serialize)]
struct Report {
    ranks: usize,
    nodes: usize,
    threads: usize,
    transport: &'static str,
    precision: &'static str,
    /// The reshapes of the transform that was asked for.
    reshapes: Vec<Moved>,
    /// All to all, with so many bytes for each pair.
    sizes: Vec<Moved>,
}

/// What is to be measured.
struct Work {
    problem: Problem,
    choice: Choice,
    exchanges: Vec<&'static str>,
    repeat: Option<usize>,
}

/// Runs the command.
///
/// # Errors
/// Bad input; bytes that came out wrong (exit code 1).
pub fn run(args: &BenchArgs, session: &Session) -> Outcome {
    let common = &args.problem.common;
    session.agree(setup::cpu_only(common, "--exchange-only"))?;
    let work = session.agree(prepare(args, session))?;
    session.first(|| {
        report::check_json(args.json.as_deref())?;
        args.svg.as_deref().map_or(Ok(()), output::check_text)
    })?;
    let reports = match precision(&args.problem) {
        Precision::F32 => session.run(common, |comm| measure::<f32>(comm, &work)),
        Precision::F64 => session.run(common, |comm| measure::<f64>(comm, &work)),
    }?;
    session.first(|| {
        let Some(report) = reports.into_iter().next() else { return fail("no rank came back") };
        if let Some(path) = &args.svg {
            output::write_text(path, &chart(&report))?;
        }
        match args.json.as_deref() {
            Some(path) if path.as_os_str() == "-" => report::json(path, &report),
            path => {
                path.map_or(Ok(()), |path| report::json(path, &report))?;
                report::say(&text(&report))
            }
        }
    })
}

fn prepare(args: &BenchArgs, session: &Session) -> Outcome<Work> {
    let ranks = session.size(&args.problem.common)?;
    if ranks < 2 {
        return fail("--exchange-only needs at least 2 ranks (--ranks 4, or mpiexec -n 4)");
    }
    if args.problem.kind != KindName::C2c || !args.against.is_empty() || args.profile || args.in_place {
        return fail("--exchange-only goes with --kind c2c, and without --against, --profile, --in-place");
    }
    let tiled = !args.problem.common.tiling.tiles.is_empty() || !args.variants.is_empty();
    if tiled || args.breakdown || args.trace.is_some() {
        return fail("--exchange-only goes without --tiles, --variants, --breakdown, --trace");
    }
    if args.repeat == Some(0) {
        return fail("--repeat 0: at least 1 repetition is needed");
    }
    let (problem, _) = setup::problem(&args.problem, ranks)?;
    let choice = setup::named(&args.problem.common)?;
    let wanted = |name: &&str| choice.exchange.as_deref().is_none_or(|chosen| chosen == *name);
    let exchanges = EXCHANGES.iter().map(|member| member.name).filter(wanted).collect();
    Ok(Work { problem, choice, exchanges, repeat: args.repeat })
}

/// What every rank does. Collective.
fn measure<T: Real + Number>(comm: &Comm, work: &Work) -> Outcome<Report> {
    let draft = Planner::new(&work.problem).choice(work.choice.clone()).draft::<T>(comm);
    let recipe = session::agree(comm, draft.map_err(Into::into))?.recipe().clone();
    let mut report = Report {
        ranks: comm.size(),
        nodes: comm.node_count(),
        threads: comm.threads(),
        transport: comm.transport_name(),
        precision: recipe.precision.name(),
        reshapes: Vec::new(),
        sizes: Vec::new(),
    };
    for problem in reshapes(&work.problem, &recipe) {
        for exchange in &work.exchanges {
            report.reshapes.push(moved::<T>(comm, work, &problem, exchange, None)?);
        }
    }
    let element = 2 * size_of::<T>();
    for size in SIZES {
        if size * comm.size() > LONGEST {
            continue;
        }
        let shape = [comm.size(), comm.size(), size / element];
        let problem = Problem::c2c(shape).axes(&[]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
        for exchange in &work.exchanges {
            let what = format!("{} per pair", bytes(size as u64));
            report.sizes.push(moved::<T>(comm, work, &problem, exchange, Some(what))?);
        }
    }
    Ok(report)
}

/// The reshapes of a recipe in which something leaves its rank, each as a problem of its own.
fn reshapes(problem: &Problem, recipe: &Recipe) -> Vec<Problem> {
    let local = recipe.traffic().into_iter().map(|step| step.local);
    let steps = recipe.steps.iter().zip(local).filter(|(_, local)| !local);
    let alone = |(step, _): (&Step, bool)| match step {
        Step::Reshape { from, to } => Some(
            problem
                .clone()
                .axes(&[])
                .input(LayoutSpec::boxes(from.boxes().to_vec()).order(from.order()))
                .output(LayoutSpec::boxes(to.boxes().to_vec()).order(to.order())),
        ),
        _ => None,
    };
    steps.filter_map(alone).collect()
}

/// Times one reshape under one exchange. Collective.
fn moved<T: Real + Number>(
    comm: &Comm,
    work: &Work,
    problem: &Problem,
    exchange: &'static str,
    what: Option<String>,
) -> Outcome<Moved> {
    let choice = work.choice.clone().exchange(exchange);
    let mut moved = Moved {
        what: what.unwrap_or_default(),
        exchange,
        bytes_per_pair: 0,
        bytes_total: 0,
        bytes_leaving_node: 0,
        speed: None,
        note: None,
    };
    let draft = match Planner::new(problem).choice(choice).draft::<T>(comm) {
        Ok(draft) => draft,
        // Not on these nodes, or too little shared memory: the same on every rank.
        Err(error @ (Error::Choice(_) | Error::Memory { .. })) => {
            moved.note = Some(error.to_string());
            return Ok(moved);
        }
        Err(error) => return session::agree(comm, Err(error.into())),
    };
    describe(&mut moved, draft.recipe(), comm);
    let boxes =
        [&draft.recipe().input, &draft.recipe().output].map(|layout| layout.boxes()[comm.rank()].volume());
    setup::check_room(comm, draft.memory().total() + (boxes[0] + boxes[1]) * 2 * size_of::<T>())?;
    let mut plan = draft.build()?;
    moved.note = plan.notes().first().cloned();
    let arrays = plan.make_input().and_then(|input| Ok((input, plan.make_output()?)));
    let (mut input, mut output) = session::agree(comm, arrays.map_err(Into::into))?;
    let noise = Noise::new(plan.recipe().shape, 1);
    input.fill_complex(|b, index| rounded(noise.at(b, index)));

    plan.forward(&input, &mut output)?;
    let (layout, batch) = (plan.output_layout(), plan.recipe().batch);
    let view = View::of_spectrum(&output, plan.output_box(), layout.order(), batch);
    let distance = comm.sum(&[view.distance(&noise, comm.threads()).0])?[0];
    if distance != 0.0 {
        let text = format!("exchange {exchange} moved bytes wrongly ({})", moved.what);
        return session::agree(comm, Err(Failure::wrong(text)));
    }
    let name = plan.recipe().traffic().into_iter().find(|step| !step.local).map(|step| step.name);
    let once = timed(comm, || plan.forward(&input, &mut output))?;
    let repeat = work.repeat.unwrap_or_else(|| (WANTED_SECONDS / once).ceil().clamp(5.0, 500.0) as usize);
    let (mut seconds, mut alone) = (Vec::with_capacity(repeat), Vec::with_capacity(repeat));
    for _ in 0..repeat {
        seconds.push(timed(comm, || plan.forward(&input, &mut output))?);
        let step = plan.profile().into_iter().find(|step| Some(&step.name) == name.as_ref());
        alone.push(step.map_or(0.0, |step| step.ms));
    }
    let alone = median(&comm.max(&alone)?);
    let (total, typical) = (moved.bytes_total as f64 / 1e9, median(&seconds));
    moved.speed = Some(Speed {
        best_ms: seconds.iter().copied().fold(f64::INFINITY, f64::min) * 1e3,
        median_ms: typical * 1e3,
        exchange_ms: (alone > 0.0).then_some(alone),
        gb_s_per_rank: total / comm.size() as f64 / typical,
        gb_s_per_node: total / comm.node_count() as f64 / typical,
    });
    Ok(moved)
}

/// Names the reshape and counts its bytes.
fn describe(moved: &mut Moved, recipe: &Recipe, comm: &Comm) {
    let element = (2 * recipe.precision.bytes() * recipe.batch) as u64;
    let (from, to, nodes) = (recipe.input.boxes(), recipe.output.boxes(), comm.nodes());
    let mut leaving = vec![0; comm.node_count()];
    for (source, own) in from.iter().enumerate() {
        for (target, theirs) in to.iter().enumerate().filter(|&(target, _)| target != source) {
            let bytes = own.intersect(theirs).volume() as u64 * element;
            moved.bytes_total += bytes;
            moved.bytes_per_pair = moved.bytes_per_pair.max(bytes);
            if nodes[source] != nodes[target] {
                leaving[nodes[source]] += bytes;
            }
        }
    }
    moved.bytes_leaving_node = leaving.into_iter().max().unwrap_or(0);
    if moved.what.is_empty() {
        moved.what = format!("{} to {}", recipe.input.grid_text(), recipe.output.grid_text());
    }
}

fn text(report: &Report) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut out = format!(
        "{} on {} ({}), {} each: what ranks take from others, median\n",
        plural(report.ranks, "rank"),
        plural(report.nodes, "node"),
        report.transport,
        plural(report.threads, "thread"),
    );
    for (title, list) in [("reshapes of the transform", &report.reshapes), ("all to all", &report.sizes)] {
        if list.is_empty() {
            continue;
        }
        out += &format!("\n{title}\n");
        out += &report::columns(
            &["", "exchange", "per pair", "ms", "exchange ms", "GB/s per rank", "GB/s per node"],
            &list.iter().map(row).collect::<Vec<_>>(),
        );
    }
    let mut notes: Vec<_> = report
        .sizes
        .iter()
        .chain(&report.reshapes)
        .filter_map(|m| Some((m.exchange, m.note.as_ref()?)))
        .collect();
    notes.sort_unstable();
    notes.dedup();
    notes.iter().for_each(|(exchange, note)| out += &format!("\nnote: {exchange}: {note}\n"));
    out
}

fn row(moved: &Moved) -> Vec<String> {
    let Moved { what, exchange, bytes_per_pair, speed, .. } = moved;
    let mut row = vec![what.clone(), exchange.to_string(), bytes(*bytes_per_pair)];
    match speed {
        Some(speed) => row.extend([
            digits(speed.median_ms),
            speed.exchange_ms.map_or(String::new(), digits),
            digits(speed.gb_s_per_rank),
            digits(speed.gb_s_per_node),
        ]),
        None => row.extend(std::iter::repeat_n("-".to_string(), 4)),
    }
    row
}

/// Bandwidth of a node against the bytes of a pair, a line for each exchange.
fn chart(report: &Report) -> String {
    let mut chart = Chart::new(
        format!("{} ranks on {} nodes ({})", report.ranks, report.nodes, report.transport),
        "bytes from each rank to each other",
        "GB/s per node",
    );
    let mut names: Vec<_> = report.sizes.iter().map(|moved| moved.exchange).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let points = report.sizes.iter().filter(|moved| moved.exchange == name);
        let point = |moved: &Moved| Some((moved.bytes_per_pair as f64, moved.speed?.gb_s_per_node));
        chart.line(name, points.filter_map(point).collect());
    }
    chart.svg(|size| bytes(size as u64))
}
