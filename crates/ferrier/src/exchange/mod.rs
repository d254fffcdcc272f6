//! Exchanges: who sends what to whom, when.
//!
//! An exchange member is one file and one line in [`EXCHANGES`]. The stages
//! before and after it load from and store to [`Strip`](crate::kernel::Strip)s,
//! so an exchange never packs: either it says where in a send and a receive
//! buffer each rank's part lies and moves the bytes ([`Mover`]), or (member
//! `direct`) there is nothing to move, because the next stage loads straight
//! from the neighbours' memory.

mod all_to_all;
mod all_to_allv;
mod point_to_point;

use crate::transport::Part;
use crate::{Comm, Error, Result};

/// How many bytes go to and come from each rank in one reshape, this rank's
/// own part left out (it never travels).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volumes {
    /// Bytes to each rank.
    pub to: Vec<usize>,
    /// Bytes from each rank.
    pub from: Vec<usize>,
    /// The largest part between any two ranks of the whole reshape.
    pub largest: usize,
}

/// Where each rank's part lies in one of the two buffers of a reshape; in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Where the part of each rank begins.
    pub at: Vec<usize>,
    /// Length of the buffer.
    pub len: usize,
}

/// One reshape, ready to run. Made collectively when a plan is made.
pub trait Mover: Send + Sync {
    /// The send buffer: where the part for each rank goes.
    fn send(&self) -> &Places;
    /// The receive buffer: where the part from each rank comes.
    fn recv(&self) -> &Places;
    /// Moves the bytes. Collective; allocates nothing.
    ///
    /// # Errors
    /// Where a rank has failed or left.
    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()>;
}

/// How a member works.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// The next stage loads from the neighbours' memory.
    Shared,
    /// Through send and receive buffers.
    Messages(fn(&Comm, &Volumes) -> Result<Box<dyn Mover>>),
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
        way: Way::Messages(all_to_allv::mover),
    },
    Member {
        name: "all_to_all",
        summary: "one collective among the ranks that talk, parts padded to one length",
        way: Way::Messages(all_to_all::mover),
    },
    Member {
        name: "point_to_point",
        summary: "a message to each peer, taken in order of arrival",
        way: Way::Messages(point_to_point::mover),
    },
];

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

/// The parts that are not empty, as a transport wants them.
pub(crate) fn parts(places: &Places, lens: &[usize]) -> Vec<Part> {
    let all = places.at.iter().zip(lens).enumerate().map(|(peer, (&at, &len))| Part { peer, at, len });
    all.filter(|part| part.len > 0).collect()
}

/// The group of ranks that talk to each other, directly or through others,
/// and each rank's number in it (`None` outside). Collective.
pub(crate) fn talkers(comm: &Comm, volumes: &Volumes) -> Result<(Comm, Vec<Option<usize>>)> {
    let size = comm.size();
    let mine: Vec<u8> = volumes.to.iter().map(|&len| u8::from(len > 0)).collect();
    let talks = comm.all_gather(&mine)?;
    let mut color: Vec<usize> = (0..size).collect();
    // Labels sink to the smallest rank that can be reached.
    loop {
        let before = color.clone();
        for from in 0..size {
            for to in (0..size).filter(|&to| talks[from][to] != 0) {
                let low = color[from].min(color[to]);
                (color[from], color[to]) = (low, low);
            }
        }
        if color == before {
            break;
        }
    }
    let own = color[comm.rank()];
    let group = Comm::new(comm.transport().split(own)?, comm.threads());
    let mut next = 0..;
    let ranks = color.iter().map(|&c| if c == own { next.next() } else { None }).collect();
    Ok((group, ranks))
}
