//! Transport `mpi`: every rank is a process that an `mpiexec` started.

use std::sync::{Arc, Mutex, PoisonError};

use ferrier_mpi::{AllToAllV, Way};

use super::{Lent, Part, Transport};
use crate::{Error, Result};

/// One rank of a communicator.
pub(crate) struct Member {
    comm: ferrier_mpi::Comm,
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
    pub fn new(comm: ferrier_mpi::Comm) -> Member {
        Member { comm, prepared: Mutex::new(Vec::new()) }
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
        Ok(Arc::new(Member::new(comm)))
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

    /// Not yet: `direct` will lend what lies in shared windows.
    fn shares_memory(&self) -> bool {
        self.size() == 1
    }

    fn lend(&self, own: Lent, all: &mut [Lent]) -> Result<()> {
        if self.size() > 1 {
            return Err(Error::Transport("processes cannot touch each other's arrays".into()));
        }
        all[0] = own;
        Ok(())
    }

    fn touching(&self, work: &mut dyn FnMut()) -> Result<()> {
        work();
        Ok(())
    }

    fn give_back(&self) -> Result<()> {
        Ok(())
    }

    /// Other processes cannot be made to return from a call of MPI: the job
    /// ends, with this rank's message.
    fn fail(&self, message: &str) {
        eprintln!("ferrier: rank {} of {}: {message}", self.rank(), self.size());
        self.comm.abort(1);
    }
}
