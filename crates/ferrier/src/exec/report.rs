//! What a plan reports of its last call: times, events, the certificate.

use std::time::Instant;

use super::backend::{Backend, Executor, VariantOf};
use super::certificate::Certificate;
use super::cpu::Cpu;
use super::events::{Event, EventKind, StepTime, StepTiming};
use super::plan::{CallState, Plan};
use super::variant::{BoundStep, Coding, TileRef};
use crate::{Error, Real, Result};
use ferrier_codec::Loss;

impl<T: Real> Plan<T, Cpu> {
    /// How long each step of the last call took on this rank, its tiles together. Allocates.
    pub fn profile(&self) -> Vec<StepTime> {
        let ms = |timing: &StepTiming| timing.end.duration_since(timing.start).as_secs_f64() * 1e3;
        self.profile_of(self.state.timings.iter().map(ms))
    }
}

impl<T: Real, B: Backend> Plan<T, B> {
    /// The steps of the last call, its tiles together, with the milliseconds of each step.
    pub(super) fn profile_of(&self, ms: impl Iterator<Item = f64>) -> Vec<StepTime> {
        let variant = &self.variants[self.state.last];
        // Which pass, or which work of a reshape, a step belongs to; barriers stay apart.
        let mut steps: Vec<(Option<(EventKind, usize)>, StepTime)> = Vec::new();
        for (step, ms) in variant.steps.iter().zip(ms) {
            let reshape = |tile: TileRef| &variant.reshapes[tile.reshape];
            let coding = |kind, word: &str, tile: TileRef| {
                (Some((kind, tile.reshape)), format!("{word} {}", reshape(tile).0), 0, 0.0)
            };
            let (key, name, bytes, flops) = match *step {
                BoundStep::Barrier => (None, "wait".into(), 0, 0.0),
                BoundStep::Run { bound, pass, .. } => {
                    let bound = &variant.passes[bound];
                    (Some((EventKind::Transform, pass)), bound.name.clone(), bound.bytes, bound.flops)
                }
                BoundStep::Encode(tile) => coding(EventKind::Encode, "encode", tile),
                BoundStep::Decode(tile) => coding(EventKind::Decode, "decode", tile),
                BoundStep::Start { tile, .. } | BoundStep::Wait { tile, .. } => {
                    let (name, bytes) = reshape(tile);
                    (Some((EventKind::Wait, tile.reshape)), name.clone(), *bytes, 0.0)
                }
            };
            match steps.iter_mut().find(|(known, _)| key.is_some() && *known == key) {
                Some((_, known)) => {
                    known.ms += ms;
                    known.flops += flops;
                    // The bytes of a reshape are those of all its tiles already.
                    known.bytes += if matches!(step, BoundStep::Run { .. }) { bytes } else { 0 };
                }
                None => steps.push((key, StepTime { name, ms, bytes, flops })),
            }
        }
        steps.into_iter().map(|(_, time)| time).collect()
    }

    /// Milliseconds of the last call on this rank; on a GPU, those in which it was enqueued.
    pub fn elapsed_ms(&self) -> f64 {
        self.state.ended.saturating_duration_since(self.state.began).as_secs_f64() * 1e3
    }

    /// What this rank did during the last call, step by step, tile by tile; on a GPU, when steps were enqueued.
    /// Where ranks access each other's memory, the first event is the wait until all have begun, the last one the
    /// wait until all are done. Allocates.
    pub fn events(&self) -> Vec<Event> {
        let CallState { began, ended, timings, .. } = &self.state;
        let since = |moment: Instant| moment.saturating_duration_since(*began).as_secs_f64() * 1e3;
        let times =
            |timing: &StepTiming| (since(timing.start), since(timing.end), timing.tests.as_secs_f64() * 1e3);
        let mut events = self.events_of(timings.iter().map(times));
        if let (true, Some(first), Some(last)) = (self.shared, timings.first(), timings.last()) {
            let wait = |start_ms: f64, end_ms: f64| Event {
                kind: EventKind::Barrier,
                name: "wait".into(),
                reshape: None,
                tile: None,
                wired: false,
                start_ms,
                end_ms,
                test_ms: 0.0,
                bytes: 0,
            };
            events.insert(0, wait(0.0, since(first.start)));
            events.push(wait(since(last.end), since(*ended)));
        }
        events
    }

    /// The steps of the last call as events, with the start, the end and the time of polling of each.
    pub(super) fn events_of(&self, times: impl Iterator<Item = (f64, f64, f64)>) -> Vec<Event> {
        let variant = &self.variants[self.state.last];
        let event = |(step, (start_ms, end_ms, test_ms)): (&BoundStep, (f64, f64, f64))| {
            let of_tile = |kind, tile: TileRef| {
                let name = &*variant.reshapes[tile.reshape].0;
                (kind, name, Some((tile.reshape, tile.tile)), variant.received[tile.exchange])
            };
            let (kind, name, at, bytes) = match *step {
                BoundStep::Barrier => (EventKind::Barrier, "wait", None, 0),
                BoundStep::Run { bound, part, reshapes, .. } => {
                    let pass = &variant.passes[bound];
                    let kind = if pass.is_copy { EventKind::Copy } else { EventKind::Transform };
                    let at = reshapes[0].zip(part.from).or(reshapes[1].zip(part.to));
                    (kind, &*pass.name, at, pass.bytes)
                }
                BoundStep::Encode(tile) => of_tile(EventKind::Encode, tile),
                BoundStep::Decode(tile) => of_tile(EventKind::Decode, tile),
                BoundStep::Start { tile, .. } => of_tile(EventKind::Post, tile),
                BoundStep::Wait { tile, .. } => of_tile(EventKind::Wait, tile),
            };
            Event {
                kind,
                name: name.into(),
                reshape: at.map(|(reshape, _)| reshape),
                tile: at.map(|(_, tile)| tile),
                wired: matches!(step, BoundStep::Run { reshapes: [Some(_), _] | [_, Some(_)], .. }),
                start_ms,
                end_ms,
                test_ms,
                bytes,
            }
        };
        variant.steps.iter().zip(times).map(event).collect()
    }

    /// How far the result of the last call may be from the exact one. `None` before the first call, after one with
    /// an operator (its effect on errors is unknown), and on a GPU with a lossy codec. The same on every rank.
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
    ///     // Half of a rank's complex elements go to the other one, and back: in less than a third of their bytes.
    ///     assert!(plan.wire_bytes() < 2 * (8 * 8 * 16) * 16 / 3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), ferrier::Error>(())
    /// ```
    pub fn certificate(&self) -> Option<Certificate> {
        self.state.certificate
    }

    /// What this rank sent to other ranks in the last call, in bytes, after encoding; with exchange `direct`, what
    /// they loaded from its memory.
    pub fn wire_bytes(&self) -> u64 {
        self.state.sent
    }

    /// Makes out the certificate of a call that is complete. Collective where something may have been lost.
    ///
    /// # Errors
    /// [`Error::Tolerance`], on every rank, where more was lost than is allowed.
    ///
    /// # Safety
    /// `output` is the address of the array that the call stored its result in.
    pub(super) unsafe fn certify(&mut self, output: usize, operated: bool, scale: f64) -> Result<()> {
        let variant: &VariantOf<T, B::Executor<T>> = &self.variants[self.state.last];
        let encoded = || variant.codings.iter().flatten();
        self.state.sent = variant.plain_bytes + encoded().map(Coding::bytes_sent).sum::<u64>();
        self.state.certificate = None;
        let unknown = !B::Executor::<T>::MEASURES_LOSS && crate::codec::is_lossy(&self.recipe.codec);
        if operated || unknown && encoded().next().is_some() {
            return Ok(());
        }
        let mut certificate = Certificate {
            loss: 0.0,
            rounding_worst: self.recipe.rounding_worst(),
            rounding_typical: self.recipe.rounding_typical(),
            tolerance: self.tolerance,
        };
        if let Some(ledger) = &mut self.ledger {
            self.state.losses.fill(Loss::NONE);
            for (coding, reshape) in variant.codings.iter().zip(&variant.reshape_of) {
                self.state.losses[*reshape] += coding.as_ref().map_or(Loss::NONE, Coding::loss);
            }
            // SAFETY: this function's contract.
            let own = unsafe { self.executor.norm(&variant.output, self.recipe.batch, output) };
            let norm = ledger.add_up(&mut self.state.losses[..variant.gains.len()], own)?;
            let shares = self.state.losses.iter().zip(&variant.gains);
            let sum: f64 =
                scale.abs() * shares.map(|(loss, gain)| gain * loss.relative_to(norm)).sum::<f64>();
            // So far relative to the result as it is; and gains, products and sums are rounded too.
            let rest = 1.0 - sum - certificate.rounding_worst;
            let scale = (1.0 + 64.0 * f64::EPSILON) / rest;
            certificate.loss = if sum == 0.0 || rest > 0.0 { sum * scale } else { f64::INFINITY };
        }
        self.state.certificate = Some(certificate);
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
