//! What copies boxes in the memory of a backend.

use super::bound_route::BoundRoute;
use super::node_link::NodeLink;
use super::sweep::{Planes, Task};
use crate::exchange::ExchangeEntry;
use crate::{Backend, Comm, Element, Result};

/// A backend whose arrays can be redistributed and have ghost cells: [`Cpu`](crate::Cpu), `cuda::Cuda`.
pub trait CopyBackend: Backend {
    /// What copies the boxes.
    #[doc(hidden)]
    type Copier<E: Element>: Copier;
}

/// Copies that are to be run together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum SweepKind {
    /// From the sources to the segments of outgoing routes.
    Pack,
    /// From the arrays or segments of incoming routes to the targets.
    Store,
    /// The same; tasks may have the same target, whose planes these are, and are done in their order.
    Ordered(Planes),
}

/// The routes of a plan.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RouteCounts {
    /// Arrays that are copied together.
    pub fields: usize,
    /// Routes from this rank, and to it.
    pub outgoing: usize,
    pub incoming: usize,
}

/// Where the fields of the incoming routes lie in a run.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// By route and field.
    pub from: &'a [usize],
    /// Whether they are segments, by route.
    pub packed: &'a [bool],
    /// By field.
    pub targets: &'a [usize],
}

/// Part of a send and a receive buffer: where it begins, and its bytes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct MessageSpan {
    pub at: [usize; 2],
    pub len: [usize; 2],
}

/// Points of a run that other ranks of the node wait for.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What this rank published may be loaded.
    Posted,
    /// This rank has loaded.
    Loaded,
}

/// Copies boxes of elements of one type in the memory of a backend.
#[doc(hidden)]
pub trait Copier: Send + Sized {
    /// Memory of a plan.
    type Buffer: Send;
    /// Copies that are run together.
    type Sweep: Send;
    /// The most groups of messages that are packed and sent one after the other. (More would help less than they cost.)
    const GROUPS: usize;
    /// Whether long messages go in pieces that are sent without an answer of their receiver. (From a GPU long ones are faster.)
    const IN_PIECES: bool;

    /// Bytes of an element.
    fn element_bytes(&self) -> usize;
    /// Bytes that addresses of arrays must be multiples of.
    fn alignment(&self) -> usize;
    /// Whether ranks of a node can load from each other. An error, the same on every rank, where this exchange, which the
    /// user named, cannot be used.
    fn can_share(&self, comm: &Comm, named: Option<&ExchangeEntry>) -> Result<bool>;
    /// Memory of a plan; `shared`: other ranks of the node access it, then collective. Other ranks are told of an error that
    /// only this one has.
    fn buffer(&self, comm: &Comm, bytes: usize, shared: bool, what: &'static str) -> Result<Self::Buffer>;
    /// The address of a buffer, and its bytes.
    fn span(buffer: &Self::Buffer) -> [usize; 2];
    /// Binds copies; what they load and store is given by [`pack`](Self::pack) and [`store`](Self::store).
    fn bind_sweep(&mut self, tasks: &[Task], kind: SweepKind, counts: RouteCounts) -> Self::Sweep;
    /// Ends binding; `shares`: ranks of a node load from each other; `messages`: bytes of the send and the receive buffer.
    /// Collective.
    fn complete(
        &mut self,
        comm: &Comm,
        counts: RouteCounts,
        shares: bool,
        exchange: &str,
        messages: [usize; 2],
    ) -> Result<()>;
    /// Substitutions that it makes.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// Bytes that it takes itself.
    fn memory(&self) -> usize {
        0
    }

    /// Copies from the sources to the segments of outgoing routes, or enqueues that.
    ///
    /// # Safety
    /// The sources are as large as the pattern says and are not written to, the segments are not accessed, until it has run.
    unsafe fn pack(&mut self, sweep: &Self::Sweep, sources: &[usize], outgoing: &[BoundRoute]) -> Result<()>;
    /// Copies (or adds) what arrived to the targets, or enqueues that.
    ///
    /// # Safety
    /// The arrays and segments are as large as the pattern says. Until it has run sources are not written to, targets not
    /// accessed.
    unsafe fn store(&mut self, sweep: &Self::Sweep, incoming: Incoming<'_>) -> Result<()>;
    /// Makes a part of the send buffer ready to be sent. Where the transport sends from and receives to. Calls `poll` while
    /// it waits.
    ///
    /// # Safety
    /// The buffers are those of the plan; no exchange of this part is in flight.
    unsafe fn begin_messages(
        &mut self,
        buffers: &[Self::Buffer; 2],
        span: MessageSpan,
        poll: &mut dyn FnMut(),
    ) -> Result<[*mut u8; 2]>;
    /// Takes over a part of the receive buffer; its exchange is complete.
    ///
    /// # Safety
    /// As [`begin_messages`](Self::begin_messages).
    unsafe fn end_messages(&mut self, _buffers: &[Self::Buffer; 2], _span: MessageSpan) -> Result<()> {
        Ok(())
    }
    /// Records how far this rank has come.
    fn mark(&mut self, _mark: Mark) -> Result<()> {
        Ok(())
    }
    /// What follows starts when these ranks, which have marked, have come to their mark.
    fn wait_for(&mut self, _ranks: &[usize], _mark: Mark) -> Result<()> {
        Ok(())
    }
    /// Ends a part of a run: its threads may sleep.
    fn park(&mut self) {}
    /// Returns when nothing that any rank has enqueued accesses memory any more, whatever came of it.
    fn abandon(&mut self) {}
}

/// Waits for the ranks that load from this one: on the host, then in the memory of the backend.
pub(super) fn wait_for_readers<C: Copier>(copier: &mut C, node: &NodeLink) -> Result<()> {
    node.wait_for_readers()?;
    copier.wait_for(node.readers(), Mark::Loaded)
}
