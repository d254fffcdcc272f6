//! Transports: a group of ranks and how bytes move between them.
//!
//! A transport member is one file. Ranks of the member `threads` are threads
//! of this process; those of `mpi` are processes that an `mpiexec` started.

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub(crate) mod mpi;
mod threads;
mod waiting;

use std::sync::Arc;

pub use threads::{Ranks, ranks};
pub(crate) use waiting::{Bell, BusyThreads};

use crate::Result;

/// A part of a buffer that goes to, or comes from, another rank; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The other rank.
    pub peer: usize,
    /// Where the part begins.
    pub at: usize,
    /// How long it is.
    pub len: usize,
}

/// Pointers that a rank lends to its group for the length of a call.
pub type Lent = [usize; LENT];

/// How many pointers a rank can lend at once: input, output, work.
pub const LENT: usize = 3;

/// A group of ranks. All methods that talk are collective over the group
/// unless they say otherwise, and return an error on every rank where one
/// rank fails, panics or leaves.
pub trait Transport: Send + Sync {
    /// `threads` or `mpi`.
    fn name(&self) -> &'static str;
    /// The name, with the version of the library that ranks talk through.
    fn version(&self) -> String {
        self.name().into()
    }
    /// This rank.
    fn rank(&self) -> usize;
    /// Number of ranks.
    fn size(&self) -> usize;
    /// Returns when every rank has come here.
    fn barrier(&self) -> Result<()>;
    /// Every rank's bytes, in order of rank. Allocates.
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Groups of the ranks that gave the same colour, in order of rank. Allocates.
    fn split(&self, color: usize) -> Result<Arc<dyn Transport>>;
    /// Block `q` of `send` goes to rank `q`, block `q` of `recv` comes from
    /// it; all blocks are `block` bytes long.
    fn all_to_all(&self, block: usize, send: &[u8], recv: &mut [u8]) -> Result<()>;
    /// Parts of any length; a rank that is in no part is not talked to.
    fn all_to_allv(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()>;
    /// The same, pair by pair, taken in whatever order they arrive. Only the
    /// ranks named in the parts take part.
    fn messages(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()>;
    /// Told when a plan is made of parts that will be exchanged over and over,
    /// so that the calls themselves need not allocate; `messages` says which
    /// call it will be. Collective.
    fn prepare(&self, _messages: bool, _sent: &[Part], _received: &[Part]) -> Result<()> {
        Ok(())
    }
    /// Whether ranks can touch what others [`lend`](Transport::lend).
    fn shares_memory(&self) -> bool {
        true
    }
    /// Lends pointers to the group and learns the others'. What is lent stays
    /// valid until [`give_back`](Transport::give_back) returns.
    fn lend(&self, own: Lent, all: &mut [Lent]) -> Result<()>;
    /// Runs `work`, which may touch what others have lent; not collective.
    /// Not entered once the group has failed, and where `work` panics the
    /// group fails.
    fn touching(&self, work: &mut dyn FnMut()) -> Result<()>;
    /// Ends a [`lend`](Transport::lend): returns when no rank can touch what
    /// this one lent. On an error too: call it on every path.
    fn give_back(&self) -> Result<()>;
    /// Makes every other rank's calls return an error. Not collective.
    fn fail(&self, message: &str);
}

/// A handle on a group of ranks, and how many threads each may use.
#[derive(Clone)]
pub struct Comm {
    transport: Arc<dyn Transport>,
    threads: usize,
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} ({})", self.rank(), self.size(), self.transport_name())
    }
}

impl Comm {
    pub(crate) fn new(transport: Arc<dyn Transport>, threads: usize) -> Comm {
        Comm { transport, threads }
    }

    /// One rank: the calling thread, with as many threads as there are cores.
    pub fn solo() -> Comm {
        Comm::new(threads::solo(), crate::machine::cores())
    }

    /// The same group, with `threads` threads inside this rank (at least one).
    pub fn with_threads(mut self, threads: usize) -> Comm {
        self.threads = threads.max(1);
        self
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// Threads inside this rank.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// `threads`: the ranks are threads of this process; `mpi`: processes.
    pub fn transport_name(&self) -> &'static str {
        self.transport.name()
    }

    /// Returns when every rank has come here. Collective.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn barrier(&self) -> Result<()> {
        self.transport.barrier()
    }

    /// Every rank's bytes, in order of rank. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.transport.all_gather(mine)
    }

    /// Sums over ranks, entry by entry, in order of rank. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn sum(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.reduce(mine, |a, b| a + b)
    }

    /// Maxima over ranks, entry by entry. Collective; allocates.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn max(&self, mine: &[f64]) -> Result<Vec<f64>> {
        self.reduce(mine, f64::max)
    }

    fn reduce(&self, mine: &[f64], join: fn(f64, f64) -> f64) -> Result<Vec<f64>> {
        let bytes: Vec<u8> = mine.iter().flat_map(|value| value.to_le_bytes()).collect();
        let lists: Vec<Vec<f64>> = self
            .all_gather(&bytes)?
            .iter()
            .map(|list| list.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
            .collect();
        Ok((0..mine.len()).map(|i| lists.iter().map(|list| list[i]).reduce(join).unwrap_or(0.0)).collect())
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The same ranks under a name of their own, so that a plan's messages
    /// can never match the user's. Collective.
    pub(crate) fn duplicate(&self) -> Result<Comm> {
        Ok(Comm::new(self.transport.split(0)?, self.threads))
    }
}
