//! `ferrier plan`: the recipe, what each rank sends, the memory it needs.

use std::path::Path;

use ferrier::wisdom::Known;
use ferrier::{Comm, Planner, Precision, Real, Recipe, StepTraffic};
use serde::Serialize;

use crate::args::{PlanArgs, ProblemArgs};
use crate::bench::precision;
use crate::failure::{Outcome, fail};
use crate::report::{self, bytes};
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
    /// What it was made from; null where nothing was known.
    wisdom: Option<&'a Known>,
    recipe: &'a Recipe,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PlanArgs) -> Outcome {
    let (problem, _) = setup::problem(&args.problem)?;
    let choice = setup::choice(&args.problem.common)?;
    report::check_json(args.json.as_deref())?;
    let group = setup::group(&args.problem.common);
    let drafts = match precision(&args.problem) {
        Precision::F32 => group.run(|comm| draft::<f32>(&comm, &problem, &choice, args.wisdom.as_deref())),
        Precision::F64 => group.run(|comm| draft::<f64>(&comm, &problem, &choice, args.wisdom.as_deref())),
    };
    let mut drafts = drafts?;
    let memory = drafts.iter().map(|draft| draft.1).max().unwrap_or(0);
    let Some((recipe, wisdom)) = drafts.iter_mut().find_map(|draft| draft.0.take()) else {
        return fail("no rank came back");
    };
    match args.json.as_deref() {
        Some(path) => report::json(path, &assemble(&args.problem, &recipe, wisdom.as_ref(), memory)),
        None => report::say(&(text(&args.problem, &recipe, memory) + &wisdom_line(wisdom.as_ref()))),
    }
}

/// What rank 0 tells: the recipe, and what it was made from.
type Told = (Recipe, Option<Known>);

/// Whether something was known, and how old it is.
fn wisdom_line(known: Option<&Known>) -> String {
    match known {
        Some(known) => {
            let age = crate::wisdom::age(known.age());
            format!("wisdom: used (entry {} of {}, {age} old)\n", known.id, known.file.display())
        }
        None => "wisdom: none\n".into(),
    }
}

/// The recipe (on rank 0) and the bytes this rank needs. Collective.
fn draft<T: Real>(
    comm: &Comm,
    problem: &ferrier::Problem,
    choice: &ferrier::Choice,
    wisdom: Option<&Path>,
) -> ferrier::Result<(Option<Told>, u64)> {
    let planner = Planner::new(problem).choice(choice.clone());
    let planner = match wisdom {
        Some(file) => planner.wisdom(file),
        None => planner,
    };
    let draft = planner.draft::<T>(comm)?;
    let told = (comm.rank() == 0).then(|| (draft.recipe().clone(), draft.wisdom().cloned()));
    Ok((told, draft.memory().total() as u64))
}

fn assemble<'a>(
    args: &'a ProblemArgs,
    recipe: &'a Recipe,
    wisdom: Option<&'a Known>,
    memory: u64,
) -> Report<'a> {
    Report {
        shape: args.shape.lengths(),
        ranks: args.common.ranks,
        in_layout: args.in_layout.to_string(),
        out_layout: args.out_layout.to_string(),
        memory_bytes_per_rank: memory,
        wire_bytes: recipe.wire_bytes(),
        traffic: recipe.traffic(),
        wisdom,
        recipe,
    }
}

fn text(args: &ProblemArgs, recipe: &Recipe, memory: u64) -> String {
    let kind = if recipe.is_real() { "r2c" } else { "c2c" };
    let batch = if args.batch == 1 { String::new() } else { format!(", batch {}", args.batch) };
    let mut out = format!(
        "{} {kind} {}{batch}, {} rank{}: exchange {}, kernel {}, {} in, {} out\n",
        args.shape,
        recipe.precision.name(),
        args.common.ranks,
        if args.common.ranks == 1 { "" } else { "s" },
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
