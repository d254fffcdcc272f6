//! What a plan reports of its last call: times, events, the certificate.

use std::time::Instant;

use super::backend::{Backend, Executor, VariantOf};
use super::certificate::{Certificate, Gains};
use super::cpu::Cpu;
use super::events::{Event, EventKind, StepTime, StepTiming};
use super::operator::Operator;
use super::plan::{CallState, Plan};
use super::variant::{BoundStep, Coding, ROUND_TRIP, TileRef};
use crate::exchange::{PacketTiming, PacketWork};
use crate::transport::Exposed;
use crate::{Error, Real, Result};
use ferrier_codec::{Loss, Norm};

impl<T: Real> Plan<T, Cpu> {
    /// How long each step of the last call took on this rank, its tiles together. Allocates.
    pub fn profile(&self) -> Vec<StepTime> {
        let packets = self.packet_events();
        let ms = |timing: &StepTiming| {
            let (start, end) = (self.since(timing.start), self.since(timing.end));
            end - start - coded_ms(&packets, start, end)
        };
        let mut steps = self.profile_of(self.state.timings.iter().map(ms));
        for event in packets.iter().filter(|event| is_coding(event)) {
            let word = if event.kind == EventKind::Encode { "encode" } else { "decode" };
            let name = format!("{word} {}", event.name);
            match steps.iter_mut().find(|step| step.name == name) {
                Some(step) => step.ms += event.ms(),
                None => steps.push(StepTime { name, ms: event.ms(), bytes: 0, flops: 0.0 }),
            }
        }
        steps
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

    /// Milliseconds of the last call until a moment.
    fn since(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.state.began).as_secs_f64() * 1e3
    }

    /// What happened to the packets of exchanges that have some.
    fn packet_events(&self) -> Vec<Event> {
        let variant = &self.variants[self.state.last];
        // A plan that has made no call has steps, but no timings.
        let made = variant.steps.iter().zip(&self.state.timings);
        let tiles = made.filter_map(|(step, _)| match step {
            BoundStep::Wait { tile, .. } => Some(*tile),
            _ => None,
        });
        let event = |tile: TileRef, timing: PacketTiming| Event {
            kind: match timing.work {
                PacketWork::Encode => EventKind::Encode,
                PacketWork::Transfer => EventKind::Transfer,
                PacketWork::Decode => EventKind::Decode,
            },
            name: variant.reshapes[tile.reshape].0.clone(),
            reshape: Some(tile.reshape),
            tile: Some(tile.tile),
            wired: false,
            start_ms: self.since(timing.start),
            end_ms: self.since(timing.end),
            test_ms: 0.0,
            coded_ms: 0.0,
            packet: Some(timing.packet),
            bytes: timing.bytes as u64,
        };
        let of_tile = |tile: TileRef| {
            let timings = variant.exchanges[tile.exchange].timings();
            timings.into_iter().map(move |timing| event(tile, timing))
        };
        tiles.flat_map(of_tile).collect()
    }

    /// What this rank did during the last call, step by step, tile by tile, packet by packet, in the order in which it
    /// began; on a GPU, when steps were enqueued. Where ranks access each other's memory, the first event is the wait
    /// until all have begun, the last one the wait until all are done; where messages are encoded, the last one is the
    /// certificate: norms, and their sum over ranks. Allocates.
    pub fn events(&self) -> Vec<Event> {
        let CallState { ended, timings, .. } = &self.state;
        let since = |moment: Instant| self.since(moment);
        let times =
            |timing: &StepTiming| (since(timing.start), since(timing.end), timing.tests.as_secs_f64() * 1e3);
        let packets = self.packet_events();
        let mut events = self.events_of(timings.iter().map(times), &packets);
        if let (Some(first), Some(last)) = (timings.first(), timings.last()) {
            let wait = |name: &str, start_ms: f64, end_ms: f64| Event {
                kind: EventKind::Barrier,
                name: name.into(),
                reshape: None,
                tile: None,
                wired: false,
                start_ms,
                end_ms,
                test_ms: 0.0,
                coded_ms: 0.0,
                packet: None,
                bytes: 0,
            };
            if self.shared {
                events.insert(0, wait("wait", 0.0, since(first.start)));
                events.push(wait("wait", since(last.end), since(*ended)));
            } else if self.ledger.is_some() {
                events.push(wait("certificate", since(last.end), since(*ended)));
            }
        }
        if !packets.is_empty() {
            events.extend(packets);
            events.sort_by(|one, other| one.start_ms.total_cmp(&other.start_ms));
        }
        events
    }

    /// The steps of the last call as events, with the start, the end and the time of polling of each; some of that time
    /// went to packets.
    pub(super) fn events_of(
        &self,
        times: impl Iterator<Item = (f64, f64, f64)>,
        packets: &[Event],
    ) -> Vec<Event> {
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
            let coded_ms = coded_ms(packets, start_ms, end_ms);
            // Packets are coded in tests of exchanges in flight, or in what posts and waits do.
            let test_ms = (test_ms - coded_ms).max(0.0);
            Event {
                kind,
                name: name.into(),
                reshape: at.map(|(reshape, _)| reshape),
                tile: at.map(|(_, tile)| tile),
                wired: matches!(step, BoundStep::Run { reshapes: [Some(_), _] | [_, Some(_)], .. }),
                start_ms,
                end_ms,
                test_ms,
                coded_ms,
                packet: None,
                bytes,
            }
        };
        variant.steps.iter().zip(times).map(event).collect()
    }

    /// How far the result of the last call may be from the exact one. `None` before the first call, after one with
    /// an operator whose effect on errors is unknown ([`Operator::norm`]; `apply` from one array to another has a
    /// certificate). The same on every rank. On a GPU, calls of plans with a lossy codec return when they are complete.
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

    /// An error where a tolerance could not be checked after the call; the same on every rank.
    pub(super) fn check_bounded(&self, which: usize, operator: Option<&dyn Operator<T>>) -> Result<()> {
        let Some(operator) = operator.filter(|_| self.ledger.is_some() && self.tolerance.is_some()) else {
            return Ok(());
        };
        if which == ROUND_TRIP && operator.norm().is_some() {
            return Ok(());
        }
        Err(Error::choice(
            "operator",
            "a plan with a tolerance has a bound only for `apply`, from an array to another, of an operator whose norm is \
             known: see `bounded`",
        ))
    }

    /// Makes out the certificate of a call that is complete. Collective where something may have been lost.
    ///
    /// # Errors
    /// [`Error::Tolerance`], on every rank, where more was lost than is allowed.
    ///
    /// # Safety
    /// `input` and `output` are the addresses of the arrays of the call.
    pub(super) unsafe fn certify(
        &mut self,
        [input, output, _]: Exposed,
        operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()> {
        let variant: &VariantOf<T, B::Executor<T>> = &self.variants[self.state.last];
        let encoded = variant.codings.iter().flatten();
        self.state.sent = variant.plain_bytes + encoded.map(Coding::bytes_sent).sum::<u64>();
        self.state.certificate = None;
        let between = match operator {
            None => None,
            Some(operator) => match operator.norm().filter(|_| self.state.last == ROUND_TRIP) {
                Some(norm) if self.ledger.is_some() && !variant.gains.each.is_empty() => Some(norm),
                _ => return Ok(()),
            },
        };
        let mut certificate = Certificate {
            loss: 0.0,
            rounding_worst: self.recipe.rounding_worst(),
            rounding_typical: self.recipe.rounding_typical(),
            tolerance: self.tolerance,
        };
        // How much more rounding does where an operator lets errors of the first transform grow.
        let mut rounds = 1.0;
        if self.ledger.is_some() {
            let batch = self.recipe.batch;
            // SAFETY: this function's contract.
            let own = unsafe { self.executor.norm(&variant.output, batch, output) };
            // Where it cannot be had, only this rank knows.
            let own = self.or_fail(own)?;
            let own_input = match between {
                None => Norm::ZERO,
                // SAFETY: as above; only calls in place change their input, and those have no certificate.
                Some(_) => self.or_fail(unsafe { self.executor.norm(&variant.input, batch, input) })?,
            };
            self.state.losses.fill(Loss::NONE);
            for (coding, reshape) in variant.codings.iter().zip(&variant.reshape_of) {
                self.state.losses[*reshape] += coding.as_ref().map_or(Loss::NONE, Coding::loss);
            }
            let Some(ledger) = &mut self.ledger else { return Ok(()) };
            let Gains { each, before_operator, whole } = &variant.gains;
            let norm = ledger.add_up(&mut self.state.losses[..each.len()], own)?;
            let share = |(at, (loss, gain)): (usize, (&Loss, &f64))| {
                let amplified = between.filter(|_| at < *before_operator).unwrap_or(1.0);
                gain * amplified * loss.relative_to(norm)
            };
            let sum: f64 =
                scale.abs() * self.state.losses.iter().zip(each).enumerate().map(share).sum::<f64>();
            if let Some(amplified) = between {
                let whole_input = ledger.add_up(&mut [], own_input)?;
                // The first transform, and the operator's own product.
                rounds +=
                    amplified * whole * scale.abs() * whole_input.at_most() / norm.at_least() * (1.0 + 1e-9);
                certificate.rounding_worst *= rounds;
                certificate.rounding_typical *= rounds;
            }
            // So far relative to the result as it is; and gains, products and sums are rounded too.
            let rest = 1.0 - sum - certificate.rounding_worst;
            let scale = (1.0 + 64.0 * f64::EPSILON) / rest;
            certificate.loss = if sum == 0.0 || rest > 0.0 { sum * scale } else { f64::INFINITY };
        }
        self.state.certificate = Some(certificate);
        let promised = self.tolerance.map(|allowed| self.recipe.rounding_promised(allowed) * rounds);
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

/// Is it the encoding or decoding of a packet?
fn is_coding(event: &Event) -> bool {
    event.packet.is_some() && event.kind != EventKind::Transfer
}

/// The time of encoding and decoding packets in a step.
fn coded_ms(packets: &[Event], start: f64, end: f64) -> f64 {
    let inside = |event: &&Event| is_coding(event) && start <= event.start_ms && event.start_ms < end;
    packets.iter().filter(inside).map(Event::ms).sum()
}
