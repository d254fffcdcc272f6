//! `ferrier plan`: the recipe, what each rank sends, the memory it needs.

use ferrier::{Comm, Planner, Precision, Real, Recipe};
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
    traffic: Vec<ferrier::StepTraffic>,
    recipe: &'a Recipe,
}

/// Runs the command.
///
/// # Errors
/// Bad input.
pub fn run(args: &PlanArgs) -> Outcome {
    let (problem, _) = setup::problem(&args.problem)?;
    let choice = setup::choice(&args.problem.common)?;
    let group = setup::group(&args.problem.common);
    let drafts = match precision(&args.problem) {
        Precision::F32 => group.run(|comm| draft::<f32>(&comm, &problem, &choice)),
        Precision::F64 => group.run(|comm| draft::<f64>(&comm, &problem, &choice)),
    };
    let mut drafts = drafts?;
    let memory = drafts.iter().map(|draft| draft.1).max().unwrap_or(0);
    let Some(recipe) = drafts.iter_mut().find_map(|draft| draft.0.take()) else {
        return fail("no rank came back");
    };
    match args.json.as_deref() {
        Some(path) => report::json(path, &assemble(&args.problem, &recipe, memory)),
        None => report::say(&text(&recipe, memory)),
    }
}

/// The recipe (on rank 0) and the bytes this rank needs. Collective.
fn draft<T: Real>(
    comm: &Comm,
    problem: &ferrier::Problem,
    choice: &ferrier::Choice,
) -> ferrier::Result<(Option<Recipe>, u64)> {
    let draft = Planner::new(problem).choice(choice.clone()).draft::<T>(comm)?;
    Ok(((comm.rank() == 0).then(|| draft.recipe().clone()), draft.memory().total() as u64))
}

fn assemble<'a>(args: &'a ProblemArgs, recipe: &'a Recipe, memory: u64) -> Report<'a> {
    Report {
        shape: args.shape.lengths(),
        ranks: args.common.ranks,
        in_layout: args.in_layout.to_string(),
        out_layout: args.out_layout.to_string(),
        memory_bytes_per_rank: memory,
        wire_bytes: recipe.wire_bytes(),
        traffic: recipe.traffic(),
        recipe,
    }
}

fn text(recipe: &Recipe, memory: u64) -> String {
    format!(
        "{recipe}\n\n{}",
        report::pairs(&[
            ("between ranks, one forward", bytes(recipe.wire_bytes())),
            ("memory of a rank, at most", bytes(memory)),
        ])
    )
}
