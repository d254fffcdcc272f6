//! Certificates: how far the last result may be from the exact one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::Plan;
use super::cpu::bind::Variant;
use crate::codec::CodecInstance;
use crate::machine::SendPtr;
use crate::machine::pool::Pool;
use crate::transport::{Segment, Transfer, TransferKind};
use crate::{Comm, Error, Kind, Real, Result};
use ferrier_codec::{Loss, Norm};
use ferrier_plan::geometry::Geometry;
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
pub(crate) fn gains(recipe: &Recipe, direction: Direction) -> Vec<f64> {
    let mut steps: Vec<&Step> = recipe.steps.iter().collect();
    let scale = match direction {
        Direction::Forward => recipe.scale_forward,
        Direction::Backward => {
            steps.reverse();
            recipe.scale_backward
        }
        // What an operator does to an error nobody knows.
        Direction::RoundTrip => return Vec::new(),
    };
    // From the last step to the first; the scale is in the last transform.
    let (mut gain, mut scale, mut gains) = (1.0, Some(scale), Vec::new());
    for step in steps.into_iter().rev() {
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
                gain *= square.sqrt() * scale.take().unwrap_or(1.0).abs();
            }
            Step::Reshape { from, to } if from.boxes() == to.boxes() => {}
            Step::Reshape { .. } => gains.push(gain),
        }
    }
    gains.reverse();
    gains
}

/// Numbers whose norm one thread takes at a time.
const PIECE: usize = 1 << 14;

/// What is needed to add up losses and norms over ranks without allocating.
pub(crate) struct Ledger<T> {
    norm: fn(&[T]) -> Norm,
    transfer: Option<Box<dyn Transfer>>,
    /// Bytes of a rank's entry.
    entry: usize,
    send: Vec<u8>,
    recv: Vec<u8>,
    /// Norms of pieces of the result.
    pieces: Vec<[AtomicU64; 4]>,
    next: AtomicUsize,
}

impl<T: Real> Ledger<T> {
    /// Collective.
    pub fn new(
        comm: &Comm,
        recipe: &Recipe,
        coat: &CodecInstance<T>,
        variants: &[Variant<T>],
    ) -> Result<Ledger<T>> {
        let reshapes = recipe.steps.iter().filter(|step| matches!(step, Step::Reshape { .. })).count();
        let entry = (2 * reshapes + 4) * size_of::<f64>();
        let ranks = comm.size();
        let at = packed(&vec![entry; ranks]).offsets;
        let segment = |peer| Segment { peer, offset: at[peer], len: entry };
        let segments: Vec<Segment> = (0..ranks).map(segment).collect();
        let transfer = match ranks {
            1 => None,
            _ => Some(comm.transport().transfer(TransferKind::AllToAll, &segments, &segments)?),
        };
        let pieces = variants.iter().map(|variant| Pieces::new(&variant.output, recipe.batch).count());
        let pieces = (0..pieces.max().unwrap_or(0)).map(|_| Default::default()).collect();
        let [send, recv] = [0, 1].map(|_| vec![0; entry * ranks]);
        Ok(Ledger { norm: coat.norm, transfer, entry, send, recv, pieces, next: AtomicUsize::new(0) })
    }

    /// The norm of this rank's part of an array, on all threads.
    ///
    /// # Safety
    /// The array is as its geometry says, and nobody writes to it.
    unsafe fn norm(&self, pool: &Pool, geometry: &Geometry, batch: usize, array: *const T) -> Norm {
        let pieces = Pieces::new(geometry, batch);
        let array = SendPtr(array.cast_mut());
        self.next.store(0, Relaxed);
        pool.run(&|_| {
            loop {
                let number = self.next.fetch_add(1, Relaxed);
                if number >= pieces.count() {
                    return;
                }
                let (at, len) = pieces.get(number);
                // SAFETY: a piece of the array.
                let values = unsafe { std::slice::from_raw_parts(array.get().add(at), len) };
                for (place, number) in self.pieces[number].iter().zip((self.norm)(values).to_array()) {
                    place.store(number.to_bits(), Relaxed);
                }
            }
        });
        let known = self.pieces[..pieces.count()].iter();
        known.map(|norm| Norm::from_array(norm.each_ref().map(|n| f64::from_bits(n.load(Relaxed))))).sum()
    }

    /// Adds up losses and norms of all ranks, in their order: the same on every rank.
    fn add_up(&mut self, losses: &mut [Loss], norm: Norm) -> Result<Norm> {
        let Some(transfer) = &self.transfer else { return Ok(norm) };
        let numbers = losses.iter().flat_map(|loss| loss.to_array()).chain(norm.to_array());
        let (first, _) = self.send.split_at_mut(self.entry);
        for (place, number) in first.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *place = number.to_le_bytes();
        }
        for copy in 1..self.send.len() / self.entry {
            self.send.copy_within(..self.entry, copy * self.entry);
        }
        // SAFETY: the buffers hold all segments, and are borrowed here until `run` returns.
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

/// An array in pieces without gaps.
struct Pieces {
    /// Numbers from one row to the next, those of them that belong to the array, rows.
    row: usize,
    used: usize,
    rows: usize,
}

impl Pieces {
    fn new(geometry: &Geometry, batch: usize) -> Pieces {
        let (volume, shape) = (geometry.volume * batch, geometry.part.shape());
        let fast = (0..3).min_by_key(|&axis| geometry.strides[axis]).unwrap_or(2);
        let width = geometry.strides[fast];
        if geometry.volume == geometry.part.volume() * width {
            return Pieces { row: volume, used: volume, rows: usize::from(volume > 0) };
        }
        // Only rows are ever padded.
        let row = (0..3).filter(|&axis| axis != fast).map(|axis| geometry.strides[axis]).min().unwrap_or(1);
        Pieces { row, used: shape[fast] * width, rows: volume / row }
    }

    fn per_row(&self) -> usize {
        self.used.div_ceil(PIECE)
    }

    fn count(&self) -> usize {
        self.rows * self.per_row()
    }

    /// Where a piece begins, and how many numbers it has.
    fn get(&self, number: usize) -> (usize, usize) {
        let (row, piece) = (number / self.per_row(), number % self.per_row());
        (row * self.row + piece * PIECE, PIECE.min(self.used - piece * PIECE))
    }
}

impl<T: Real> Plan<T> {
    /// How far the result of the last transform may be from the exact one;
    /// `None` before the first, and after one with an operator, of which nobody
    /// knows how it lets errors grow. The same on every rank.
    ///
    /// ```
    /// use ferrier::{Plan, Problem};
    /// ferrier::ranks(2).run(|comm| {
    ///     let mut plan = Plan::<f64>::new(&comm, &Problem::c2c([16, 16, 16]).tolerance(1e-4))?;
    ///     let mut wave = plan.make_input()?;
    ///     wave.fill_complex(|_, [i, j, k]| ferrier::Complex::cis((i + 2 * j * j + 3 * k) as f64));
    ///     let mut modes = plan.make_output()?;
    ///     plan.forward(&wave, &mut modes)?;
    ///     let certificate = plan.certificate().expect("after a transform");
    ///     assert!(certificate.loss > 0.0 && certificate.bound() <= 1e-4);
    ///     // Half of a rank's complex numbers go to the other one, and back: in less than a third of their bytes.
    ///     assert!(plan.wire_bytes() < 2 * (8 * 8 * 16) * 16 / 3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn certificate(&self) -> Option<Certificate> {
        self.certificate
    }

    /// What this rank sent to other ranks in the last transform, in bytes,
    /// after encoding; with exchange `direct`, what they took of its memory.
    pub fn wire_bytes(&self) -> u64 {
        self.sent
    }

    /// Makes out the certificate of a transform that is done, unless an
    /// operator was in it. Collective where something may have been lost.
    ///
    /// # Errors
    /// [`Error::Tolerance`], on every rank, where more was lost than is allowed.
    ///
    /// # Safety
    /// `output` is the array that the transform stored its result in.
    pub(crate) unsafe fn certify(&mut self, output: *const T, operated: bool) -> Result<()> {
        let variant = &self.variants[self.last];
        self.sent = variant.plain + variant.codings.iter().flatten().map(|c| c.bytes_sent()).sum::<u64>();
        if operated {
            self.certificate = None;
            return Ok(());
        }
        let mut certificate = Certificate {
            loss: 0.0,
            rounding_worst: self.recipe.rounding_worst(),
            rounding_typical: self.recipe.rounding_typical(),
            tolerance: self.tolerance,
        };
        if let Some(ledger) = &mut self.ledger {
            self.losses.fill(Loss::NONE);
            for (coding, reshape) in variant.codings.iter().zip(&variant.reshape_of) {
                self.losses[*reshape] += coding.as_ref().map_or(Loss::NONE, |coding| coding.loss());
            }
            // SAFETY: the caller's word.
            let own = unsafe { ledger.norm(&self.pool, &variant.output, self.recipe.batch, output) };
            let norm = ledger.add_up(&mut self.losses[..variant.gains.len()], own)?;
            let shares = self.losses.iter().zip(&variant.gains);
            let sum: f64 = shares.map(|(loss, gain)| gain * loss.relative_to(norm)).sum();
            // So far relative to the result as it is; and gains, products and sums are rounded too.
            let rest = 1.0 - sum - certificate.rounding_worst;
            let scale = (1.0 + 64.0 * f64::EPSILON) / rest;
            certificate.loss = if sum == 0.0 || rest > 0.0 { sum * scale } else { f64::INFINITY };
        }
        self.certificate = Some(certificate);
        let promised = self.tolerance.map(|allowed| self.recipe.rounding_promised(allowed));
        let reached = certificate.loss + promised.unwrap_or(0.0);
        match self.tolerance {
            Some(allowed) if self.ledger.is_some() && (reached.is_nan() || reached > allowed) => {
                let reason = match reached.is_finite() {
                    true => "the result is much smaller than the values that were sent",
                    false => "nothing is left of the values that were sent, or some are not finite",
                };
                Err(Error::Tolerance { allowed, reached, reason })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Box3, Order};

    #[test]
    fn pieces_are_all_of_an_array_and_nothing_else() {
        let part = Box3::new([2, 0, 1], [5, 7, 12]);
        for (geometry, width) in [
            (Geometry::dense(part, Order::C, true), 1),
            (Geometry::dense(part, Order::C, false), 2),
            (Geometry::padded_real(part, Order::C), 1),
            (Geometry::padded_real(Box3::new([0; 3], [1, 1, 40_000]), Order::C), 1),
            (Geometry::padded_real(Box3::new([0; 3], [3, 4, 1]), Order::C), 1),
        ] {
            let pieces = Pieces::new(&geometry, 2);
            let mut seen = vec![0; 2 * geometry.volume];
            for number in 0..pieces.count() {
                let (at, len) = pieces.get(number);
                seen[at..at + len].iter_mut().for_each(|times| *times += 1);
            }
            let [lo, hi] = [geometry.part.lo, geometry.part.hi];
            for b in 0..2 {
                for i in lo[0]..hi[0] {
                    for j in lo[1]..hi[1] {
                        for k in lo[2]..hi[2] {
                            let at = b * geometry.volume + geometry.offset([i, j, k]);
                            seen[at..at + width].iter_mut().for_each(|times| *times -= 1);
                        }
                    }
                }
            }
            assert!(seen.iter().all(|times| *times == 0), "{geometry:?}");
        }
    }

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
                let gains = &plan.variants[0].gains;
                let parts: Vec<f64> =
                    plan.losses.iter().zip(gains).map(|(loss, gain)| loss.norm() * gain).collect();
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
