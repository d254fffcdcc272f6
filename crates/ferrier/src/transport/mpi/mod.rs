//! Transport `mpi`: every rank is a process that an `mpiexec` started.

mod control;
mod cores;
mod house;
mod mapping;
mod window;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ferrier_mpi::{AllToAllV, Way};

use super::{Lent, Part, Shared, Transport, Window, number_nodes};
use crate::{Error, Result};
use control::Control;
use house::House;

/// One rank of a communicator.
pub(crate) struct Member {
    comm: ferrier_mpi::Comm,
    /// What it has in common with its duplicates; groups that a split made share nothing.
    house: Option<Arc<House>>,
    nodes: Vec<usize>,
    control: OnceLock<Control>,
    /// Exchanges that were prepared; a plan's group has one.
    prepared: Mutex<Vec<Arc<Prepared>>>,
}

struct Prepared {
    messages: bool,
    sent: Vec<Part>,
    received: Vec<Part>,
    exchange: AllToAllV,
}

/// MPI's error as ours.
pub(crate) fn wrapped(error: ferrier_mpi::Error) -> Error {
    Error::Transport(error.to_string())
}

impl Member {
    /// Collective.
    pub fn new(comm: ferrier_mpi::Comm) -> Result<Member> {
        let house = House::new(&comm)?;
        Ok(Member::of_house(comm, house))
    }

    fn of_house(comm: ferrier_mpi::Comm, house: Arc<House>) -> Member {
        let nodes = house.nodes.clone();
        Member { comm, house: Some(house), nodes, control: OnceLock::new(), prepared: Mutex::default() }
    }

    /// This rank's share of its node's cores.
    pub fn cores(&self) -> usize {
        let share = self.house.as_ref().map_or(1, |house| house.cores / house.near.len());
        share.clamp(1, crate::machine::cores())
    }

    fn house(&self) -> Result<&Arc<House>> {
        self.house.as_ref().ok_or_else(|| Error::Transport("a part of a group shares no memory".into()))
    }

    fn control(&self) -> Result<&Control> {
        self.control.get().ok_or_else(|| Error::Transport("this group was not made ready to share".into()))
    }

    /// The exchange of these parts: one that was prepared, else a new one.
    fn exchange(&self, messages: bool, sent: &[Part], received: &[Part]) -> Result<Arc<Prepared>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            prepared.iter().find(|p| p.messages == messages && p.sent == sent && p.received == received);
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let list = |parts: &[Part]| -> Vec<ferrier_mpi::Part> {
            parts.iter().map(|&Part { peer, at, len }| ferrier_mpi::Part { peer, at, len }).collect()
        };
        let (to, from) = (list(sent), list(received));
        let exchange = if messages {
            // Only those who talk take part: nothing collective may happen here.
            AllToAllV::local(&self.comm, &to, &from)
        } else {
            AllToAllV::new(&self.comm, &to, &from, Way::Collective)
        };
        let exchange = exchange.map_err(wrapped)?;
        let new = Prepared { messages, sent: sent.to_vec(), received: received.to_vec(), exchange };
        prepared.push(Arc::new(new));
        Ok(prepared[prepared.len() - 1].clone())
    }
}

impl Transport for Member {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn version(&self) -> String {
        let text = self.comm.mpi().library_version().unwrap_or_default();
        let words: Vec<_> = text.lines().next().unwrap_or_default().split_whitespace().take(4).collect();
        format!("mpi ({})", words.join(" ").trim_end_matches(','))
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
        let comm = comm.ok_or_else(|| Error::Transport("MPI put this rank into no group".into()))?;
        let mut names = vec![0; comm.size()];
        comm.all_gather(&[self.nodes[self.rank()] as u64], &mut names).map_err(wrapped)?;
        let (nodes, control, prepared) = (number_nodes(&names), OnceLock::new(), Mutex::default());
        Ok(Arc::new(Member { comm, house: None, nodes, control, prepared }))
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
        self.control()?.barrier();
        Ok(())
    }

    fn all_to_all(&self, block: usize, send: &[u8], recv: &mut [u8]) -> Result<()> {
        let length = block * self.size();
        if send.len() < length || recv.len() < length {
            let (send, recv) = (send.len(), recv.len());
            return Err(Error::Transport(format!(
                "all_to_all of {length} bytes from a buffer of {send} into one of {recv}"
            )));
        }
        self.comm.all_to_all(&send[..length], &mut recv[..length]).map_err(wrapped)
    }

    fn all_to_allv(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()> {
        self.exchange(false, sent, received)?.exchange.run(send, recv).map_err(wrapped)
    }

    fn messages(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()> {
        self.exchange(true, sent, received)?.exchange.run(send, recv).map_err(wrapped)
    }

    fn prepare(&self, messages: bool, sent: &[Part], received: &[Part]) -> Result<()> {
        self.exchange(messages, sent, received).map(drop)
    }

    fn share(&self) -> Result<()> {
        let control = Control::new(self.house()?, &self.comm)?;
        self.control.set(control).map_err(|_| Error::Transport("made ready to share twice".into()))
    }

    fn lends_all(&self) -> bool {
        false
    }

    fn shared(&self, bytes: usize, what: &'static str) -> Result<Option<Shared>> {
        let house = self.house()?;
        let held = house.region(&self.comm, bytes, what)?;
        Ok(Some(Shared { start: held.region.part(house.own()), _keep: Box::new(held) }))
    }

    fn lend(&self, own: Lent, all: &mut [Lent]) -> Result<bool> {
        self.control()?.lend(own, all)
    }

    fn touching(&self, work: &mut dyn FnMut()) -> Result<()> {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            // The others wait in memory, where nothing tells them.
            self.fail(&format!("panicked: {}", crate::pool::panic_text(&*payload)));
        }
        Ok(())
    }

    fn give_back(&self) -> Result<()> {
        self.node_barrier()
    }

    fn has_windows(&self) -> Result<bool> {
        self.house()?.has_windows(&self.comm)
    }

    fn window(&self, bytes: usize, words: usize) -> Result<Box<dyn Window>> {
        Ok(Box::new(window::Remote::new(self.house()?, &self.comm, bytes, words)?))
    }

    /// Other processes cannot be made to return from a call of MPI: the job
    /// ends, with this rank's message.
    fn fail(&self, message: &str) {
        eprintln!("ferrier: rank {} of {}: {message}", self.rank(), self.size());
        self.comm.abort(1);
    }
}
