//! Transport `mpi`: every rank is a process that an `mpiexec` started.

mod control;
mod cores;
mod mapping;
mod node_counters;
mod node_shared;
mod transfer;
mod window;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ferrier_mpi::{AllToAllV, Way};

use super::{Call, Exposed, NodeCounters, Part, Shared, Transfer, Transport, WakeHint, Window, number_nodes};
use crate::{Error, Result};
use control::{Control, Gone};
use node_shared::NodeShared;

/// One rank of a communicator.
pub(crate) struct Member {
    comm: ferrier_mpi::Comm,
    /// What it has in common with its duplicates; groups that a split made share nothing.
    house: Option<Arc<NodeShared>>,
    nodes: Vec<usize>,
    control: OnceLock<Control>,
    /// Flights made so far: each has a tag of its own.
    flights: AtomicUsize,
}

/// As many as every MPI has.
const TAGS: usize = 32768;

/// What the job ends with where a rank fails, as the command does after an error.
const FAILED: i32 = 2;

/// MPI's error as ours.
pub(crate) fn wrapped(error: ferrier_mpi::Error) -> Error {
    Error::transport(error.to_string()).caused_by(error)
}

impl Member {
    /// Collective.
    pub fn new(comm: ferrier_mpi::Comm) -> Result<Member> {
        let house = NodeShared::new(&comm)?;
        Ok(Member::of_house(comm, house))
    }

    fn of_house(comm: ferrier_mpi::Comm, house: Arc<NodeShared>) -> Member {
        let nodes = house.nodes.clone();
        Member { comm, house: Some(house), nodes, control: OnceLock::new(), flights: AtomicUsize::new(0) }
    }

    /// This rank's share of its node's cores.
    pub fn cores(&self) -> usize {
        let share = self.house.as_ref().map_or(1, |house| house.cores / house.near.len());
        share.clamp(1, crate::machine::cores())
    }

    fn house(&self) -> Result<&Arc<NodeShared>> {
        self.house.as_ref().ok_or_else(|| Error::transport("a part of a group shares no memory"))
    }

    fn control(&self) -> Result<&Control> {
        self.control.get().ok_or_else(|| Error::transport("this group was not made ready to share"))
    }
}

impl Transport for Member {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn may_watch(&self) -> Result<()> {
        match self.comm.mpi().level() >= ferrier_mpi::Level::Serialized {
            true => Ok(()),
            false => Err(Error::transport(
                "MPI may be called by one thread only (FERRIER_MPI_THREADS=serialized asks for more)",
            )),
        }
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
        self.comm.barrier().map_err(wrapped)
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.comm.all_gather_bytes(mine).map_err(wrapped)
    }

    fn split(&self, color: usize) -> Result<Arc<dyn Transport>> {
        let comm = self.comm.split(Some(color), self.rank()).map_err(wrapped)?;
        let comm = comm.ok_or_else(|| Error::transport("MPI put this rank into no group"))?;
        let mut names = vec![0; comm.size()];
        comm.all_gather(&[self.nodes[self.rank()] as u64], &mut names).map_err(wrapped)?;
        let (nodes, control, flights) = (number_nodes(&names), OnceLock::new(), AtomicUsize::new(0));
        Ok(Arc::new(Member { comm, house: None, nodes, control, flights }))
    }

    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        let house = self.house()?;
        house.sweep(&self.comm)?;
        let comm = self.comm.duplicate().map_err(wrapped)?;
        Ok(Arc::new(Member::of_house(comm, house.clone())))
    }

    fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    fn node_barrier(&self) -> Result<()> {
        self.control()?.barrier().map_err(|Gone(rank)| {
            let message = format!("the process of rank {rank} has ended");
            self.fail(&message);
            Error::transport(message)
        })
    }

    fn flight(&self, call: Call, sent: &[Part], received: &[Part]) -> Result<Box<dyn Transfer>> {
        let list = |parts: &[Part]| -> Vec<ferrier_mpi::Part> {
            parts.iter().map(|&Part { peer, at, len }| ferrier_mpi::Part { peer, at, len }).collect()
        };
        let (to, from) = (list(sent), list(received));
        let number = self.flights.fetch_add(1, Ordering::Relaxed);
        let exchange = match call {
            Call::AllToAll => AllToAllV::new(&self.comm, &to, &from, Way::Equal),
            Call::AllToAllV => AllToAllV::new(&self.comm, &to, &from, Way::Collective),
            Call::Messages => AllToAllV::local(&self.comm, &to, &from, (number % TAGS) as i32),
        };
        Ok(Box::new(transfer::Requests::new(exchange.map_err(wrapped)?)))
    }

    fn reaches_gpus(&self) -> Result<bool> {
        let mut least = [u64::from(self.comm.mpi().reaches_gpus())];
        self.comm.all_reduce(&mut least, ferrier_mpi::Op::Min).map_err(wrapped)?;
        Ok(least[0] == 1)
    }

    fn tally(&self, counters: usize) -> Result<Box<dyn NodeCounters>> {
        Ok(Box::new(node_counters::Counters::new(self.house()?, &self.comm, counters)?))
    }

    /// Only MPI knows what is new: give way and look again.
    fn rest(&self, _: &mut dyn FnMut() -> WakeHint) {
        std::thread::yield_now();
    }

    fn share(&self) -> Result<()> {
        let control = Control::new(self.house()?, &self.comm)?;
        self.control.set(control).map_err(|_| Error::transport("made ready to share twice"))
    }

    fn lends_all(&self) -> bool {
        false
    }

    fn shared(&self, bytes: usize, what: &'static str) -> Result<Option<Shared>> {
        let house = self.house()?;
        let held = house.region(&self.comm, bytes, what)?;
        Ok(Some(Shared { start: held.region.part(house.own()), _keep: Box::new(held) }))
    }

    fn lend(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool> {
        let control = self.control()?;
        control.post(own);
        self.node_barrier()?;
        control.read(all)
    }

    fn touching(&self, work: &mut dyn FnMut()) -> Result<()> {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            // The others wait in memory, where nothing tells them.
            self.fail(&format!("panicked: {}", crate::machine::pool::panic_text(&*payload)));
        }
        Ok(())
    }

    fn give_back(&self) -> Result<()> {
        self.node_barrier()
    }

    fn has_windows(&self) -> Result<bool> {
        self.house()?.has_windows(&self.comm)
    }

    fn window(&self, bytes: usize, words: usize, _lanes: usize) -> Result<Box<dyn Window>> {
        Ok(Box::new(window::Remote::new(self.house()?, &self.comm, bytes, words)?))
    }

    /// Other processes cannot be made to return from a call of MPI: the job
    /// ends, with this rank's message.
    fn fail(&self, message: &str) {
        eprintln!("ferrier: rank {} of {}: {message}", self.rank(), self.size());
        self.comm.abort(FAILED);
    }
}
