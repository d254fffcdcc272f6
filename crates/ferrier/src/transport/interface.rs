//! What a transport offers: a group of ranks, and how bytes move between them.

use std::collections::HashMap;
use std::sync::Arc;

use super::transfer::{NodeCounters, Segment, Transfer, TransferKind, WakeHint};
use super::window::Window;
use crate::machine::buffer::{Buffer, SharedMemory};
use crate::{Real, Result};

/// Pointers that a rank exposes to its group for the length of a call.
pub(crate) type Exposed = [usize; EXPOSED];

/// How many pointers a rank can expose at once: input, output, workspace.
pub(crate) const EXPOSED: usize = 3;

/// One rank's handle on a group of ranks. All methods that communicate are collective over the group unless they
/// say otherwise, and return an error on every rank where one rank fails, panics or leaves.
pub(crate) trait Transport: Send + Sync {
    /// `threads` or `mpi`.
    fn name(&self) -> &'static str;
    /// The name, with the version of the communication library.
    fn version(&self) -> String {
        self.name().into()
    }
    /// This rank.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn size(&self) -> usize;
    /// Returns when every rank has called it.
    fn barrier(&self) -> Result<()>;
    /// Every rank's bytes, in order of rank. Allocates.
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Groups of the ranks that gave the same colour, in order of rank. Allocates.
    fn split(&self, color: usize) -> Result<Arc<dyn Transport>>;
    /// As [`split`](Transport::split), where every rank knows the colours of all.
    fn split_by(&self, colors: &[usize]) -> Result<Arc<dyn Transport>> {
        self.split(colors[self.rank()])
    }
    /// The same ranks as a separate group, whose messages never match those of this one. Collective; allocates.
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        self.split(0)
    }
    /// Another rank of a group that only plans; `None` for groups whose ranks run. Not collective.
    fn other_rank(&self, _rank: usize) -> Option<Arc<dyn Transport>> {
        None
    }
    /// The node of each rank; nodes are numbered in order of their first ranks.
    fn nodes(&self) -> &[usize];
    /// The socket of each rank on its node, where ranks are bound to one; empty: unknown.
    fn sockets(&self) -> &[usize] {
        &[]
    }
    /// Returns when every rank of this node has called it. Needs
    /// [`enable_sharing`](Transport::enable_sharing).
    fn node_barrier(&self) -> Result<()>;
    /// Prepares a transfer of at most one segment to and from each rank. Collective; allocates, so that starts
    /// need not.
    fn transfer(
        &self,
        kind: TransferKind,
        sent: &[Segment],
        received: &[Segment],
    ) -> Result<Box<dyn Transfer>>;
    /// The same, but segments stay in their senders' buffers and are loaded there on completion; send buffers
    /// must be [exposed](Transport::expose). `None`, on every rank, where the transport cannot do that.
    /// Collective; allocates.
    fn transfer_in_place(
        &self,
        _sent: &[Segment],
        _received: &[Segment],
    ) -> Result<Option<Box<dyn Transfer>>> {
        Ok(None)
    }
    /// May another thread of this process test transfers?
    ///
    /// # Errors
    /// Why not.
    fn allows_progress_thread(&self) -> Result<()> {
        Ok(())
    }
    /// May the segments of a transfer by [`TransferKind::Messages`] lie in the memory of a GPU? Others must be
    /// staged in main memory. The same answer on every rank. Collective.
    #[cfg(feature = "cuda")]
    fn reaches_gpus(&self) -> Result<bool> {
        Ok(false)
    }
    /// Counters for the ranks of a node, zero at first. Collective; allocates.
    fn node_counters(&self, counters: usize) -> Result<Box<dyn NodeCounters>>;
    /// Blocks this thread until `wake_hint` says that a test is worthwhile, or less long. Not collective.
    fn park(&self, wake_hint: &mut dyn FnMut() -> WakeHint);
    /// Wakes threads of this rank from [`park`](Transport::park). Not collective.
    fn wake(&self) {}
    /// Prepares for [`expose`](Transport::expose). Called once, when a plan is made. An error, on every rank,
    /// where the ranks of a node cannot share memory.
    fn enable_sharing(&self) -> Result<()> {
        Ok(())
    }
    /// Cores of this node that its ranks may use together: launchers often bind each rank to its own.
    fn node_cores(&self) -> usize {
        crate::machine::cores()
    }

    /// Bytes per second and seconds of a message between nodes, if their network is simulated.
    fn simulated_wire(&self) -> Option<(f64, f64)> {
        None
    }
    /// Can all memory be exposed, or only [`shared_memory`](Transport::shared_memory)?
    fn exposes_all_memory(&self) -> bool {
        true
    }
    /// Memory of `bytes` bytes, zero at first, that can be exposed; `None` where all memory can. An error on
    /// every rank where one cannot get it.
    fn shared_memory(&self, _bytes: usize, _what: &'static str) -> Result<Option<SharedMemory>> {
        Ok(None)
    }
    /// Exposes pointers (0: none) to the ranks of this node and returns theirs in `all`; those of other nodes are
    /// 0. The memory stays valid until [`unexpose`](Transport::unexpose) returns. False, on every rank of the
    /// node, where an input or output lies in memory that others cannot access; an error where the workspace
    /// does.
    fn expose(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool>;
    /// What another rank of this node needs to find `bytes` bytes at an address by
    /// [`peer_address`](Transport::peer_address); `None` where it cannot access them. Not collective.
    fn locate(&self, address: usize, _bytes: usize) -> Option<[u64; 2]> {
        Some([0, address as u64])
    }
    /// The address here of memory that `rank`, of this node, has [located](Transport::locate). It may be accessed
    /// inside [`with_access`](Transport::with_access) as long as that rank keeps it. Not collective.
    fn peer_address(&self, _rank: usize, location: [u64; 2]) -> Result<usize> {
        Ok(location[1] as usize)
    }
    /// Runs `work`, which may access memory that others expose; not collective. `work` does not run once the
    /// group has failed; where it panics, the group fails.
    fn with_access(&self, work: &mut dyn FnMut()) -> Result<()>;
    /// Ends an [`expose`](Transport::expose): returns when no rank can access this rank's memory. That holds after
    /// an error, too: call it on every path.
    fn unexpose(&self) -> Result<()>;
    /// Can the ranks create a [`window`](Transport::window)?
    fn has_windows(&self) -> Result<bool> {
        Ok(true)
    }
    /// A window of `bytes` bytes on this rank, and `words` words and `slots` slots on every rank.
    fn window(&self, bytes: usize, words: usize, slots: usize) -> Result<Box<dyn Window>>;
    /// Makes every other rank's calls return an error. Not collective.
    fn fail(&self, message: &str);
}

/// A block of `len` zeros that can be exposed to the ranks of this node. Collective.
pub(crate) fn shared_buffer<T: Real>(
    transport: &dyn Transport,
    len: usize,
    what: &'static str,
) -> Result<Buffer<T>> {
    Buffer::shared(len, what, |bytes| transport.shared_memory(bytes, what))
}

/// Numbers nodes in order of their first ranks; `names` identifies the node of each rank.
pub(crate) fn number_nodes(names: &[u64]) -> Vec<usize> {
    let mut known: HashMap<u64, usize> = HashMap::new();
    let mut number = |name: &u64| {
        let next = known.len();
        *known.entry(*name).or_insert(next)
    };
    names.iter().map(&mut number).collect()
}
