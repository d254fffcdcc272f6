//! The result of a simulation.

use serde::Serialize;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimEventKind {
    /// A pass that transforms.
    Transform,
    /// A pass that copies.
    Copy,
    /// Messages are encoded.
    Encode,
    /// Messages are decoded.
    Decode,
    /// A tile is started.
    Post,
    /// A rank waits for a tile.
    Wait,
    /// A rank waits for the others.
    Barrier,
}

/// One step of a rank.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SimEvent {
    /// The kind.
    pub kind: SimEventKind,
    /// The name of the step.
    pub name: String,
    /// The reshape and the tile that it belongs to.
    pub tile: Option<(usize, usize)>,
    /// When it begins and ends, in seconds.
    pub seconds: [f64; 2],
    /// Bytes that a pass loads and stores, or that the rank receives in the tile.
    pub bytes: f64,
}

/// A step of all ranks, all its tiles together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimStep {
    /// Its name.
    pub name: String,
    /// Milliseconds of a rank, on average.
    pub ms: f64,
    /// Milliseconds of the rank that it takes longest on.
    pub most_ms: f64,
}

/// The result of a simulation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Simulated {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Milliseconds until the last rank is done.
    pub total_ms: f64,
    /// Milliseconds until the first rank is done.
    pub first_ms: f64,
    /// Operations per second, by 5 N log2 N.
    pub gflops: f64,
    /// Flows between nodes, and how often their rates were computed.
    pub flows: u64,
    /// Computations of all rates.
    pub updates: u64,
    /// The steps.
    pub steps: Vec<SimStep>,
    /// What the recorded ranks did.
    #[serde(skip)]
    pub events: Vec<Vec<SimEvent>>,
}
