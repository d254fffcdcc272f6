//! How the ranks of a node load from each other: each publishes where its arrays or its segments lie, and two counters
//! of each rank tell when they may be loaded and when it has loaded. Ranks wait only for those they load from, and for
//! those that load from them.

use std::sync::Arc;

use crate::machine::buffer::Buffer;
use crate::transport::{EXPOSED, Exposed, NodeCounters, Transport, WakeHint, shared_buffer};
use crate::{Comm, Result};

/// What a rank loads of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// The arrays themselves.
    Arrays,
    /// Segments.
    Segments,
}

const POSTED: usize = 0;
const LOADED: usize = 1;

pub(super) struct NodeLink {
    transport: Arc<dyn Transport>,
    counters: Box<dyn NodeCounters>,
    /// A table of words: what is published, then a location for each field.
    table: Buffer<f64>,
    /// Send buffer, receive buffer and table of each rank of the node.
    pub addresses: Vec<Exposed>,
    /// The segments of each rank of the node.
    pub segments: Vec<usize>,
    /// The number of each rank among those of its node.
    numbers: Vec<usize>,
    /// The ranks of the node that load from this one, and those that this one loads from.
    readers: Vec<usize>,
    sources: Vec<usize>,
    round: u64,
}

/// Memory that the ranks of a node can access. Collective.
pub(super) fn shared_words(comm: &Comm, words: usize, what: &'static str) -> Result<Buffer<f64>> {
    let transport = comm.transport();
    // Where not all memory can be exposed, an error occurs on every rank.
    shared_buffer(&**transport, words, what).inspect_err(|error| {
        if transport.exposes_all_memory() {
            transport.fail(&error.to_string());
        }
    })
}

impl NodeLink {
    /// `buffers`: send buffer, receive buffer and segments of this rank; 0 for those it does not have. Collective.
    pub fn new(
        comm: &Comm,
        fields: usize,
        buffers: [usize; 3],
        (readers, sources): (Vec<usize>, Vec<usize>),
    ) -> Result<NodeLink> {
        let transport = comm.transport().clone();
        let table = shared_words(comm, 1 + 2 * fields, "the table of a plan")?;
        let nodes = comm.nodes();
        let number = |rank: usize| nodes[..rank].iter().filter(|&&node| node == nodes[rank]).count();
        let mut sizes = vec![0; comm.node_count()];
        let numbers: Vec<usize> = match comm.node_count() {
            1 => (0..comm.size()).collect(),
            _ => (0..comm.size())
                .map(|rank| if nodes[rank] == nodes[comm.rank()] { number(rank) } else { 0 })
                .collect(),
        };
        nodes.iter().for_each(|&node| sizes[node] += 1);
        let counters = transport.node_counters(2 * sizes.into_iter().max().unwrap_or(1))?;
        let [send, recv, segments] = buffers;
        // The addresses stay valid until a rank drops its plan, which waits until the others have loaded.
        let exposed = |own: Exposed| -> Result<Vec<Exposed>> {
            let mut all = vec![[0; EXPOSED]; comm.size()];
            transport.expose(own, &mut all)?;
            transport.unexpose()?;
            Ok(all)
        };
        let addresses = exposed([send, recv, table.as_ptr() as usize])?;
        let segments = exposed([segments, 0, 0])?.into_iter().map(|[segments, ..]| segments).collect();
        Ok(NodeLink { transport, counters, table, addresses, segments, numbers, readers, sources, round: 0 })
    }

    /// Bytes of its memory on this rank.
    pub fn memory(&self) -> usize {
        (self.table.len() * 8).next_multiple_of(64)
    }

    /// The ranks of the node that load from this one.
    pub fn readers(&self) -> &[usize] {
        &self.readers
    }

    /// The ranks of the node that this one loads from.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Whether the readers of this rank can load `bytes` bytes from each of these arrays.
    pub fn reaches(&self, arrays: &[usize], bytes: usize) -> bool {
        bytes == 0 || arrays.iter().all(|&array| self.transport.locate(array, bytes).is_some())
    }

    /// Begins a round: what this rank published may be loaded. `arrays`: of `bytes` bytes each, if they are published.
    ///
    /// # Safety
    /// All readers have [loaded](Self::wait_for_readers) what was published before.
    pub unsafe fn publish(&mut self, arrays: Option<&[usize]>, bytes: usize) {
        let table = self.table.as_ptr().cast::<u64>();
        // SAFETY: the table is this rank's; readers have loaded and load again only after the counter below.
        unsafe {
            table.write(u64::from(arrays.is_some()));
            for (field, &array) in arrays.unwrap_or(&[]).iter().enumerate() {
                let location = if bytes == 0 { None } else { self.transport.locate(array, bytes) };
                table.add(1 + 2 * field).cast::<[u64; 2]>().write_unaligned(location.unwrap_or([0, 0]));
            }
        }
        self.round += 1;
        self.counters.add(self.counter(self.transport.rank(), POSTED));
    }

    /// What a rank has published in this round; its arrays are put into `addresses`. Inside `with_access`, after
    /// [`wait_for_sources`](Self::wait_for_sources).
    pub fn published(&self, rank: usize, addresses: &mut [usize]) -> Result<Published> {
        let table = self.addresses[rank][EXPOSED - 1] as *const u64;
        // SAFETY: the table of a rank that has begun this round and waits for this one before it changes it.
        if unsafe { table.read() } == 0 {
            return Ok(Published::Segments);
        }
        for (field, address) in addresses.iter_mut().enumerate() {
            // SAFETY: as above; a table has an entry for each field.
            let location = unsafe { table.add(1 + 2 * field).cast::<[u64; 2]>().read_unaligned() };
            *address = self.transport.peer_address(rank, location)?;
        }
        Ok(Published::Arrays)
    }

    /// Ends a round: this rank loads nothing more.
    pub fn end_loads(&self) {
        self.counters.add(self.counter(self.transport.rank(), LOADED));
    }

    /// Returns when the ranks that this one loads from have begun this round. Calls `poll` while it waits.
    pub fn wait_for_sources(&self, poll: &mut dyn FnMut()) -> Result<()> {
        self.sources.iter().try_for_each(|&rank| self.wait_for(rank, POSTED, poll))
    }

    /// Returns when the ranks that load from this one have loaded.
    pub fn wait_for_readers(&self) -> Result<()> {
        self.readers.iter().try_for_each(|&rank| self.wait_for(rank, LOADED, &mut || ()))
    }

    fn counter(&self, rank: usize, which: usize) -> usize {
        2 * self.numbers[rank] + which
    }

    fn wait_for(&self, rank: usize, which: usize, poll: &mut dyn FnMut()) -> Result<()> {
        let reached = || self.counters.reached(self.counter(rank, which), self.round, Some(rank));
        while !reached()? {
            poll();
            self.transport.park(&mut || match reached() {
                Ok(false) => WakeHint::Nothing,
                _ => WakeHint::Now,
            });
        }
        Ok(())
    }
}

impl Drop for NodeLink {
    fn drop(&mut self) {
        // Shared regions stay mapped while another process uses them.
        if !self.transport.exposes_all_memory() {
            return;
        }
        if std::thread::panicking() {
            self.transport.fail("panicked");
        }
        if let Err(error) = self.wait_for_readers() {
            self.transport.fail(&error.to_string());
            // Returns when no rank accesses this memory any more.
            let _ = self.transport.unexpose();
        }
    }
}
