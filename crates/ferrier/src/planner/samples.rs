//! Steps of transforms that the constants of the cost model are fitted to.

use std::time::Instant;

use super::draft::Draft;
use super::forecast::Forecast;
use crate::machine::{last_level_bytes, memory_left};
use crate::{Choice, Comm, DataMut, LayoutSpec, Problem, Recipe, Result};
use ferrier_plan::schedule::Direction;

/// Calls of a transform in each direction, after one to warm up.
const CALLS: usize = 5;
/// The most transforms.
const MOST: usize = 120;

/// The measured steps of a call, and what their prediction depends on.
pub(super) struct Measurement {
    pub forecast: Forecast,
    pub recipe: Recipe,
    pub direction: Direction,
    /// Names and seconds, of the slowest rank.
    pub steps: Vec<(String, f64)>,
}

/// Measures transforms on these ranks for about so many seconds, at least one. Collective.
pub(super) fn samples(comm: &Comm, budget: f64) -> Result<Vec<Measurement>> {
    let began = Instant::now();
    let mut found = Vec::new();
    // By how much predictions were wrong so far: some of the next transforms would take too long.
    let mut slower: f64 = 1.0;
    for (problem, choice) in listed().into_iter().chain(at_random()).take(MOST) {
        let draft = Draft::<f64>::on(comm, &problem, choice, &())?;
        let call = draft.prediction(false).map_or(0.0, |prediction| prediction.seconds());
        // All ranks must make the same plans. First calls, and making the arrays, take as long as some calls.
        let needed = slower * call * (2 * CALLS + 4) as f64;
        let [spent, needed] = comm.max(&[began.elapsed().as_secs_f64(), needed])?[..] else { break };
        if !found.is_empty() && spent >= budget {
            break;
        }
        if !found.is_empty() && spent + needed > budget {
            continue;
        }
        let sample = sample(comm, draft)?;
        let measured: f64 = sample[0].steps.iter().map(|step| step.1).sum();
        slower = comm.max(&[(measured / call.max(1e-9)).clamp(0.5, 4.0)])?[0];
        found.extend(sample);
    }
    Ok(found)
}

/// Transforms in the level-2 caches, in the last level and in memory, with long runs and short ones, the most important
/// first.
fn listed() -> Vec<(Problem, Choice)> {
    let cube = |n: usize| Problem::c2c([n; 3]);
    let bricks = |problem: Problem| problem.input(LayoutSpec::bricks()).output(LayoutSpec::bricks());
    // Input and output together take twice the last level, as far as there is memory.
    let elements = (2 * last_level_bytes() / 32).min((memory_left() / 256) as usize).clamp(1 << 18, 1 << 24);
    let large = (elements as f64).cbrt() as usize / 16 * 16;
    let plain = Choice::default;
    vec![
        (cube(64), plain()),
        (bricks(cube(96)), plain()),
        (bricks(cube(128)), plain().stream(Some(false))),
        (bricks(Problem::r2c([128; 3])), plain()),
        (cube(128), plain().stream(Some(true))),
        (bricks(Problem::c2c([100, 120, 126])), plain()),
        (cube(large), plain()),
        (bricks(cube(large)), plain()),
    ]
}

/// Transforms of other lengths and layouts, in the same sequence on every rank and in every run.
fn at_random() -> impl Iterator<Item = (Problem, Choice)> {
    const LENGTHS: [usize; 18] =
        [48, 64, 80, 90, 96, 100, 108, 120, 128, 135, 144, 160, 180, 192, 200, 224, 240, 256];
    const LAYOUTS: [fn() -> LayoutSpec; 7] = [
        || LayoutSpec::slabs(0),
        || LayoutSpec::slabs(1),
        || LayoutSpec::slabs(2),
        || LayoutSpec::pencils(0),
        || LayoutSpec::pencils(1),
        || LayoutSpec::pencils(2),
        LayoutSpec::bricks,
    ];
    const ORDERS: [[usize; 3]; 5] = [[2, 1, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]];
    let mut state: u64 = 1;
    let mut pick = move |count: usize| {
        // The generator of Knuth's MMIX; its high bits.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % count
    };
    std::iter::from_fn(move || {
        let cube = LENGTHS[pick(LENGTHS.len())];
        let shape = match pick(2) {
            0 => [cube; 3],
            _ => [cube, LENGTHS[pick(LENGTHS.len())], LENGTHS[pick(LENGTHS.len())]],
        };
        let real = pick(3) == 0;
        let problem = if real { Problem::r2c(shape) } else { Problem::c2c(shape) };
        let [input, output] = [(); 2].map(|()| LAYOUTS[pick(LAYOUTS.len())]());
        // The halved axis of a real transform comes first.
        let order = ORDERS[pick(if real { 3 } else { ORDERS.len() })];
        let choice = Choice::default().axes(order);
        let choice = match pick(4) {
            0 => choice.stream(Some(true)),
            1 => choice.stream(Some(false)),
            _ => choice,
        };
        Some((problem.input(input).output(output), choice))
    })
}

/// The steps of a transform in seconds, of the slowest rank, forward and backward: medians. Collective.
fn sample(comm: &Comm, draft: Draft<f64>) -> Result<[Measurement; 2]> {
    let (forecast, recipe) = (draft.forecast.clone(), draft.recipe().clone());
    let forecast = forecast.ok_or_else(|| crate::Error::other("the CPU has a cost model"))?;
    let mut plan = draft.build()?;
    let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
    input.scalars_mut().fill(0.5);
    let mut measured = [Direction::Forward, Direction::Backward].map(|direction| Measurement {
        forecast: forecast.clone(),
        recipe: recipe.clone(),
        direction,
        steps: Vec::new(),
    });
    for Measurement { direction, steps, .. } in &mut measured {
        let mut times: Vec<Vec<f64>> = Vec::new();
        for call in 0..=CALLS {
            comm.barrier()?;
            match *direction == Direction::Forward {
                true => plan.forward(&input, &mut output)?,
                false => plan.backward(&output, &mut input)?,
            }
            let profile = plan.profile();
            *steps = profile.iter().map(|step| (step.name.clone(), 0.0)).collect();
            let seconds = comm.max(&profile.iter().map(|step| step.ms / 1e3).collect::<Vec<_>>())?;
            if call > 0 {
                times.push(seconds);
            }
        }
        for (at, (_, seconds)) in steps.iter_mut().enumerate() {
            let mut all: Vec<f64> = times.iter().map(|call| call[at]).collect();
            all.sort_by(f64::total_cmp);
            *seconds = all[CALLS / 2];
        }
    }
    Ok(measured)
}
