//! Events and timings of the steps of a call.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A pass that transforms along some axes, and packs and unpacks messages.
    Transform,
    /// A pass that only copies values within the rank.
    Copy,
    /// Segments are encoded before an exchange.
    Encode,
    /// Segments are decoded after an exchange.
    Decode,
    /// An exchange is started.
    Post,
    /// The rank waits until an exchange is complete.
    Wait,
    /// The rank waits for the others of its node.
    Barrier,
    /// A packet is on its way to another rank: not work of this rank, but what others hide. Ends when the rank learns
    /// that it has arrived.
    Transfer,
}

/// One step of a transform on one rank, or what happens to a packet of an exchange while a step runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The step's name, as in [`StepTime`].
    pub name: String,
    /// The reshape it belongs to; of a pass, the one whose tile it loads or stores.
    pub reshape: Option<usize>,
    /// The tile of that reshape.
    pub tile: Option<usize>,
    /// Does a pass store to messages or load from them, so that it could run while others are in flight?
    pub wired: bool,
    /// When it began, in milliseconds since the call began.
    pub start_ms: f64,
    /// When it ended.
    pub end_ms: f64,
    /// Of that time, what was spent in polling exchanges in flight, without encoding and decoding their packets.
    pub test_ms: f64,
    /// Of that time, what was spent in encoding and decoding packets, which are events of their own.
    #[serde(default)]
    pub coded_ms: f64,
    /// The packet that is encoded, sent or decoded, of those that this rank sends or receives in the tile; `None` for
    /// steps.
    #[serde(default)]
    pub packet: Option<usize>,
    /// Bytes loaded and stored by a pass, or received from other ranks in the
    /// tile that is started or waited for.
    pub bytes: u64,
}

impl Event {
    /// How long it took.
    pub fn ms(&self) -> f64 {
        self.end_ms - self.start_ms
    }

    /// The time of its own: without polling, and without packets that are events of their own. Those of all events sum
    /// up to the time of the rank, but those of transfers.
    pub fn own_ms(&self) -> f64 {
        self.ms() - self.test_ms - self.coded_ms
    }
}

/// How long a step of the last transform took on this rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTime {
    /// The step's name.
    pub name: String,
    /// Milliseconds.
    pub ms: f64,
    /// Bytes loaded and stored in a pass, or received from other ranks in an exchange.
    pub bytes: u64,
    /// Floating-point operations, by the usual count of 5 n log2 n a line.
    pub flops: f64,
}

/// When a step ran.
#[derive(Clone, Copy)]
pub(crate) struct StepTiming {
    pub start: Instant,
    pub end: Instant,
    /// Of that, spent in polling exchanges in flight.
    pub tests: Duration,
}

/// The time spent in polling; the thread that calls MPI adds to it.
#[derive(Default)]
pub(crate) struct PollTime(AtomicU64);

impl PollTime {
    /// Runs a poll and adds its time.
    pub fn time(&self, poll: impl FnOnce()) {
        let start = Instant::now();
        poll();
        self.0.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
    }

    /// The sum so far; resets it.
    pub fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Relaxed))
    }
}
