//! What a backend does for the driver: it binds passes, runs them, encodes, copies, synchronises.

use std::fmt::Debug;
use std::ops::Range;

use super::field_table::FieldTable;
use super::memory::Memory;
use super::operator::Operator;
use super::variant::{Coding, Variant};
use crate::transport::Exposed;
use crate::{Box3, Comm, Real, Result};
use ferrier_codec::Norm;
use ferrier_plan::geometry::{Geometry, Piece};
use ferrier_plan::lowering::{RankContext, ReshapeTile, WorkspaceLayout};
use ferrier_plan::messages::Encoding;
use ferrier_plan::schedule::{Pass, Schedule};

/// Where arrays lie and passes run: [`Cpu`](crate::Cpu), or `cuda::Cuda`. Users cannot add others.
pub trait Backend: Debug + Clone + Send + Sync + Sized + 'static {
    /// The device of a rank.
    #[doc(hidden)]
    type Handle: Clone + Debug + Send + Sync;
    /// What arrays of the user's are accessed with.
    #[doc(hidden)]
    type Access;
    /// What runs the plans of one precision.
    #[doc(hidden)]
    type Executor<T: Real>: Executor<T, Backend = Self>;
}

/// The shape of one rank's part of an array.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ArrayShape {
    /// Where its real elements lie, if it can have some.
    pub real: Option<Geometry>,
    /// Where its complex elements lie, if it can have some.
    pub complex: Option<Geometry>,
    /// How many scalars it has, and arrays in the batch.
    pub scalars: usize,
    pub batch: usize,
}

/// A pass that is to be bound to memory.
#[doc(hidden)]
pub struct PassEnds<'a> {
    pub context: &'a RankContext<'a>,
    pub pass: &'a Pass,
    /// What the rank has before and after it.
    pub arrive: Box3,
    pub leave: Box3,
    /// Arrays of the batch.
    pub arrays: Range<usize>,
    pub from: Vec<Piece>,
    pub to: Vec<Piece>,
    /// Lines side by side, and planes, in a block, if the user gave them.
    pub sub_tile: Option<[usize; 2]>,
}

/// A tile whose segments are to be encoded and decoded.
#[doc(hidden)]
pub struct TileToCode<'a> {
    pub context: &'a RankContext<'a>,
    pub layout: &'a WorkspaceLayout,
    pub tile: ReshapeTile<'a>,
    pub encoding: &'a Encoding,
    /// Bytes to each rank of segments that are not encoded.
    pub plain: Vec<usize>,
}

/// How a backend makes progress on exchanges in flight while it works.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct PollPolicy<'a> {
    /// Tests them all.
    pub poll: &'a (dyn Fn() + Sync),
    /// How often a pass does so.
    pub times: usize,
    /// Is anything in flight?
    pub in_flight: bool,
}

/// The buffers of one exchange in the workspace.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct MessageBuffers {
    /// Where they begin, in bytes of the workspace: send, receive.
    pub at: [usize; 2],
    /// How many bytes they have.
    pub len: [usize; 2],
}

/// The variants of a plan on this backend.
#[doc(hidden)]
pub type VariantOf<T, E> = Variant<<E as Executor<T>>::Work, <E as Executor<T>>::Coding>;

/// Binds and runs the passes of plans of one precision.
#[doc(hidden)]
pub trait Executor<T: Real>: Send + Sized {
    /// The backend it belongs to.
    type Backend: Backend<Executor<T> = Self>;
    /// What binding collects: tables of kernels, sizes of scratch.
    type Binder: Send;
    /// The work of a bound pass.
    type Work: Send;
    /// Encodes and decodes the segments of an exchange.
    type Coding: Coding + Send;
    /// Memory of a plan.
    type Buffer: Send;
    /// Arrays that plans make.
    type Array;

    /// Must messages be copied to receive buffers, because ranks cannot load from each other's send buffers?
    const NEEDS_RECEIVE_BUFFERS: bool;
    /// Has a pass run when [`run`](Self::run) returns? Then the driver times the steps; elsewhere `tick` does.
    const SYNCHRONOUS: bool;
    /// Can a rank do parts of the passes of others?
    const HELPS: bool = false;

    // Binding.

    /// How segments are encoded, if they are.
    fn encoding(binder: &Self::Binder) -> Option<&Encoding>;
    /// Binds a pass.
    fn bind_pass(binder: &mut Self::Binder, ends: &PassEnds<'_>) -> Result<Self::Work>;
    /// Binds a whole schedule as one pass, where that is possible and faster.
    fn bind_whole(
        _binder: &mut Self::Binder,
        _schedule: &Schedule,
        _context: &RankContext<'_>,
        _ends: [&Geometry; 2],
    ) -> Result<Option<Self::Work>> {
        Ok(None)
    }
    /// Ranks that share memory help each other with a pass: a rank that is done with its own does parts of `peers`, the
    /// same pass of other ranks. `counter`, and that of each peer: counts the parts of a rank that are claimed.
    fn share_pass(_work: &mut Self::Work, _counter: usize, _peers: Vec<(usize, Self::Work)>) {}
    /// Binds what encodes and decodes the segments of a tile.
    fn bind_coding(binder: &mut Self::Binder, tile: TileToCode<'_>) -> Self::Coding;
    /// What a plan of these variants takes.
    fn memory(binder: &mut Self::Binder, comm: &Comm, variants: &[VariantOf<T, Self>]) -> Memory;
    /// Substitutions that this backend makes for a plan of this memory.
    fn notes(binder: &Self::Binder, memory: &Memory) -> Vec<String>;

    // Building.

    /// Is there memory for the plans of all ranks? The same answer on every rank. Collective.
    fn check_room(_binder: &Self::Binder, _comm: &Comm, _memory: &Memory) -> Result<()> {
        Ok(())
    }
    /// Allocates the workspace; `exposed`: other ranks access it. Collective.
    fn allocate(binder: &Self::Binder, comm: &Comm, memory: &Memory, exposed: bool) -> Result<Self::Buffer>;
    /// Makes ready to run. Collective.
    fn build(
        binder: Self::Binder,
        comm: &Comm,
        variants: &mut [VariantOf<T, Self>],
        memory: &Memory,
        work: Option<Self::Buffer>,
        exposed: bool,
    ) -> Result<Self>;
    /// An array for users; `exposed`: other ranks access it, then collective.
    fn make_array(&self, comm: &Comm, shape: ArrayShape, exposed: bool) -> Result<Self::Array>;

    // Running. All of these may be called only between `begin` and the end of a call, on the calling thread.

    /// What arrays of the user's are accessed with.
    fn access(&self) -> <Self::Backend as Backend>::Access;
    /// Where the plan's own workspace begins; `None` where it has none.
    fn workspace(&self) -> Option<usize>;
    /// Bytes that addresses of arrays must be multiples of.
    fn alignment(&self) -> usize {
        1
    }
    /// The address of a list of arrays, marked as such, as passes take it in the place of an input (0) or output (1).
    fn list(&mut self, _end: usize, fields: &FieldTable) -> Result<usize> {
        Ok(fields.address())
    }
    /// The first thing of every call: enters the device, compiles what a call with this operator, or one with a
    /// scale, needs and does not have yet.
    fn prepare(
        &mut self,
        _variant: &mut VariantOf<T, Self>,
        _which: usize,
        _operator: Option<&dyn Operator<T>>,
        _scaled: bool,
    ) -> Result<()> {
        Ok(())
    }
    /// Before a call that may run one of these variants, when no rank runs another: no part of this rank's passes is
    /// claimed.
    fn reset_claims(&mut self, _variants: [&VariantOf<T, Self>; 2]) {}
    /// Takes the addresses of a call, by rank: input, output, workspace.
    fn begin(&mut self, which: usize, rank: usize, exposed: &[Exposed]) -> Result<()>;
    /// Runs a pass, or enqueues it. `scale`: what it stores is multiplied by this.
    ///
    /// # Safety
    /// The addresses of [`begin`](Self::begin) are those of live arrays as long as the variant says. Until the pass
    /// has run no other rank or thread writes to what it loads or accesses what it stores.
    unsafe fn run(
        &mut self,
        work: &Self::Work,
        poll: PollPolicy<'_>,
        operator: Option<&dyn Operator<T>>,
        scale: f64,
    ) -> Result<()>;
    /// Encodes the segments of an exchange that is about to start.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn encode(&mut self, coding: &Self::Coding, poll: PollPolicy<'_>) -> Result<()>;
    /// Decodes the segments of an exchange that is complete.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn decode(&mut self, coding: &Self::Coding, poll: PollPolicy<'_>) -> Result<()>;
    /// Makes the send buffer of an exchange ready to be read by the transport. Where that sends from and receives to.
    ///
    /// # Safety
    /// As [`run`](Self::run); the exchange is not in flight.
    unsafe fn begin_messages(
        &mut self,
        buffers: MessageBuffers,
        poll: PollPolicy<'_>,
    ) -> Result<[*mut u8; 2]>;
    /// Takes over the receive buffer of an exchange that is complete.
    ///
    /// # Safety
    /// As [`begin_messages`](Self::begin_messages).
    unsafe fn end_messages(&mut self, _buffers: MessageBuffers) -> Result<()> {
        Ok(())
    }
    /// The same for an exchange that sends packets as they are encoded: begins to encode.
    ///
    /// # Safety
    /// As [`begin_messages`](Self::begin_messages).
    unsafe fn begin_packets(
        &mut self,
        _coding: &Self::Coding,
        buffers: MessageBuffers,
        poll: PollPolicy<'_>,
    ) -> Result<[*mut u8; 2]> {
        // SAFETY: this function's contract.
        unsafe { self.begin_messages(buffers, poll) }
    }
    /// Takes over what packets were decoded to.
    ///
    /// # Safety
    /// As [`end_messages`](Self::end_messages).
    unsafe fn end_packets(&mut self, buffers: MessageBuffers) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.end_messages(buffers) }
    }
    /// Records how far this rank's work has come, for [`wait_for_peers`](Self::wait_for_peers) of the others.
    fn mark(&mut self) -> Result<()> {
        Ok(())
    }
    /// Work that follows starts when the other ranks' work has come to their last mark; all have marked.
    fn wait_for_peers(&mut self) -> Result<()> {
        Ok(())
    }
    /// Called before step 0 and after each step.
    fn tick(&mut self, _step: usize) -> Result<()> {
        Ok(())
    }
    /// Returns when nothing that was enqueued accesses memory any more, whatever came of it.
    fn abandon(&mut self) {}
    /// The norm of this rank's part of an array that the last call stored. Returns when that call is complete.
    ///
    /// # Safety
    /// The array at `address` is as its geometry says and not written to.
    unsafe fn norm(&self, geometry: &Geometry, batch: usize, address: usize) -> Result<Norm>;
    /// Lets the threads sleep until the next call.
    fn park(&self) {}
}
