//! The steps of a recipe in the order in which one direction takes them:
//! forward, backward, or there and back with an operator in the middle.

use std::sync::Arc;

use crate::modes::{IndexRun, Ragged};
use crate::recipe::{Distribution, Recipe, Step, step_name};
use crate::schedule::{AxisTransform, Direction, FusedOp, OpPosition, PointwiseOp};
use crate::{Kind, Tiling};
use ferrier_kernel::{LineKind, LinesSpec};

/// A step as one direction sees it.
pub struct Stage {
    pub step: Step,
    pub before: Distribution,
    pub after: Distribution,
    /// What a transform does to its lines.
    pub transform: Option<AxisTransform>,
}

/// The steps of a direction; `with_operator`: with an operator at the spectrum's end.
pub fn stages(recipe: &Recipe, direction: Direction, with_operator: bool) -> Vec<Stage> {
    let (steps, states) =
        (steps(recipe, with_operator || direction == Direction::RoundTrip), recipe.distributions());
    let mut there = one_way(recipe, &steps, &states, Direction::Forward);
    match direction {
        Direction::Forward => {
            if let Some(transform) =
                there.iter_mut().rev().find_map(|stage| stage.transform.as_mut()).filter(|_| with_operator)
            {
                transform.fused_op =
                    Some(called(OpPosition::After, transform.to.clone(), transform.ragged_to.clone()));
            }
            there
        }
        Direction::Backward => {
            let mut back = one_way(recipe, &steps, &states, direction);
            if let Some(transform) =
                back.iter_mut().find_map(|stage| stage.transform.as_mut()).filter(|_| with_operator)
            {
                transform.fused_op =
                    Some(called(OpPosition::Before, transform.from.clone(), transform.ragged_from.clone()));
            }
            back
        }
        Direction::RoundTrip => {
            let mut back = one_way(recipe, &steps, &states, Direction::Backward);
            there.truncate(
                there.iter().rposition(|stage| stage.transform.is_some()).map_or(0, |last| last + 1),
            );
            back.drain(..back.iter().position(|stage| stage.transform.is_some()).unwrap_or(0));
            let rest = back.split_off(usize::from(!back.is_empty()));
            if let (Some(turn), Some(inverse)) = (there.last_mut(), back.pop()) {
                turn.after = inverse.after;
                if let (Some(transform), Some(inverse)) = (&mut turn.transform, inverse.transform) {
                    transform.name = format!("{} and back", transform.name);
                    let runs = std::mem::replace(&mut transform.to, inverse.to);
                    let ragged = std::mem::replace(&mut transform.ragged_to, inverse.ragged_to);
                    transform.real = inverse.real;
                    transform.fused_op = Some(called(OpPosition::Between(inverse.spec), runs, ragged));
                }
            }
            there.extend(rest);
            there
        }
    }
}

/// The operator of the call, on lines of which there are these parts.
fn called(position: OpPosition, runs: Vec<IndexRun>, ragged: Option<Arc<Ragged>>) -> FusedOp {
    FusedOp { op: PointwiseOp::Called, position, runs, ragged }
}

/// The steps of a recipe. An operator needs a transform to go with: where there
/// is none, an axis of one point, which is its own transform, gets one. And it
/// needs columns, where there are some: those of a disc have one point each.
fn steps(recipe: &Recipe, with_operator: bool) -> Vec<Step> {
    let mut steps = recipe.steps.clone();
    let idle = |axis: &usize| recipe.shape[*axis] == 1 && recipe.kinds[*axis] == Kind::Complex;
    let along =
        |wanted: usize| steps.iter().any(|s| matches!(s, Step::Transform { axis, .. } if *axis == wanted));
    let missing = match recipe.sphere {
        Some(_) => (!along(0)).then_some(0),
        None if (0..3).any(along) => None,
        None => (0..3).find(idle),
    };
    if with_operator {
        steps.extend(missing.map(|axis| Step::Transform { axis, kind: Kind::Complex }));
    }
    steps
}

fn one_way(recipe: &Recipe, steps: &[Step], states: &[Distribution], direction: Direction) -> Vec<Stage> {
    let forward = direction == Direction::Forward;
    let mut order: Vec<usize> = (0..steps.len()).collect();
    if !forward {
        order.reverse();
    }
    let is_transform = |&&i: &&usize| matches!(steps[i], Step::Transform { .. });
    let last = order.iter().rev().find(is_transform).copied();
    let state = |i: usize| states[i.min(states.len() - 1)].clone();
    let stage = |i: usize| {
        let (mut step, mut before, mut after) = (steps[i].clone(), state(i), state(i + 1));
        if !forward {
            std::mem::swap(&mut before, &mut after);
            if let Step::Reshape { from, to } = &mut step {
                std::mem::swap(from, to);
            }
        }
        let scale = match forward {
            _ if Some(i) != last => 1.0,
            true => recipe.scale_forward,
            false => recipe.scale_backward,
        };
        let transform = transform(recipe, &step, forward, scale, [before.real, after.real]);
        Stage { step, before, after, transform }
    };
    order.into_iter().map(stage).collect()
}

fn transform(
    recipe: &Recipe,
    step: &Step,
    forward: bool,
    scale: f64,
    real: [bool; 2],
) -> Option<AxisTransform> {
    let Step::Transform { axis, kind } = step else { return None };
    let kind = line_kind(recipe, *kind, forward, !real[0]);
    let (space, modes) = (recipe.space(*axis), recipe.modes(*axis));
    // The first half of a long transform: its lines meet the twiddles when they are spectra.
    let twiddles = recipe.long.filter(|_| *axis == 1).map(|points| FusedOp {
        op: PointwiseOp::Twiddles { points, backward: !forward },
        position: if forward { OpPosition::After } else { OpPosition::Before },
        runs: modes.clone(),
        ragged: None,
    });
    let (from, to) = if forward { (space, modes) } else { (modes, space) };
    let spec = LinesSpec { n: recipe.shape[*axis], kind, scale };
    let name = step_name(step, real[0]);
    let columns = recipe.columns();
    let ragged = columns.as_ref().and_then(|columns| match axis {
        0 => Some(Arc::new(columns.along.clone())),
        1 => Some(Arc::new(columns.across.clone())),
        _ => None,
    });
    let (ragged_from, ragged_to) = if forward { (None, ragged) } else { (ragged, None) };
    let columns = columns.filter(|_| *axis == 1).map(Arc::new);
    let (axis, real, fused_op) = (*axis, real[1], twiddles);
    Some(AxisTransform { axis, spec, name, from, to, ragged_from, ragged_to, columns, real, fused_op })
}

/// What a line of an axis goes through.
fn line_kind(recipe: &Recipe, kind: Kind, forward: bool, complex: bool) -> LineKind {
    match (kind, forward, kind.r2r()) {
        (_, true, Some(kind)) => LineKind::R2r { kind, ortho: recipe.ortho[0], complex },
        (_, false, Some(kind)) => LineKind::R2r { kind: kind.inverse(), ortho: recipe.ortho[1], complex },
        (Kind::Real, true, _) => LineKind::RealForward,
        (Kind::Real, false, _) => LineKind::RealBackward,
        (_, true, _) => LineKind::Forward,
        (_, false, _) => LineKind::Backward,
    }
}

/// What is asked for the reshapes of a direction, in the order in which it comes to them.
pub fn tilings(recipe: &Recipe, direction: Direction) -> Vec<Tiling> {
    let overlap = &recipe.overlap;
    match direction {
        Direction::Forward => overlap.forward.clone(),
        Direction::Backward => overlap.backward.clone(),
        Direction::RoundTrip if overlap.forward.is_empty() && overlap.backward.is_empty() => Vec::new(),
        Direction::RoundTrip => {
            let flies =
                |step: &Step| matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes());
            let steps = steps(recipe, true);
            let last = steps.iter().rposition(|step| matches!(step, Step::Transform { .. }));
            let count = |steps: &[Step]| steps.iter().filter(|step| flies(step)).count();
            let (all, there) = (count(&steps), count(&steps[..last.unwrap_or(0)]));
            let wish = |list: &[Tiling], i: usize| list.get(i).or(list.last()).copied().unwrap_or_default();
            let forward = (0..there).map(|i| wish(&overlap.forward, i));
            forward.chain((all - there..all).map(|i| wish(&overlap.backward, i))).collect()
        }
    }
}
