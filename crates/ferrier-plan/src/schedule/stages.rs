//! The steps of a recipe in the order of one direction: forward, backward, or a round trip with an operator in the
//! middle.

use std::sync::Arc;

use super::transform::{AxisTransform, Direction, FusedOp, OpPosition, PointwiseOp};
use crate::choice::Tiling;
use crate::kind::{Kind, Sign};
use crate::modes::{IndexRun, Ragged};
use crate::recipe::{Distribution, Recipe, Step, step_name};
use ferrier_kernel::{LineKind, LinesSpec};

/// A step in one direction.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The step; a reshape is reversed in `backward`.
    pub step: Step,
    /// The array before.
    pub before: Distribution,
    /// The array after.
    pub after: Distribution,
    /// The transform of the lines; `None` for a reshape.
    pub transform: Option<AxisTransform>,
}

/// The steps of a direction; `with_operator`: with an operator applied to the spectrum.
pub fn stages(recipe: &Recipe, direction: Direction, with_operator: bool) -> Vec<Stage> {
    let (steps, arrays) =
        (steps(recipe, with_operator || direction == Direction::RoundTrip), recipe.distributions());
    let mut forward = one_way(recipe, &steps, &arrays, Direction::Forward);
    match direction {
        Direction::Forward => {
            if let Some(transform) =
                forward.iter_mut().rev().find_map(|stage| stage.transform.as_mut()).filter(|_| with_operator)
            {
                transform.fused_op =
                    Some(operator(OpPosition::After, transform.to.clone(), transform.ragged_to.clone()));
            }
            forward
        }
        Direction::Backward => {
            let mut backward = one_way(recipe, &steps, &arrays, direction);
            if let Some(transform) =
                backward.iter_mut().find_map(|stage| stage.transform.as_mut()).filter(|_| with_operator)
            {
                transform.fused_op =
                    Some(operator(OpPosition::Before, transform.from.clone(), transform.ragged_from.clone()));
            }
            backward
        }
        Direction::RoundTrip => {
            let mut backward = one_way(recipe, &steps, &arrays, Direction::Backward);
            forward.truncate(
                forward.iter().rposition(|stage| stage.transform.is_some()).map_or(0, |last| last + 1),
            );
            backward.drain(..backward.iter().position(|stage| stage.transform.is_some()).unwrap_or(0));
            let rest = backward.split_off(usize::from(!backward.is_empty()));
            if let (Some(last), Some(inverse)) = (forward.last_mut(), backward.pop()) {
                last.after = inverse.after;
                if let (Some(transform), Some(inverse)) = (&mut last.transform, inverse.transform) {
                    transform.name = format!("{} and back", transform.name);
                    let runs = std::mem::replace(&mut transform.to, inverse.to);
                    let ragged = std::mem::replace(&mut transform.ragged_to, inverse.ragged_to);
                    transform.real = inverse.real;
                    transform.fused_op = Some(operator(OpPosition::Between(inverse.spec), runs, ragged));
                }
            }
            forward.extend(rest);
            forward
        }
    }
}

/// The operator of the call on these elements of the lines.
fn operator(position: OpPosition, runs: Vec<IndexRun>, ragged: Option<Arc<Ragged>>) -> FusedOp {
    FusedOp { op: PointwiseOp::Called, position, runs, ragged }
}

/// The steps of a recipe. An operator is fused with a transform: if there is none, an axis of one point gets a
/// trivial transform. With a sphere it is fused with the transform of the columns, even if they have one point each
/// (a disc).
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

fn one_way(recipe: &Recipe, steps: &[Step], arrays: &[Distribution], direction: Direction) -> Vec<Stage> {
    let forward = direction == Direction::Forward;
    let mut order: Vec<usize> = (0..steps.len()).collect();
    if !forward {
        order.reverse();
    }
    let is_transform = |&&i: &&usize| matches!(steps[i], Step::Transform { .. });
    let last = order.iter().rev().find(is_transform).copied();
    let array = |i: usize| arrays[i.min(arrays.len() - 1)].clone();
    let stage = |i: usize| {
        let (mut step, mut before, mut after) = (steps[i].clone(), array(i), array(i + 1));
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
    // The first half of a long transform: its spectra are multiplied by the twiddle factors.
    let twiddles = recipe.long.filter(|_| *axis == 1);
    let twiddles =
        twiddles.map(|points| PointwiseOp::Twiddles { points, backward: !is_forward(recipe, forward) });
    // Kernels have one sign for real lines.
    let halved = matches!(kind, LineKind::RealForward | LineKind::RealBackward);
    let conjugate = (halved && recipe.sign == Sign::Positive).then_some(PointwiseOp::Conjugate);
    let fused_op = twiddles.or(conjugate).map(|op| FusedOp {
        op,
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
    let (axis, [real_before, real]) = (*axis, real);
    Some(AxisTransform {
        axis,
        spec,
        name,
        from,
        to,
        ragged_from,
        ragged_to,
        columns,
        real_before,
        real,
        fused_op,
    })
}

/// The 1-D transform of a line.
fn line_kind(recipe: &Recipe, kind: Kind, forward: bool, complex: bool) -> LineKind {
    match (kind, forward, kind.r2r()) {
        (_, true, Some(kind)) => LineKind::R2r { kind, ortho: recipe.ortho[0], complex },
        (_, false, Some(kind)) => LineKind::R2r { kind: kind.inverse(), ortho: recipe.ortho[1], complex },
        (Kind::Real, true, _) => LineKind::RealForward,
        (Kind::Real, false, _) => LineKind::RealBackward,
        _ if is_forward(recipe, forward) => LineKind::Forward,
        _ => LineKind::Backward,
    }
}

/// Whether the exponent of complex lines is negative.
fn is_forward(recipe: &Recipe, forward: bool) -> bool {
    forward == (recipe.sign == Sign::Negative)
}

/// The requested tilings of the reshapes of a direction, in its order.
pub fn tilings(recipe: &Recipe, direction: Direction) -> Vec<Tiling> {
    let overlap = &recipe.overlap;
    match direction {
        Direction::Forward => overlap.forward.clone(),
        Direction::Backward => overlap.backward.clone(),
        Direction::RoundTrip if overlap.forward.is_empty() && overlap.backward.is_empty() => Vec::new(),
        Direction::RoundTrip => {
            let sends =
                |step: &Step| matches!(step, Step::Reshape { from, to } if from.boxes() != to.boxes());
            let steps = steps(recipe, true);
            let last = steps.iter().rposition(|step| matches!(step, Step::Transform { .. }));
            let count = |steps: &[Step]| steps.iter().filter(|step| sends(step)).count();
            let (all, before_last) = (count(&steps), count(&steps[..last.unwrap_or(0)]));
            let tiling = |list: &[Tiling], i: usize| list.get(i).or(list.last()).copied().unwrap_or_default();
            let forward = (0..before_last).map(|i| tiling(&overlap.forward, i));
            forward.chain((all - before_last..all).map(|i| tiling(&overlap.backward, i))).collect()
        }
    }
}
