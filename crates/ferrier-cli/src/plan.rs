//! `ferrier plan`: the recipe, what each rank sends, the memory it needs.

use std::path::Path;

use ferrier::wisdom::Known;
use ferrier::{Comm, Device, MachineSpeeds, Planner, Precision, Real, Recipe, StepTraffic};
use serde::Serialize;

use crate::args::{PlanArgs, ProblemArgs};
use crate::bench::precision;
use crate::failure::{Outcome, fail};
use crate::report::{self, bytes};
use crate::session::{self, Session};
use crate::setup;

#[derive(Serialize)]
struct Report<'a> {
    shape: &'a [usize],
    ranks: usize,
    nodes: usize,
    in_layout: String,
    out_layout: String,
    memory_bytes_per_rank: u64,
    wire_bytes: u64,
    /// The most messages from one node to another in a step.
    messages_per_node_pair: u64,
    /// The same, step by step.
    messages_between_nodes: &'a [u64],
    traffic: Vec<StepTraffic>,
    /// How long planning took, memory not counted.
    planning_ms: f64,
    /// What it was made from; null where nothing was known.
    wisdom: Option<&'a Known>,
    /// What it was judged by, where that was measured; null where it was assumed.
    speeds: Option<MachineSpeeds>,
    notes: &'a [String],
    recipe: &'a Recipe,
}

/// What a rank learns from a draft; the same on all.
pub struct Drafted {
    pub recipe: Recipe,
    /// Bytes that the neediest rank needs.
    pub memory: u64,
    /// The node of each rank.
    pub nodes: Vec<usize>,
    pub notes: Vec<String>,
    pub wisdom: Option<Known>,
    pub speeds: Option<MachineSpeeds>,
    pub planning_ms: f64,
}

impl Drafted {
    fn node_count(&self) -> usize {
        self.nodes.iter().max().map_or(1, |last| last + 1)
    }

    /// For each step the most messages from one node to another.
    fn between_nodes(&self) -> Vec<u64> {
        ferrier::exchange::find(&self.recipe.exchange)
            .map(|exchange| exchange.messages_between_nodes(&self.recipe, &self.nodes))
            .unwrap_or_default()
    }
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PlanArgs, session: &Session) -> Outcome {
    let common = &args.problem.common;
    let prepare = || {
        let ranks = session.size(common)?;
        let (problem, _) = setup::problem(&args.problem, ranks)?;
        Ok((problem, setup::choice(common, &args.problem.shape)?))
    };
    let (problem, choice) = session.agree(prepare())?;
    session.first(|| report::check_json(args.json.as_deref()))?;
    let drafted = match precision(&args.problem) {
        Precision::F32 => session
            .run(common, |comm| draft::<f32>(comm, &problem, &choice, args.wisdom.as_deref(), common.device)),
        Precision::F64 => session
            .run(common, |comm| draft::<f64>(comm, &problem, &choice, args.wisdom.as_deref(), common.device)),
    }?;
    session.first(|| match (drafted.first(), args.json.as_deref()) {
        (None, _) => fail("no rank came back"),
        (Some(drafted), Some(path)) => {
            let between = drafted.between_nodes();
            report::json(path, &assemble(&args.problem, drafted, &between))
        }
        (Some(drafted), None) => {
            let planned = format!("planned in {} ms\n", report::digits(drafted.planning_ms));
            report::say(
                &(text(&args.problem, drafted)
                    + &planned
                    + &wisdom_line(drafted.wisdom.as_ref())
                    + &speeds_line(drafted.speeds)),
            )
        }
    })
}

/// Whether something was known, and how old it is.
pub fn wisdom_line(known: Option<&Known>) -> String {
    match known {
        Some(known) => {
            let age = crate::wisdom::age(known.age());
            format!("wisdom: used (entry {} of {}, {age} old)\n", known.id, known.file.display())
        }
        None => "wisdom: none\n".into(),
    }
}

/// What the planner judged by, where it had to.
fn speeds_line(speeds: Option<MachineSpeeds>) -> String {
    speeds.map_or(String::new(), |MachineSpeeds { latency_s, wire_bytes_s, memory_bytes_s, .. }| {
        format!(
            "estimated from what was measured here: {} us a message, {} GB/s between ranks, {} GB/s of copies\n",
            report::digits(latency_s * 1e6),
            report::digits(wire_bytes_s / 1e9),
            report::digits(memory_bytes_s / 1e9)
        )
    })
}

/// Collective.
fn draft<T: Real>(
    comm: &Comm,
    problem: &ferrier::Problem,
    choice: &ferrier::Choice,
    wisdom: Option<&Path>,
    device: Device,
) -> Outcome<Drafted> {
    if device != Device::Cpu {
        return crate::gpu::draft::<T>(comm, problem, choice, device);
    }
    let planner = Planner::new(problem).choice(crate::overlap::with_messages(comm, choice)?);
    let planner = match wisdom {
        Some(file) => planner.wisdom(file),
        None => planner,
    };
    let start = std::time::Instant::now();
    let draft = planner.draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let planning_ms = start.elapsed().as_secs_f64() * 1e3;
    Ok(Drafted {
        recipe: draft.recipe().clone(),
        memory: comm.max(&[draft.memory().total() as f64])?[0] as u64,
        nodes: comm.nodes().to_vec(),
        notes: draft.notes().to_vec(),
        wisdom: draft.wisdom().cloned(),
        speeds: draft.speeds(),
        planning_ms,
    })
}

fn assemble<'a>(args: &'a ProblemArgs, drafted: &'a Drafted, between: &'a [u64]) -> Report<'a> {
    let recipe = &drafted.recipe;
    Report {
        shape: args.shape.lengths(),
        ranks: drafted.nodes.len(),
        nodes: drafted.node_count(),
        in_layout: args.in_layout.to_string(),
        out_layout: args.out_layout.to_string(),
        memory_bytes_per_rank: drafted.memory,
        wire_bytes: recipe.wire_bytes(),
        messages_per_node_pair: between.iter().copied().max().unwrap_or(0),
        messages_between_nodes: between,
        traffic: recipe.traffic(),
        notes: &drafted.notes,
        wisdom: drafted.wisdom.as_ref(),
        speeds: drafted.speeds,
        planning_ms: drafted.planning_ms,
        recipe,
    }
}

fn text(args: &ProblemArgs, drafted: &Drafted) -> String {
    let Drafted { recipe, nodes, .. } = drafted;
    let several = drafted.node_count() > 1;
    let kind = recipe.kind_text();
    let batch = if args.batch == 1 { String::new() } else { format!(", batch {}", args.batch) };
    let codec = match recipe.codec() {
        ferrier::codec::RAW => String::new(),
        name => format!(", codec {name} {}", recipe.compress.name()),
    };
    let mut out = format!(
        "{} {kind} {}{batch}{}, {} rank{}{}: exchange {}{codec}, kernel {}, {} in, {} out\n",
        args.shape,
        recipe.precision.name(),
        recipe.modes_text(),
        nodes.len(),
        if nodes.len() == 1 { "" } else { "s" },
        if several { format!(" on {} nodes", drafted.node_count()) } else { String::new() },
        recipe.exchange(),
        recipe.kernel(),
        args.in_layout,
        args.out_layout,
    );
    if args.shape.ndim() < 3 {
        let missing = 3 - args.shape.ndim();
        out += &format!("(steps count three axes: axis 0 of the shape is their axis {missing})\n");
    }
    for note in &drafted.notes {
        out += &format!("note: {note}\n");
    }
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
    let rows: Vec<_> = recipe.traffic().iter().zip(&drafted.between_nodes()).map(row).collect();
    out.push('\n');
    let heads =
        ["step", "a rank sends, at most", "messages", "all ranks send", "messages", "from node to node"];
    out += &report::columns(if several { &heads } else { &heads[..5] }, &rows);
    out.push('\n');
    let mut pairs = vec![
        ("between ranks, one forward", bytes(recipe.wire_bytes())),
        ("memory of a rank, at most", bytes(drafted.memory)),
    ];
    if crate::overlap::is_cut(&recipe.overlap) {
        pairs.push(("tiles", crate::overlap::text(&recipe.overlap, args.shape.ndim())));
    }
    out + &report::pairs(&pairs)
}
