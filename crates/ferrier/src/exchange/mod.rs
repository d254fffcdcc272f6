//! Exchanges: who sends what to whom, when.
//!
//! An exchange member is one file and one line in [`EXCHANGES`]. The stages
//! before and after it load from and store to [`Strip`](ferrier_kernel::Strip)s,
//! so an exchange never packs: either it says where in a send and a receive
//! buffer each rank's part lies and moves the bytes ([`Exchange`]), or (member
//! `direct`) there is nothing to move, because the next stage loads straight
//! from the neighbours' memory. Member `hierarchical` is both: inside a node
//! the one, between nodes the other.

mod all_to_all;
mod all_to_allv;

mod hierarchical;
mod point_to_point;
mod progress_set;
mod rank_exit;
mod ring;

use std::ops::Range;
use std::sync::Arc;

pub use ferrier_plan::messages::{
    BufferLayout, EncodedChunks, ExchangeBuffers, LENGTH_BYTES, NodeSharing, RemoteBuffers, Volumes,
};
use ferrier_plan::messages::{Mechanism, packed, packed_remote};

use crate::transport::Part;
use crate::{Comm, Error, Recipe, Result};
use progress_set::{Hull, fleet};

/// What encodes the parts of a mover, for members that do so chunk by chunk,
/// and knows how long those are that others have it encode before they start.
pub trait Coder: Send + Sync {
    /// Bytes of the part for a rank, encoded or not.
    fn len(&self, peer: usize) -> usize;
    /// Encodes chunks of the part for a rank into the send buffer, one after
    /// the other, from where the first of them would lie if all before it were
    /// as long as can be. How many bytes they take. The end of a part that
    /// varies is not among them.
    fn encode(&self, peer: usize, chunks: Range<usize>) -> usize;
    /// Bytes that a chunk of the part from a rank takes or, where that varies,
    /// may take besides its length.
    fn size(&self, peer: usize, chunk: usize) -> usize;
    /// Decodes a chunk of the part from a rank, which lies at these bytes of
    /// that part in the receive buffer, to where it belongs.
    ///
    /// # Errors
    /// Where no encoder wrote these bytes.
    fn decode(&self, peer: usize, chunk: usize, bytes: Range<usize>) -> Result<()>;
}

/// One reshape, or a part of one, ready to run. Made collectively when a plan
/// is made. Several movers of a plan may be in flight at once; they are
/// started in the same order on every rank, and waited for in any order. Each
/// is started again only when it is done.
pub trait Exchange: Send + Sync {
    /// Its buffers, as passes see them.
    fn buffers(&self) -> &ExchangeBuffers;
    /// Bytes of a window that all movers of a plan have together.
    fn window(&self) -> usize {
        0
    }
    /// Takes what memory it needs besides the two buffers. Collective; called
    /// once, before the first run.
    ///
    /// # Errors
    /// Where the memory cannot be had.
    fn open(&self) -> Result<()> {
        Ok(())
    }
    /// What a user should know about how it goes, such as that it had to make do.
    fn note(&self) -> Option<&str> {
        None
    }
    /// Starts to move the bytes, and waits for nobody. Allocates nothing after
    /// the first time. `coder` is there where parts are encoded.
    ///
    /// # Errors
    /// Where a rank has failed, or it is in flight.
    ///
    /// # Safety
    /// The buffers at `send` and `recv` are as long as [`send`](Mover::send)
    /// and [`recv`](Mover::recv) say and apart from each other. They live and
    /// are not touched until [`test`](Mover::test) says true or an error, or
    /// [`wait`](Mover::wait) returns.
    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()>;
    /// Makes progress; whether all has come and gone, or nothing was started.
    ///
    /// # Errors
    /// Where a rank has failed or left; this mover touches the buffers no more.
    fn test(&self) -> Result<bool>;
    /// Returns when all has come and gone. Makes progress on all movers of the
    /// plan. After an error the others that are in flight are still to be
    /// waited for, before their buffers go.
    ///
    /// # Errors
    /// As [`test`](Mover::test); what a test told is told again.
    fn wait(&self) -> Result<()>;
    /// Starts and waits: on all ranks, or on none.
    ///
    /// # Errors
    /// As [`start`](Mover::start) and [`wait`](Mover::wait).
    ///
    /// # Safety
    /// As [`start`](Mover::start), for the length of the call.
    unsafe fn run(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        // SAFETY: the caller's word.
        unsafe { self.start(send, recv, coder)? };
        self.wait()
    }
}

/// Makes the movers of all reshapes of a plan. Collective.
pub(crate) type Make = fn(&Comm, &[Volumes]) -> Result<Vec<Box<dyn Exchange>>>;

/// A line of the table of exchanges.
#[derive(Debug)]
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    pub(crate) mechanism: Mechanism,
    /// Makes the exchanges of all reshapes of a plan; `None` where there is nothing to send.
    pub(crate) make: Option<Make>,
}

impl Member {
    /// Does it send messages over so many nodes, or only share memory?
    pub fn sends_messages(&self, nodes: usize) -> bool {
        self.mechanism.on_nodes(nodes) != Mechanism::SharedMemory
    }

    /// For each step of a recipe the most messages that go from one node to another; see
    /// [`Recipe::messages_between_nodes`].
    pub fn messages_between_nodes(&self, recipe: &Recipe, nodes: &[usize]) -> Vec<u64> {
        recipe.messages_between_nodes(self.mechanism, nodes)
    }
}

/// All exchanges; the first is the default.
pub static EXCHANGES: &[Member] = &[
    Member {
        name: "direct",
        summary: "load straight from the neighbours' memory, no messages",
        mechanism: Mechanism::SharedMemory,
        make: None,
    },
    Member {
        name: "all_to_allv",
        summary: "one collective among the ranks that talk, parts of their own length",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all| each(comm, all, all_to_allv::hull)),
    },
    Member {
        name: "all_to_all",
        summary: "one collective among the ranks that talk, parts padded to one length",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all| each(comm, all, all_to_all::hull)),
    },
    Member {
        name: "point_to_point",
        summary: "a message to each peer, taken in order of arrival",
        mechanism: Mechanism::Messages,
        make: Some(|comm, all| each(comm, all, point_to_point::hull)),
    },
    Member {
        name: "ring",
        summary: "one-sided puts in chunks, node after node, to one node at a time",
        mechanism: Mechanism::Messages,
        make: Some(ring::movers),
    },
    Member {
        name: "hierarchical",
        summary: "one message for each pair of nodes, inside a node as direct",
        mechanism: Mechanism::NodeAware,
        make: Some(hierarchical::movers),
    },
];

/// The movers of a member that makes them one by one.
fn each(
    comm: &Comm,
    all: &[Volumes],
    make: fn(&mut Groups, &Volumes) -> Result<Hull>,
) -> Result<Vec<Box<dyn Exchange>>> {
    let mut groups = Groups { comm: comm.duplicate()?, known: Vec::new() };
    let hulls = all.iter().map(|volumes| make(&mut groups, volumes)).collect::<Result<Vec<_>>>()?;
    Ok(fleet(groups.comm.transport(), hulls))
}

/// The member called `name`.
///
/// # Errors
/// [`Error::UnknownName`] lists the names there are.
pub fn find(name: &str) -> Result<&'static Member> {
    EXCHANGES.iter().find(|member| member.name == name).ok_or_else(|| Error::UnknownName {
        what: "exchange",
        name: name.into(),
        known: EXCHANGES.iter().map(|member| member.name).collect::<Vec<_>>().join(", "),
    })
}

/// The parts that are not empty, as a transport wants them.
pub(crate) fn parts(places: &BufferLayout, lens: &[usize]) -> Vec<Part> {
    let all = places.offsets.iter().zip(lens).enumerate().map(|(peer, (&at, &len))| Part { peer, at, len });
    all.filter(|part| part.len > 0).collect()
}

/// The groups that the movers of a plan talk in: no more of them than needed,
/// since MPI has not many.
struct Groups {
    /// All ranks, under a name of their own.
    comm: Comm,
    /// Groups by the label of each rank.
    known: Vec<(Vec<usize>, Comm)>,
}

impl Groups {
    fn whole(&self) -> &Comm {
        &self.comm
    }

    /// The group of ranks that talk to each other, directly or through others,
    /// and each rank's number in it (`None` outside). Collective.
    fn talkers(&mut self, volumes: &Volumes) -> Result<(Comm, Vec<Option<usize>>)> {
        let labels = labels(&volumes.pairs);
        let own = labels[self.comm.rank()];
        let mut next = 0..;
        let ranks = labels.iter().map(|&label| if label == own { next.next() } else { None }).collect();
        if let Some((_, group)) = self.known.iter().find(|(known, _)| *known == labels) {
            return Ok((group.clone(), ranks));
        }
        let group = Comm::new(self.comm.transport().split(own)?, self.comm.threads());
        self.known.push((labels, group.clone()));
        Ok((group, ranks))
    }
}

/// The smallest rank that each can reach, directly or through others.
fn labels(pairs: &[Vec<usize>]) -> Vec<usize> {
    let mut labels: Vec<usize> = (0..pairs.len()).collect();
    loop {
        let before = labels.clone();
        for (from, row) in pairs.iter().enumerate() {
            for (to, _) in row.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                let low = labels[from].min(labels[to]);
                (labels[from], labels[to]) = (low, low);
            }
        }
        if labels == before {
            return labels;
        }
    }
}

#[cfg(test)]
mod tests;
