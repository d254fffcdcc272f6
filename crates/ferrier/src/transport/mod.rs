//! Transports: a group of ranks and how bytes move between them.
//!
//! A transport member is one file. Ranks of the member `threads` are threads
//! of this process; those of `mpi` are processes that an `mpiexec` started.

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub(crate) mod mpi;
mod threads;
mod transfer;
mod waiting;

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

pub use threads::{Ranks, Wire, ranks};
pub use transfer::{Call, NodeCounters, Transfer, WakeHint};
pub(crate) use waiting::{Backoff, Bell, BusyThreads};

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
pub type Exposed = [usize; EXPOSED];

/// How many pointers a rank can lend at once: input, output, work.
pub const EXPOSED: usize = 3;

/// Memory that the ranks of a node can all reach; see [`Transport::shared`].
pub struct Shared {
    pub(crate) start: NonNull<u8>,
    /// Its destructor gives the memory back.
    pub(crate) _keep: Box<dyn Any + Send + Sync>,
}

/// Bytes for a rank, and where in its window they go.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The rank.
    pub peer: usize,
    /// Where in its window.
    pub at: usize,
    /// Where the bytes are.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

/// On every rank bytes that others put into without its help, and words that
/// they set to tell of it. All are zero at first.
pub trait Window: Send + Sync {
    /// Starts to put all of these. A lane, of as many as the window was made
    /// with, has one such call under way at a time.
    ///
    /// # Safety
    /// The bytes live and stay as they are until [`landed`](Window::landed)
    /// says true or an error.
    unsafe fn put(&self, lane: usize, puts: &[Put]) -> Result<()>;
    /// Whether what was put in a lane has arrived.
    fn landed(&self, lane: usize) -> Result<bool>;
    /// When `landed` may say another thing.
    fn landing(&self, lane: usize) -> WakeHint;
    /// Sets a word of another rank. What landed before is seen before.
    fn signal(&self, peer: usize, word: usize, value: u64) -> Result<()>;
    /// A word of this rank.
    fn word(&self, word: usize) -> u64;
    /// Copies out of this rank's bytes.
    fn take(&self, at: usize, into: &mut [u8]) -> Result<()>;
    /// Lets the window work; an error where the group has failed, or a rank
    /// that is `owed` something has left.
    fn check(&self, owed: &dyn Fn(usize) -> bool) -> Result<()>;
}

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
    /// The same ranks under a name of their own. Collective; allocates.
    fn duplicate(&self) -> Result<Arc<dyn Transport>> {
        self.split(0)
    }
    /// The node of each rank; nodes are numbered in order of their first ranks.
    fn nodes(&self) -> &[usize];
    /// Returns when every rank of this one's node has come here. Needs
    /// [`share`](Transport::share).
    fn node_barrier(&self) -> Result<()>;
    /// Makes ready an exchange of at most one part for and from each rank.
    /// Collective; allocates, so that flights need not.
    fn flight(&self, call: Call, sent: &[Part], received: &[Part]) -> Result<Box<dyn Transfer>>;
    /// The same, but parts stay where their senders stored them, to be loaded
    /// there when they have come: what is sent is lent as well. `None`, on
    /// every rank, where that cannot be. Collective; allocates.
    fn loan(&self, _sent: &[Part], _received: &[Part]) -> Result<Option<Box<dyn Transfer>>> {
        Ok(None)
    }
    /// May another thread of this process test flights?
    ///
    /// # Errors
    /// Why not.
    fn may_watch(&self) -> Result<()> {
        Ok(())
    }
    /// May the parts of a flight by [`Call::Messages`] lie in the memory of a
    /// GPU? Others must be staged in main memory. The same answer on every rank.
    /// Collective.
    fn reaches_gpus(&self) -> Result<bool> {
        Ok(false)
    }
    /// Counters for the ranks of a node, zero at first. Collective; allocates.
    fn tally(&self, counters: usize) -> Result<Box<dyn NodeCounters>>;
    /// Returns when there is news, or earlier: where flights are all there is
    /// to do. Not collective.
    fn rest(&self, news: &mut dyn FnMut() -> WakeHint);
    /// Ends a [`rest`](Transport::rest) of this rank that another of its
    /// threads has news for.
    fn nudge(&self) {}
    /// Makes ready to [`lend`](Transport::lend): called once, when a plan is
    /// made. An error, on every rank, where ranks of a node share no memory.
    fn share(&self) -> Result<()> {
        Ok(())
    }
    /// Can all memory be lent, or only what [`shared`](Transport::shared) gives?
    fn lends_all(&self) -> bool {
        true
    }
    /// Memory of `bytes` bytes, zero at first, that can be lent; `None` where
    /// all memory can. An error on every rank where one cannot have it.
    fn shared(&self, _bytes: usize, _what: &'static str) -> Result<Option<Shared>> {
        Ok(None)
    }
    /// Lends pointers (0: nothing) to the ranks of this node and learns
    /// theirs; those of other nodes are 0. What is lent stays valid until
    /// [`give_back`](Transport::give_back) returns. False, on every rank of the
    /// node, where an input or output lies in memory that others cannot reach;
    /// a work area must not.
    fn lend(&self, own: Exposed, all: &mut [Exposed]) -> Result<bool>;
    /// Runs `work`, which may touch what others have lent; not collective.
    /// Not entered once the group has failed, and where `work` panics the
    /// group fails.
    fn touching(&self, work: &mut dyn FnMut()) -> Result<()>;
    /// Ends a [`lend`](Transport::lend): returns when no rank can touch what
    /// this one lent. On an error too: call it on every path.
    fn give_back(&self) -> Result<()>;
    /// Can there be a [`window`](Transport::window)?
    fn has_windows(&self) -> Result<bool> {
        Ok(true)
    }
    /// A window of `bytes` bytes on this rank, and `words` words and `lanes`
    /// lanes on every one.
    fn window(&self, bytes: usize, words: usize, lanes: usize) -> Result<Box<dyn Window>>;
    /// Makes every other rank's calls return an error. Not collective.
    fn fail(&self, message: &str);
}

/// Numbers for nodes that were named in whatever way, in order of their first ranks.
pub(crate) fn number_nodes(names: &[u64]) -> Vec<usize> {
    let mut known: Vec<u64> = Vec::new();
    let mut number = |name: &u64| {
        known.iter().position(|known| known == name).unwrap_or_else(|| {
            known.push(*name);
            known.len() - 1
        })
    };
    names.iter().map(&mut number).collect()
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
    pub fn one_rank() -> Comm {
        Comm::new(threads::one_rank(), crate::machine::cores())
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

    /// The node of each rank; nodes are numbered in order of their first ranks.
    pub fn nodes(&self) -> &[usize] {
        self.transport.nodes()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes().iter().max().map_or(1, |last| last + 1)
    }

    /// Can ranks put into each other's memory? Where they cannot (Open MPI 4.1
    /// between hosts over TCP, as it is set up by default), exchange `ring` goes
    /// by two-sided messages. Collective.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    pub fn has_windows(&self) -> Result<bool> {
        self.transport.has_windows()
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

    /// Tells the others that this rank cannot go on: their calls return an
    /// error. Under MPI, where nobody can be made to return from a call, the job
    /// ends with this message and exit code 2. Not collective.
    ///
    /// For errors of a rank's own, such as of a file that only it reads: ranks
    /// that just leave keep the others waiting under MPI.
    pub fn fail(&self, message: &str) {
        self.transport.fail(message);
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The same ranks under a name of their own, so that a plan's messages
    /// can never match the user's. Collective.
    pub(crate) fn duplicate(&self) -> Result<Comm> {
        Ok(Comm::new(self.transport.duplicate()?, self.threads))
    }
}
