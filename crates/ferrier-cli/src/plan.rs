//! `ferrier plan`: the recipe, what each rank sends, the memory it needs.

use ferrier::{Comm, Planner, Precision, Real, Recipe, StepTraffic};
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
    in_layout: String,
    out_layout: String,
    memory_bytes_per_rank: u64,
    wire_bytes: u64,
    traffic: Vec<StepTraffic>,
    recipe: &'a Recipe,
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
        Ok((ranks, problem, setup::choice(common)?))
    };
    let (ranks, problem, choice) = session.agree(prepare())?;
    session.first(|| report::check_json(args.json.as_deref()))?;
    let mut drafts = match precision(&args.problem) {
        Precision::F32 => session.run(common, |comm| draft::<f32>(comm, &problem, &choice)),
        Precision::F64 => session.run(common, |comm| draft::<f64>(comm, &problem, &choice)),
    }?;
    let memory = drafts.first().map_or(0, |draft| draft.1);
    session.first(|| print(args, ranks, memory, drafts.iter_mut().find_map(|draft| draft.0.take())))
}

fn print(args: &PlanArgs, ranks: usize, memory: u64, recipe: Option<Recipe>) -> Outcome {
    let Some(recipe) = recipe else { return fail("no rank came back") };
    match args.json.as_deref() {
        Some(path) => report::json(path, &assemble(&args.problem, ranks, &recipe, memory)),
        None => report::say(&text(&args.problem, ranks, &recipe, memory)),
    }
}

/// The recipe (on rank 0) and the bytes that the neediest rank needs. Collective.
fn draft<T: Real>(
    comm: &Comm,
    problem: &ferrier::Problem,
    choice: &ferrier::Choice,
) -> Outcome<(Option<Recipe>, u64)> {
    let draft = Planner::new(problem).choice(choice.clone()).draft::<T>(comm);
    let draft = session::agree(comm, draft.map_err(Into::into))?;
    let memory = comm.max(&[draft.memory().total() as f64])?[0] as u64;
    Ok(((comm.rank() == 0).then(|| draft.recipe().clone()), memory))
}

fn assemble<'a>(args: &'a ProblemArgs, ranks: usize, recipe: &'a Recipe, memory: u64) -> Report<'a> {
    Report {
        shape: args.shape.lengths(),
        ranks,
        in_layout: args.in_layout.to_string(),
        out_layout: args.out_layout.to_string(),
        memory_bytes_per_rank: memory,
        wire_bytes: recipe.wire_bytes(),
        traffic: recipe.traffic(),
        recipe,
    }
}

fn text(args: &ProblemArgs, ranks: usize, recipe: &Recipe, memory: u64) -> String {
    let kind = if recipe.is_real() { "r2c" } else { "c2c" };
    let batch = if args.batch == 1 { String::new() } else { format!(", batch {}", args.batch) };
    let mut out = format!(
        "{} {kind} {}{batch}, {} rank{}: exchange {}, kernel {}, {} in, {} out\n",
        args.shape,
        recipe.precision.name(),
        ranks,
        if ranks == 1 { "" } else { "s" },
        recipe.exchange(),
        recipe.kernel(),
        args.in_layout,
        args.out_layout,
    );
    if args.shape.ndim() < 3 {
        let missing = 3 - args.shape.ndim();
        out += &format!("(steps count three axes: axis 0 of the shape is their axis {missing})\n");
    }
    let row = |step: &StepTraffic| {
        let sent =
            |of_one: String, of_all: String| if step.local { Default::default() } else { [of_one, of_all] };
        let [bytes_max, bytes_total] = sent(bytes(step.bytes_max), bytes(step.bytes_total));
        let [messages_max, messages_total] =
            sent(step.messages_max.to_string(), step.messages_total.to_string());
        vec![step.name.clone(), bytes_max, messages_max, bytes_total, messages_total]
    };
    let rows: Vec<_> = recipe.traffic().iter().map(row).collect();
    out.push('\n');
    out +=
        &report::columns(&["step", "a rank sends, at most", "messages", "all ranks send", "messages"], &rows);
    out.push('\n');
    out + &report::pairs(&[
        ("between ranks, one forward", bytes(recipe.wire_bytes())),
        ("memory of a rank, at most", bytes(memory)),
    ])
}
