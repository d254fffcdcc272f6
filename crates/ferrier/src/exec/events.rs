//! What a rank did during the last transform, and when.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Plan;
use super::cpu::bind::Step;
use crate::Real;

/// What a rank was busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A pass that transforms along one axis or two; it packs and unpacks too.
    Transform,
    /// A pass that only moves values within the rank.
    Copy,
    /// What an exchange will carry is encoded.
    Encode,
    /// What an exchange brought is decoded.
    Decode,
    /// An exchange is handed over, to fly from now on.
    Post,
    /// The rank waits until an exchange has landed.
    Wait,
    /// The rank waits for the others of its node.
    Barrier,
}

/// One step of a transform on one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What it was.
    pub kind: EventKind,
    /// In words, as in [`StepTime`](crate::StepTime).
    pub name: String,
    /// The reshape it belongs to; of a pass, the one by whose tiles it goes.
    pub reshape: Option<usize>,
    /// The tile of that reshape.
    pub tile: Option<usize>,
    /// Is it a pass that stores into messages or loads from them, which could
    /// overlap with their flight?
    pub wired: bool,
    /// When it began, in milliseconds since the call began.
    pub start_ms: f64,
    /// When it ended.
    pub end_ms: f64,
    /// Of that time, what went into looking after exchanges that fly.
    pub test_ms: f64,
    /// Bytes loaded and stored by a pass, or taken from other ranks in the
    /// tile that is posted or waited for.
    pub bytes: u64,
}

impl Event {
    /// How long it took.
    pub fn ms(&self) -> f64 {
        self.end_ms - self.start_ms
    }
}

/// When a step ran.
#[derive(Clone, Copy)]
pub(crate) struct StepTiming {
    pub start: Instant,
    pub end: Instant,
    /// Of that, in the tests of what flies.
    pub tests: Duration,
}

/// Sums up the time that tests take; the thread that talks adds to it.
#[derive(Default)]
pub(crate) struct Tests(AtomicU64);

impl Tests {
    /// Runs a test and adds its time.
    pub fn time(&self, test: impl FnOnce()) {
        let start = Instant::now();
        test();
        self.0.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
    }

    /// The sum, which begins anew.
    pub fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Relaxed))
    }
}

impl<T: Real> Plan<T> {
    /// What this rank did during the last transform, step by step, tile by
    /// tile. Allocates.
    pub fn events(&self) -> Vec<Event> {
        let variant = &self.variants[self.last];
        let since = |moment: Instant| moment.duration_since(self.began).as_secs_f64() * 1e3;
        let event = |(step, spell): (&Step, &StepTiming)| {
            let (kind, name, at, bytes) = match *step {
                Step::Barrier => (EventKind::Barrier, "wait", None, 0),
                Step::Run { bound, part, wires, .. } => {
                    let pass = &variant.passes[bound];
                    let kind = if pass.is_copy() { EventKind::Copy } else { EventKind::Transform };
                    let at = wires[0].zip(part.from).or(wires[1].zip(part.to));
                    (kind, &*pass.name, at, pass.bytes)
                }
                Step::Encode { mover, reshape, tile } => {
                    let name = &*variant.reshapes[reshape].0;
                    (EventKind::Encode, name, Some((reshape, tile)), variant.taken[mover])
                }
                Step::Decode { mover, reshape, tile } => {
                    let name = &*variant.reshapes[reshape].0;
                    (EventKind::Decode, name, Some((reshape, tile)), variant.taken[mover])
                }
                Step::Start { mover, reshape, tile, .. } => {
                    let name = &*variant.reshapes[reshape].0;
                    (EventKind::Post, name, Some((reshape, tile)), variant.taken[mover])
                }
                Step::Wait { mover, reshape, tile, .. } => {
                    let name = &*variant.reshapes[reshape].0;
                    (EventKind::Wait, name, Some((reshape, tile)), variant.taken[mover])
                }
            };
            Event {
                kind,
                name: name.into(),
                reshape: at.map(|(reshape, _)| reshape),
                tile: at.map(|(_, tile)| tile),
                wired: matches!(step, Step::Run { wires: [Some(_), _] | [_, Some(_)], .. }),
                start_ms: since(spell.start),
                end_ms: since(spell.end),
                test_ms: spell.tests.as_secs_f64() * 1e3,
                bytes,
            }
        };
        variant.steps.iter().zip(&self.spells).map(event).collect()
    }
}
