//! The kinds of calls of a plan, and what a rank does in each: passes and exchanges, in order.

use std::sync::Arc;

use super::certificate::Gains;
use crate::exchange::{Coder, Exchange};
use ferrier_codec::Loss;
use ferrier_plan::geometry::Geometry;
use ferrier_plan::lowering::WorkspaceLayout;
use ferrier_plan::order::PassPart;
use ferrier_plan::schedule::Direction;

/// One kind of call. Each has its own schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKind {
    pub direction: Direction,
    pub in_place: bool,
    pub operated: bool,
}

/// Indices into [`CALL_KINDS`] and the variants of a plan.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACKWARD: usize = 1;
pub(crate) const IN_PLACE: usize = 2;
pub(crate) const ROUND_TRIP: usize = 4;
pub(crate) const OPERATED: usize = 6;

/// All kinds of calls, in the order of a plan's variants. Plans without operators have the first four.
pub(crate) const CALL_KINDS: [CallKind; 8] = {
    const fn kind(direction: Direction, in_place: bool, operated: bool) -> CallKind {
        CallKind { direction, in_place, operated }
    }
    use Direction::{Backward, Forward, RoundTrip};
    [
        kind(Forward, false, false),
        kind(Backward, false, false),
        kind(Forward, true, false),
        kind(Backward, true, false),
        kind(RoundTrip, false, true),
        kind(RoundTrip, true, true),
        kind(Forward, false, true),
        kind(Backward, false, true),
    ]
};

/// Directions, and the first call kind of each. Calls in one direction have their exchanges in common.
pub(crate) const DIRECTIONS: [(Direction, usize); 3] =
    [(Direction::Forward, FORWARD), (Direction::Backward, BACKWARD), (Direction::RoundTrip, ROUND_TRIP)];

/// The exchanges of one direction, one for every tile of every reshape.
pub(crate) type Exchanges = Arc<Vec<Exchange>>;

/// A tile of a reshape, and the exchange that carries it.
#[derive(Clone, Copy, Debug)]
pub struct TileRef {
    pub exchange: usize,
    pub reshape: usize,
    pub tile: usize,
}

/// What a rank does, in order: an [`Action`](ferrier_plan::order::Action) bound to its memory.
#[derive(Clone, Copy, Debug)]
pub enum BoundStep {
    Barrier,
    /// A part of a pass.
    Run {
        /// Its place in [`Variant::passes`].
        bound: usize,
        pass: usize,
        part: PassPart,
        /// The reshapes that it loads from and stores to, where its ends are messages.
        reshapes: [Option<usize>; 2],
        /// How often it makes progress on exchanges in flight.
        polls: usize,
    },
    /// Encodes what an exchange will send.
    Encode(TileRef),
    /// Decodes what an exchange has received.
    Decode(TileRef),
    /// Starts an exchange. A reshape in one tile is only marked here and runs in the wait: blocking calls are the
    /// fastest then.
    Start {
        tile: TileRef,
        buffers: [usize; 2],
        blocking: bool,
    },
    /// Waits for an exchange. `buffers`: where its send and receive buffers begin in the workspace, in scalars.
    Wait {
        tile: TileRef,
        buffers: [usize; 2],
        blocking: bool,
    },
}

/// A part of a pass, bound to the memory of one rank.
pub struct BoundPass<W> {
    pub name: String,
    /// Bytes loaded and stored.
    pub bytes: u64,
    /// Floating-point operations by the usual count, 5 n log2 n a line.
    pub flops: f64,
    pub is_copy: bool,
    pub work: W,
}

/// Encodes and decodes the segments of one exchange.
pub trait Coding {
    /// What the exchange asks for lengths, or has encode chunk by chunk.
    fn coder(&self) -> Arc<dyn Coder>;
    /// Bytes that this rank sent in the last call.
    fn bytes_sent(&self) -> u64;
    /// What was lost of them.
    fn loss(&self) -> Loss;
}

/// One kind of call, bound to one rank. `W`: the work of a pass, `C`: what encodes.
pub struct Variant<W, C> {
    pub(crate) passes: Vec<BoundPass<W>>,
    pub(crate) steps: Vec<BoundStep>,
    /// The pass of the schedule that applies the scale of a call; `None` where nothing is to be done.
    pub(crate) last_pass: Option<usize>,
    pub(crate) layout: WorkspaceLayout,
    pub(crate) exchanges: Exchanges,
    /// Name of each reshape, and the bytes that this rank receives in it.
    pub(crate) reshapes: Vec<(String, u64)>,
    /// The bytes that this rank receives, by exchange.
    pub(crate) received: Vec<u64>,
    /// What encodes and decodes, by exchange; empty where nothing is encoded.
    pub(crate) codings: Vec<Option<C>>,
    pub(crate) reshape_of: Vec<usize>,
    /// How often encoding or decoding a tile makes progress on exchanges in flight.
    pub(crate) coding_polls: usize,
    /// By how much errors of each reshape grow until the end.
    pub(crate) gains: Gains,
    /// The bytes that this rank sends without encoding them.
    pub(crate) plain_bytes: u64,
    pub(crate) input: Geometry,
    pub(crate) output: Geometry,
    /// Do input and output have strides of the user's?
    pub(crate) strided: [bool; 2],
    /// Are input and output real?
    pub(crate) real: [bool; 2],
}

impl<W, C: Coding> Variant<W, C> {
    /// What encodes the segments of an exchange.
    pub(crate) fn coder(&self, exchange: usize) -> Option<Arc<dyn Coder>> {
        Some(self.codings.get(exchange)?.as_ref()?.coder())
    }
}
