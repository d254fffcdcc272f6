//! `ferrier plan`: the steps of a plan, its messages and its memory.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use ferrier::{Choice, Comm, DeviceSpec, MachineSpeeds, Planner, Problem, Real, StepTraffic};
use ferrier_bench::agree::agree_result;
use ferrier_bench::in_precision;
use ferrier_bench::table::{bytes, columns, digits, notes_text, pairs, plural, wisdom_line};
use ferrier_bench::tiling::{is_tiled, overlap_text, with_messages};
use serde::Serialize;

use crate::arguments::{ProblemArgs, setup};
use crate::drafted::Drafted;
use crate::failure::Outcome;
use crate::session::Session;
use crate::{cuda, print};

/// Rejected recipes that are listed.
const REJECTED: usize = 4;

/// `ferrier plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Wisdom file [default: FERRIER_WISDOM, else the user's file]
    #[arg(long, value_name = "FILE")]
    pub wisdom: Option<PathBuf>,
    /// Write the recipe as JSON, to stdout without FILE
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// The report of the command; the keys are part of the contract.
#[derive(Serialize)]
struct PlanReport<'a> {
    shape: &'a [usize],
    ranks: usize,
    nodes: usize,
    in_layout: String,
    out_layout: String,
    wire_bytes: u64,
    /// The most messages from one node to another in a step.
    messages_per_node_pair: u64,
    /// The same for each step.
    messages_between_nodes: &'a [u64],
    traffic: Vec<StepTraffic>,
    #[serde(flatten)]
    drafted: &'a Drafted,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PlanArgs, session: &Session) -> Outcome {
    let common = &args.problem.common;
    let on_cpu = common.device == DeviceSpec::Cpu;
    let prepare = || {
        let ranks = if on_cpu { session.planned_size(common)? } else { session.size(common)? };
        let (problem, _) = setup::problem(&args.problem, ranks)?;
        Ok((problem, setup::choice(common, &args.problem.shape)?))
    };
    let (problem, choice) = session.agree(prepare())?;
    session.first(|| print::check([&args.json]))?;
    let work =
        |comm: &Comm| in_precision!(args.problem.precision, T => draft::<T>(comm, &problem, &choice, args));
    let drafted = if on_cpu { session.plan(common, work)? } else { session.run(common, work)? };
    session.first(|| match args.json.as_deref() {
        Some(path) => print::json(path, &assemble(&args.problem, &drafted, &drafted.between_nodes())),
        None => {
            let planned = format!("planned in {} ms\n", digits(drafted.planning_ms));
            let (wisdom, speeds) = (wisdom_line(drafted.wisdom.as_ref()), speeds_line(drafted.speeds));
            print::say(&(text(&args.problem, &drafted) + &planned + &wisdom + &speeds))
        }
    })
}

/// The measured speeds that the planner used.
fn speeds_line(speeds: Option<MachineSpeeds>) -> String {
    speeds.map_or(String::new(), |MachineSpeeds { latency_s, wire_bytes_s, memory_bytes_s, .. }| {
        format!(
            "estimated from measured speeds: {} us per message, {} GB/s between ranks, {} GB/s copy\n",
            digits(latency_s * 1e6),
            digits(wire_bytes_s / 1e9),
            digits(memory_bytes_s / 1e9)
        )
    })
}

/// A draft on this rank. Collective.
fn draft<T: Real>(comm: &Comm, problem: &Problem, choice: &Choice, args: &PlanArgs) -> Outcome<Drafted> {
    let device = args.problem.common.device;
    if device != DeviceSpec::Cpu {
        return cuda::draft::<T>(comm, problem, choice, device);
    }
    let mut planner = Planner::new(problem).choice(with_messages(comm, choice)?);
    if let Some(file) = &args.wisdom {
        planner = planner.wisdom(file);
    }
    let start = Instant::now();
    Drafted::new(comm, &agree_result(comm, planner.draft::<T>(comm))?, start)
}

fn assemble<'a>(args: &'a ProblemArgs, drafted: &'a Drafted, between: &'a [u64]) -> PlanReport<'a> {
    let recipe = &drafted.recipe;
    PlanReport {
        shape: args.shape.lengths(),
        ranks: drafted.nodes.len(),
        nodes: drafted.node_count(),
        in_layout: args.in_layout.to_string(),
        out_layout: args.out_layout.to_string(),
        wire_bytes: recipe.wire_bytes(),
        messages_per_node_pair: between.iter().copied().max().unwrap_or(0),
        messages_between_nodes: between,
        traffic: recipe.traffic(),
        drafted,
    }
}

fn text(args: &ProblemArgs, drafted: &Drafted) -> String {
    let Drafted { recipe, nodes, .. } = drafted;
    let several = drafted.node_count() > 1;
    let kind = recipe.kind_text();
    let batch = if args.batch == 1 { String::new() } else { format!(", batch {}", args.batch) };
    let codec = match &*recipe.codec {
        ferrier::codec::RAW => String::new(),
        name => format!(", codec {name} {}", recipe.compress.name()),
    };
    let ProblemArgs { shape, in_layout, out_layout, .. } = args;
    let (precision, modes, ranks) =
        (recipe.precision.name(), recipe.modes_text(), plural(nodes.len(), "rank"));
    let on = if several { format!(" on {} nodes", drafted.node_count()) } else { String::new() };
    let (exchange, kernel) = (&recipe.exchange, &recipe.kernel);
    let mut out = format!("{shape} {kind} {precision}{batch}{modes}, {ranks}{on}: ");
    out += &format!("exchange {exchange}{codec}, kernel {kernel}, {in_layout} in, {out_layout} out\n");
    if args.shape.ndim() < 3 {
        let missing = 3 - args.shape.ndim();
        out += &format!("(steps have three axes: axis 0 of the shape is axis {missing} of the steps)\n");
    }
    out += &notes_text(&drafted.notes);
    let row = |(step, between): (&StepTraffic, &u64)| {
        let mut row = vec![
            bytes(step.bytes_max),
            step.messages_max.to_string(),
            bytes(step.bytes_total),
            step.messages_total.to_string(),
        ];
        if several {
            row.push(between.to_string());
        }
        if step.local {
            row.fill(String::new());
        }
        row.insert(0, step.name.clone());
        row
    };
    let (traffic, between) = (recipe.traffic(), drafted.between_nodes());
    out.push('\n');
    let heads =
        ["step", "a rank sends, at most", "messages", "all ranks send", "messages", "from node to node"];
    out += &columns(if several { &heads } else { &heads[..5] }, traffic.iter().zip(&between).map(row));
    out.push('\n');
    let mut rows = vec![
        ("between ranks, one forward", bytes(recipe.wire_bytes())),
        ("memory of a rank, at most", bytes(drafted.memory)),
    ];
    if is_tiled(&recipe.overlap) {
        rows.push(("tiles", overlap_text(&recipe.overlap, args.shape.ndim())));
    }
    out + &pairs(&rows) + &pipelines(drafted, &traffic) + &predicted(drafted)
}

/// Pipeline depth, message size and count, as the literature on non-blocking transforms defines them.
fn pipelines(drafted: &Drafted, traffic: &[StepTraffic]) -> String {
    if drafted.pipelines.is_empty() {
        return String::new();
    }
    let moving: Vec<&StepTraffic> = traffic.iter().filter(|step| !step.local).collect();
    let moving = &moving[..];
    let of = |backward: bool| {
        let own = drafted.pipelines.iter().filter(move |pipeline| pipeline.backward == backward);
        let messages = move |number: usize| match backward {
            false => moving.get(number),
            true => moving.len().checked_sub(number + 1).and_then(|at| moving.get(at)),
        };
        own.enumerate().map(move |(number, pipeline)| {
            let messages = messages(number).map_or(0, |step| step.messages_max);
            let direction = if backward { "backward" } else { "forward" };
            vec![
                format!("{direction}, {}", pipeline.name),
                pipeline.depth.to_string(),
                bytes(pipeline.bytes),
                messages.to_string(),
                (messages * pipeline.depth as u64).to_string(),
            ]
        })
    };
    let rows: Vec<Vec<String>> = of(false).chain(of(true)).collect();
    let heads = ["pipeline", "depth", "bytes of an exchange", "messages of it", "messages in all"];
    format!("\n{}", columns(&heads, rows))
}

/// The predicted times of the steps.
fn predicted(drafted: &Drafted) -> String {
    let (Some(total), Some(constants)) = (drafted.predicted_ms, &drafted.constants) else {
        return String::new();
    };
    let row = |name: &str, ms: f64| vec![name.to_string(), digits(ms)];
    let steps = drafted.predicted_steps.iter().map(|step| row(&step.name, step.predicted_ms));
    let table = columns(&["predicted", "ms"], steps.chain([row("forward", total)]));
    let rejected = drafted.rejected.iter().take(REJECTED);
    let rejected: Vec<_> =
        rejected.map(|other| vec![other.path.clone(), digits(other.relative_time)]).collect();
    let rejected = match rejected.is_empty() {
        true => String::new(),
        false => format!("\n{}", columns(&["rejected: layouts and axes", "time"], rejected.into_iter())),
    };
    let path = drafted.recipe.path_text();
    format!("\n{table}predicted with {constants}\nlayouts and axes: {path}\n{rejected}\n")
}
