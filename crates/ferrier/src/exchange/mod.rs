//! Exchanges: who sends what to whom, when.
//!
//! An exchange member is one file and one line in [`EXCHANGES`]. The stages
//! before and after it load from and store to [`Strip`](crate::kernel::Strip)s,
//! so an exchange never packs: either it says where in a send and a receive
//! buffer each rank's part lies and moves the bytes ([`Exchange`]), or (member
//! `direct`) there is nothing to move, because the next stage loads straight
//! from the neighbours' memory. Member `hierarchical` is both: inside a node
//! the one, between nodes the other.

mod all_to_all;
mod all_to_allv;
mod fleet;
mod hierarchical;
mod parting;
mod point_to_point;
mod ring;

use std::ops::Range;
use std::sync::Arc;

use crate::transport::Part;
use crate::{Comm, Error, Result};
use fleet::{Hull, fleet};

/// How many bytes go to and come from each rank in one reshape, this rank's
/// own part left out (it never travels). Of parts that are encoded, as many as
/// they take at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// Bytes to each rank.
    pub to: Vec<usize>,
    /// Bytes from each rank.
    pub from: Vec<usize>,
    /// The largest part between any two ranks of the whole reshape.
    pub largest: usize,
    /// Bytes from each rank to each rank, by sender.
    pub pairs: Vec<Vec<usize>>,
    /// The reshape that this is, or is a part of. Parts of different ones are
    /// never in flight together, so their movers may share memory; reshapes that
    /// fly together have one number.
    pub reshape: usize,
    /// How parts are encoded, if they are.
    pub coded: Option<Coded>,
    /// Must parts be brought, because buffers only stand in for a device's
    /// memory? Otherwise they may be loaded where they are.
    pub staged: bool,
}

impl Volumes {
    /// Are lengths known only when parts have been encoded?
    pub fn vary(&self) -> bool {
        self.coded.as_ref().is_some_and(|coded| coded.varies)
    }
}

/// How the parts of a reshape are encoded: as chunks, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coded {
    /// Bytes that a whole chunk takes at most, with its length where that varies.
    pub slot: usize,
    /// Do lengths depend on the data? Then each chunk comes after its length
    /// ([`LENGTH`] bytes), and a part ends with a length of 0.
    pub varies: bool,
    /// Chunks of the part from each rank to each, by sender; 0 where it is
    /// empty or not encoded.
    pub chunks: Vec<Vec<usize>>,
}

/// Bytes of the length of a chunk.
pub const LENGTH: usize = 4;

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

/// Where each rank's part lies in one of the two buffers of a reshape; in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Where the part of each rank begins.
    pub at: Vec<usize>,
    /// Length of the buffer.
    pub len: usize,
}

/// How an exchange uses the memory that the ranks of a node share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The node of each rank. Parts for ranks of the same node never travel:
    /// they load them where the sender stored them.
    pub nodes: Vec<usize>,
    /// For each rank of another node, in whose send buffer the part for it
    /// goes, a rank of this node.
    pub outbox: Vec<usize>,
    /// For each rank of another node, in whose receive buffer the part from it
    /// comes, a rank of this node.
    pub inbox: Vec<usize>,
    /// Lengths of the send and the receive buffer of every rank.
    pub lens: Vec<[usize; 2]>,
}

/// Where parts are that stay where their senders stored them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteBuffers {
    /// Where in each rank's send buffer the part for this rank begins; in bytes.
    pub at: Vec<usize>,
    /// The length of each rank's send buffer.
    pub lens: Vec<usize>,
}

/// One reshape, or a part of one, ready to run. Made collectively when a plan
/// is made. Several movers of a plan may be in flight at once; they are
/// started in the same order on every rank, and waited for in any order. Each
/// is started again only when it is done.
pub trait Exchange: Send + Sync {
    /// The send buffer: where the part for each rank goes.
    fn send(&self) -> &Places;
    /// The receive buffer: where the part from each rank comes.
    fn recv(&self) -> &Places;
    /// For members that go through the memory of a node: what neighbours have
    /// stored is sent when all of them have started, and when it is done what
    /// came to them may be loaded as well.
    fn sharing(&self) -> Option<&Sharing> {
        None
    }
    /// For transports whose ranks load what was sent where it was stored: all
    /// send buffers are lent for the length of a transform, and there is no
    /// receive buffer.
    fn loans(&self) -> Option<&RemoteBuffers> {
        None
    }
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
    /// Does it have chunks encoded and decoded itself, while others fly?
    /// Otherwise all is encoded before the start, and decoded after the wait.
    fn codes(&self) -> bool {
        false
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

/// How a member works.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// The next stage loads from the neighbours' memory.
    Shared,
    /// Through send and receive buffers.
    Messages(Make),
    /// Inside a node the one, between nodes the other.
    Nodes(Make),
}

impl Way {
    /// Do ranks touch each other's memory?
    pub fn shares(self) -> bool {
        !matches!(self, Way::Messages(_))
    }
}

/// A line of the table of exchanges.
#[derive(Debug)]
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    pub(crate) way: Way,
}

impl Member {
    /// Does it send messages over so many nodes, or only share memory?
    pub fn sends_messages(&self, nodes: usize) -> bool {
        !matches!(self.way_on(nodes), Way::Shared)
    }

    /// How it works over so many nodes: inside one there is nothing to send.
    pub(crate) fn way_on(&self, nodes: usize) -> Way {
        match self.way {
            Way::Nodes(_) if nodes == 1 => Way::Shared,
            way => way,
        }
    }

    /// The most messages that go from one node to another in a reshape in
    /// which these bytes go from rank to rank.
    pub(crate) fn messages_between_nodes(&self, pairs: &[Vec<usize>], nodes: &[usize]) -> u64 {
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let mut messages = vec![0_u64; count * count];
        for (from, row) in pairs.iter().enumerate() {
            for (to, _) in
                row.iter().enumerate().filter(|(to, bytes)| **bytes > 0 && nodes[*to] != nodes[from])
            {
                messages[nodes[from] * count + nodes[to]] += 1;
            }
        }
        let most = messages.into_iter().max().unwrap_or(0);
        if matches!(self.way, Way::Nodes(_)) { most.min(1) } else { most }
    }
}

/// All exchanges; the first is the default.
pub static EXCHANGES: &[Member] = &[
    Member {
        name: "direct",
        summary: "load straight from the neighbours' memory, no messages",
        way: Way::Shared,
    },
    Member {
        name: "all_to_allv",
        summary: "one collective among the ranks that talk, parts of their own length",
        way: Way::Messages(|comm, all| each(comm, all, all_to_allv::hull)),
    },
    Member {
        name: "all_to_all",
        summary: "one collective among the ranks that talk, parts padded to one length",
        way: Way::Messages(|comm, all| each(comm, all, all_to_all::hull)),
    },
    Member {
        name: "point_to_point",
        summary: "a message to each peer, taken in order of arrival",
        way: Way::Messages(|comm, all| each(comm, all, point_to_point::hull)),
    },
    Member {
        name: "ring",
        summary: "one-sided puts in chunks, node after node, to one node at a time",
        way: Way::Messages(ring::movers),
    },
    Member {
        name: "hierarchical",
        summary: "one message for each pair of nodes, inside a node as direct",
        way: Way::Nodes(hierarchical::movers),
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
        seam: "exchange",
        name: name.into(),
        known: EXCHANGES.iter().map(|member| member.name).collect::<Vec<_>>().join(", "),
    })
}

/// Parts laid one after the other.
pub(crate) fn packed(lens: &[usize]) -> Places {
    let mut len = 0;
    let mut after = |part: usize| {
        len += part;
        len - part
    };
    let at = lens.iter().map(|&part| after(part)).collect();
    Places { at, len }
}

/// The loans of parts that every rank lays one after the other.
pub(crate) fn packed_loans(volumes: &Volumes, rank: usize) -> RemoteBuffers {
    let places: Vec<Places> = volumes.pairs.iter().map(|lens| packed(lens)).collect();
    let at = places.iter().map(|places| places.at[rank]).collect();
    RemoteBuffers { at, lens: places.iter().map(|places| places.len).collect() }
}

/// The parts that are not empty, as a transport wants them.
pub(crate) fn parts(places: &Places, lens: &[usize]) -> Vec<Part> {
    let all = places.at.iter().zip(lens).enumerate().map(|(peer, (&at, &len))| Part { peer, at, len });
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
