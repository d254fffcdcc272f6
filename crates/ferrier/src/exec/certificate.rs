//! Certificates: how far the last result may be from the exact one.

use serde::{Deserialize, Serialize};

use crate::transport::{Segment, Transfer, TransferKind};
use crate::{Comm, Kind, Result};
use ferrier_codec::{Loss, Norm};
use ferrier_plan::messages::packed;
use ferrier_plan::recipe::{Recipe, Step};
use ferrier_plan::schedule::Direction;

/// How far the result of a transform may be from the exact one: all relative
/// to the L2 norm of the result, whether of this one or of the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// What encoding lost: never less than the error that it made. Infinite
    /// where nothing can be said: where all was lost, or values are not finite.
    pub loss: f64,
    /// What rounding may add at most, by a bound for each stage of the transform.
    pub rounding_worst: f64,
    /// What rounding usually adds.
    pub rounding_typical: f64,
    /// The error that was allowed, if any was.
    pub tolerance: Option<f64>,
}

impl Certificate {
    /// The error is at most this.
    pub fn bound(&self) -> f64 {
        self.loss + self.rounding_worst
    }
}

/// By how much the norm of an error of each reshape may grow until the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gains {
    /// Of each reshape, in the order of the call.
    pub each: Vec<f64>,
    /// So many of them come before an operator between two transforms; its norm is not in their gains.
    pub before_operator: usize,
    /// Of an error of the input.
    pub whole: f64,
}

impl Gains {
    pub fn new(recipe: &Recipe, direction: Direction) -> Gains {
        // From the last step to the first.
        let mut gains = Gains { whole: 1.0, ..Gains::default() };
        match direction {
            Direction::Forward => gains.walk(recipe, direction, recipe.steps.iter().rev()),
            Direction::Backward => gains.walk(recipe, direction, recipe.steps.iter()),
            Direction::RoundTrip => {
                // The spectrum stays in the layout of the last transform.
                let last = recipe.steps.iter().rposition(|step| matches!(step, Step::Transform { .. }));
                let there = &recipe.steps[..last.map_or(0, |last| last + 1)];
                gains.walk(recipe, Direction::Backward, there.iter());
                let after = gains.each.len();
                gains.walk(recipe, Direction::Forward, there.iter().rev());
                gains.before_operator = gains.each.len() - after;
            }
        }
        gains.each.reverse();
        gains
    }

    /// Adds the steps of one direction, the last one first.
    fn walk<'a>(&mut self, recipe: &Recipe, direction: Direction, steps: impl Iterator<Item = &'a Step>) {
        // The scale is in the last transform.
        let mut scale = Some(match direction {
            Direction::Backward => recipe.scale_backward,
            _ => recipe.scale_forward,
        });
        for step in steps {
            match step {
                Step::Transform { axis, kind } => {
                    // A real line has each of its modes but two twice; cosines and sines that are not
                    // orthogonal count some of their points or modes twice. Modes that are dropped and
                    // zeros that are added let no norm grow.
                    let twice = match kind {
                        Kind::Real => direction == Direction::Backward,
                        kind => kind.r2r().is_some() && !recipe.ortho[direction as usize],
                    };
                    let square = kind.size(recipe.shape[*axis]) as f64 * if twice { 2.0 } else { 1.0 };
                    self.whole *= square.sqrt() * scale.take().unwrap_or(1.0).abs();
                }
                Step::Reshape { from, to } if from.boxes() == to.boxes() => {}
                Step::Reshape { .. } => self.each.push(self.whole),
            }
        }
    }
}

/// Adds up losses and norms over ranks without allocating.
pub(crate) struct Ledger {
    transfer: Option<Box<dyn Transfer>>,
    /// Bytes of a rank's entry.
    entry: usize,
    send: Vec<u8>,
    recv: Vec<u8>,
}

impl Ledger {
    /// For calls of at most so many reshapes. Collective.
    pub fn new(comm: &Comm, reshapes: usize) -> Result<Ledger> {
        let entry = (2 * reshapes + 4) * size_of::<f64>();
        let ranks = comm.size();
        let at = packed(&vec![entry; ranks]).offsets;
        let segment = |peer| Segment { peer, offset: at[peer], len: entry };
        let segments: Vec<Segment> = (0..ranks).map(segment).collect();
        let transfer = match ranks {
            1 => None,
            _ => Some(comm.transport().transfer(TransferKind::AllToAll, &segments, &segments)?),
        };
        let [send, recv] = [0, 1].map(|_| vec![0; entry * ranks]);
        Ok(Ledger { transfer, entry, send, recv })
    }

    /// Adds up losses and norms of all ranks, in their order: the same on every rank.
    pub fn add_up(&mut self, losses: &mut [Loss], norm: Norm) -> Result<Norm> {
        let Some(transfer) = &self.transfer else { return Ok(norm) };
        let numbers = losses.iter().flat_map(|loss| loss.to_array()).chain(norm.to_array());
        let (first, _) = self.send.split_at_mut(self.entry);
        for (place, number) in first.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        for copy in 1..self.send.len() / self.entry {
            self.send.copy_within(..self.entry, copy * self.entry);
        }
        // SAFETY: as long as the transfer's segments; `self` is borrowed until it returns.
        unsafe { transfer.run(self.send.as_ptr(), self.recv.as_mut_ptr())? };
        losses.fill(Loss::NONE);
        let mut norm = Norm::ZERO;
        for entry in self.recv.chunks_exact(self.entry) {
            let mut numbers = entry.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            let mut next = || numbers.next().unwrap_or(f64::NAN);
            for loss in losses.iter_mut() {
                *loss += Loss::from_array([next(), next()]);
            }
            norm += Norm::from_array([next(), next(), next(), next()]);
        }
        Ok(norm)
    }
}

#[cfg(test)]
mod tests {
    use crate::Result;

    /// Errors of different reshapes may point the same way: then they add up
    /// as norms do, not as squares. So the bound is the sum, and it is needed.
    #[test]
    fn aligned_errors_need_the_sum() {
        let _watchdog = ferrier_test::watchdog(60);
        let mut rng = ferrier_test::Rng::for_test(12);
        // How much of the sum, and by how much more than the root of the sum of squares.
        let (mut nearest, mut most) = (0.0_f64, 0.0_f64);
        for _ in 0..200 {
            let values: Vec<f64> =
                (0..12).map(|_| 1.0 + rng.below(1 << 20) as f64 / (1 << 20) as f64).collect();
            let outcome = crate::ranks(2).run(|comm| {
                let problem = crate::Problem::c2c([1, 2, 3])
                    .input(crate::LayoutSpec::slabs(2))
                    .output(crate::LayoutSpec::slabs(2));
                let run = |codec: &str| {
                    let choice = crate::Choice::new().codec(codec);
                    let mut plan =
                        crate::Planner::new(&problem).choice(choice).draft::<f64>(&comm)?.build()?;
                    let (mut input, mut output) = (plan.make_input()?, plan.make_output()?);
                    let at = |[_, j, k]: [usize; 3]| 2 * (3 * j + k);
                    input.fill_complex(|_, index| {
                        crate::Complex::new(values[at(index)], values[at(index) + 1])
                    });
                    plan.forward(&input, &mut output)?;
                    Result::Ok((plan, output))
                };
                let ((_, exact), (plan, got)) = (run("raw")?, run("trim:4")?);
                let wrong: f64 =
                    exact.complex().iter().zip(got.complex()).map(|(a, b)| (a - b).norm_sqr()).sum();
                let wrong = comm.sum(&[wrong])?[0].sqrt();
                let gains = &plan.variants[0].gains.each;
                let parts: Vec<f64> =
                    plan.state.losses.iter().zip(gains).map(|(loss, gain)| loss.norm() * gain).collect();
                assert!(wrong <= parts.iter().sum::<f64>() * (1.0 + 1e-12), "{wrong} {parts:?}");
                Ok((
                    wrong / parts.iter().sum::<f64>(),
                    wrong / parts.iter().map(|part| part * part).sum::<f64>().sqrt(),
                ))
            });
            let (of_sum, of_root) = outcome.unwrap()[0];
            (nearest, most) = (nearest.max(of_sum), most.max(of_root));
        }
        assert!(nearest > 0.85 && most > 1.15, "{nearest} of the sum, {most} times the root of squares");
    }
}
