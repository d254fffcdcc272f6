//! [`Transport`] of ranks that are MPI processes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use ferrier_mpi::{Algorithm, AllToAllV};

use super::control::{Control, ExitedRank};
use super::error::mpi_error;
use super::node_counters::Counters;
use super::node_shared::NodeShared;
use super::window::MpiWindow;
use crate::machine::buffer::SharedMemory;
use crate::machine::pool::panic_text;
use crate::transport::interface::{Exposed, Transport, number_nodes};
use crate::transport::transfer::{NodeCounters, Segment, Transfer, TransferKind, WakeHint};
use crate::transport::window::Window;
use crate::{Error, Result};

/// One rank of a communicator.
pub(crate) struct MpiRank {
    comm: ferrier_mpi::Comm,
    /// Shared with duplicates of the communicator; `None` for groups made by a split, which share no memory.
    node_shared: Option<Arc<NodeShared>>,
    nodes: Vec<usize>,
    control: OnceLock<Control>,
    /// Transfers made so far: each has a tag of its own.
    transfers: AtomicUsize,
}

/// Tags that every MPI supports.
const TAGS: usize = 32768;
/// Bytes that MPI sends at once, before it knows that the receiver expects them: Open MPI over TCP up to 64 KiB with its header.
const SHORT_MESSAGE: usize = 56 << 10;

/// Exit code of a job after [`Transport::fail`]; the command's exit code for errors.
const FAILED: i32 = 2;

impl MpiRank {
    /// Collective.
    pub fn new(comm: ferrier_mpi::Comm) -> Result<MpiRank> {
        let node_shared = NodeShared::new(&comm)?;
        Ok(MpiRank::with_node_shared(comm, node_shared))
    }

    fn with_node_shared(comm: ferrier_mpi::Comm, node_shared: Arc<NodeShared>) -> MpiRank {
        let nodes = node_shared.nodes.clone();
        let (control, transfers) = (OnceLock::new(), AtomicUsize::new(0));
        MpiRank { comm, node_shared: Some(node_shared), nodes, control, transfers }
    }

    /// This rank's share of its node's cores.
    pub fn cores(&self) -> usize {
        let share = self.node_shared.as_ref().map_or(1, |node| node.cores / node.ranks.len());
        share.clamp(1, crate::machine::cores())
    }

    fn node_shared(&self) -> Result<&Arc<NodeShared>> {
        let missing = || Error::transport("a group made by a split shares no memory");
        self.node_shared.as_ref().ok_or_else(missing)
    }

    fn control(&self) -> Result<&Control> {
        let missing = || Error::transport("sharing memory was not enabled for this group");
        self.control.get().ok_or_else(missing)
    }
}

impl Transport for MpiRank {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn node_cores(&self) -> usize {
        self.node_shared.as_ref().map_or_else(crate::machine::cores, |node| node.cores)
    }

    fn allows_progress_thread(&self) -> Result<()> {
        let mpi = self.comm.mpi();
        if mpi.level() >= ferrier_mpi::Level::Serialized {
            return Ok(());
        }
        let remedy = match mpi.is_initialised_here() {
            true => "set FERRIER_MPI_THREADS=serialized",
            false => "the program must initialise MPI with MPI_Init_thread and MPI_THREAD_SERIALIZED",
        };
        Err(Error::transport(format!("MPI may be called by one thread only ({remedy})")))
    }

    fn version(&self) -> String {
        let text = self.comm.mpi().library_version().unwrap_or_default();
        let first = text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default();
        format!("mpi ({})", first.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn barrier(&self) -> Result<()> {
        self.comm.barrier().map_err(mpi_error)
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.comm.all_gather_bytes(mine).map_err(mpi_error)
    }

    fn split(&self, color: usize) -> Result<Arc<dyn Transport>> {
        let comm = self.comm.split(Some(color), self.rank()).map_err(mpi_error)?;
        let comm = comm.ok_or_else(|| Error::transport("MPI_Comm_split left this rank out"))?;
        let mut names = vec![0; comm.size()];
        comm.all_gather(&[self.nodes[self.rank()] as u64], &mut names).map_err(mpi_error)?;
        let (nodes, control, transfers) = (number_nodes(&names), OnceLock::new(), AtomicUsize::new(0));
        Ok(Arc::new(MpiRank { comm, node_shared: None, nodes, control, transfers }))
    }

    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        let node_shared = self.node_shared()?;
        node_shared.free_deferred(&self.comm)?;
        let comm = self.comm.duplicate().map_err(mpi_error)?;
        Ok(Arc::new(MpiRank::with_node_shared(comm, node_shared.clone())))
    }

    fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    fn sockets(&self) -> &[usize] {
        self.node_shared.as_ref().map_or(&[], |shared| &shared.sockets)
    }

    fn node_barrier(&self) -> Result<()> {
        self.control()?.barrier().map_err(|ExitedRank(rank)| {
            let message = format!("the process of rank {rank} has ended");
            self.fail(&message);
            Error::transport(message)
        })
    }

    fn transfer(
        &self,
        kind: TransferKind,
        sent: &[Segment],
        received: &[Segment],
    ) -> Result<Box<dyn Transfer>> {
        let list = |segments: &[Segment]| -> Vec<ferrier_mpi::Segment> {
            let convert = |&Segment { peer, offset, len }| ferrier_mpi::Segment { peer, offset, len };
            segments.iter().map(convert).collect()
        };
        let (to, from) = (list(sent), list(received));
        let number = self.transfers.fetch_add(1, Ordering::Relaxed);
        let exchange = match kind {
            TransferKind::AllToAll => AllToAllV::new(&self.comm, &to, &from, Algorithm::Equal),
            TransferKind::AllToAllV => AllToAllV::new(&self.comm, &to, &from, Algorithm::Collective),
            TransferKind::Messages => AllToAllV::local(&self.comm, &to, &from, (number % TAGS) as i32),
            TransferKind::ShortMessages => {
                let whole = AllToAllV::local(&self.comm, &to, &from, (number % TAGS) as i32);
                whole.map(|whole| whole.cut(SHORT_MESSAGE))
            }
        };
        Ok(Box::new(Mutex::new(exchange.map_err(mpi_error)?)))
    }

    #[cfg(feature = "cuda")]
    fn reaches_gpus(&self) -> Result<bool> {
        let mut least = [u64::from(self.comm.mpi().reaches_gpus())];
        self.comm.all_reduce(&mut least, ferrier_mpi::Op::Min).map_err(mpi_error)?;
        Ok(least[0] == 1)
    }

    fn node_counters(&self, counters: usize) -> Result<Box<dyn NodeCounters>> {
        Ok(Box::new(Counters::new(self.node_shared()?, &self.comm, counters)?))
    }

    /// Only a call of MPI can tell what has changed: yields, so that the caller tests again. The caller may look at
    /// shared memory alone, so MPI gets a call here: it may make progress on messages only in calls, and a simulator of
    /// MPI runs the other ranks only then.
    fn park(&self, _: &mut dyn FnMut() -> WakeHint) {
        // The next call with a result reports what is wrong.
        let _ = self.comm.progress();
        std::thread::yield_now();
    }

    fn enable_sharing(&self) -> Result<()> {
        let control = Control::new(self.node_shared()?, &self.comm)?;
        let twice = |_| Error::transport("sharing memory was enabled twice for a group");
        self.control.set(control).map_err(twice)
    }

    fn exposes_all_memory(&self) -> bool {
        false
    }

    fn shared_memory(&self, bytes: usize, what: &'static str) -> Result<Option<SharedMemory>> {
        let node_shared = self.node_shared()?;
        let region = node_shared.region(&self.comm, bytes, what)?;
        Ok(Some(SharedMemory::new(region.part(node_shared.own()), Box::new(region))))
    }

    fn expose(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool> {
        let control = self.control()?;
        control.publish(own);
        self.node_barrier()?;
        control.read(all)
    }

    fn locate(&self, address: usize, bytes: usize) -> Option<[u64; 2]> {
        let node_shared = self.node_shared.as_ref()?;
        let (region, offset) = node_shared.find(address)?;
        // The last byte as well: another mapping may begin where this region ends.
        let (last, _) = node_shared.find(address + bytes.max(1) - 1)?;
        (last == region).then_some([region, offset as u64])
    }

    fn peer_address(&self, rank: usize, [region, offset]: [u64; 2]) -> Result<usize> {
        let node_shared = self.node_shared()?;
        let number = node_shared.ranks.binary_search(&rank).ok();
        let address = number.and_then(|number| node_shared.address((region, offset as usize), number));
        address.ok_or_else(|| Error::transport(format!("rank {rank} exposes memory that is not mapped here")))
    }

    fn with_access(&self, work: &mut dyn FnMut()) -> Result<()> {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            // The other ranks may wait in shared memory, where no error reaches them.
            self.fail(&format!("panicked: {}", panic_text(&*payload)));
        }
        Ok(())
    }

    fn unexpose(&self) -> Result<()> {
        self.node_barrier()
    }

    fn has_windows(&self) -> Result<bool> {
        self.node_shared()?.has_windows(&self.comm)
    }

    fn window(&self, bytes: usize, words: usize, slots: usize) -> Result<Box<dyn Window>> {
        Ok(Box::new(MpiWindow::new(self.node_shared()?, &self.comm, bytes, words, slots)?))
    }

    /// A blocked call of another process cannot be ended: aborts the job with this rank's message.
    fn fail(&self, message: &str) {
        // In one write, and with time for the launcher to read it: MPICH's drops what it has not read when a rank aborts.
        let text = format!("ferrier: rank {} of {}: {message}\n", self.rank(), self.size());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        std::thread::sleep(std::time::Duration::from_millis(50));
        self.comm.abort(FAILED);
    }
}
