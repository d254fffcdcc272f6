//! All-to-all with parts of any length, prepared once and run many times.
//!
//! What is checked and agreed upon when it is made (lengths that fit on both
//! sides, whether counts fit in 32 bits on every rank) need not be in a run,
//! which allocates nothing in this crate.

use crate::comm::Comm;
use crate::data::{Op, received_at, sent_from};
use crate::error::{Error, Result};
use crate::ffi::{Aint, Count, Int};
use crate::mpi::Counting;
use crate::p2p::{self, Source};
use crate::request::Table;

/// A part of a buffer that goes to, or comes from, a rank; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rank.
    pub peer: usize,
    /// Where the part begins.
    pub at: usize,
    /// How long it is.
    pub len: usize,
}

/// How the parts travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// `MPI_Alltoallv`; by messages where counts exceed what it can take.
    Collective,
    /// One message per part, on a communicator of its own; parts can be taken
    /// as they arrive.
    Messages,
    /// `MPI_Alltoall`: a part for every rank, this one too, all of one length
    /// and one after the other; by messages where that exceeds what it can take.
    Equal,
}

/// A prepared exchange; see [`Comm::all_to_allv`] for a single one.
pub struct AllToAllV {
    comm: Comm,
    sent: Vec<Part>,
    received: Vec<Part>,
    wire: Wire,
}

enum Wire {
    Wide(Counts<Count, Aint>),
    Narrow(Counts<Int, Int>),
    /// All parts are that long.
    Equal(usize),
    /// On a communicator that nobody else talks on, or not with this tag.
    Messages(Comm, i32),
}

/// Counts and displacements as MPI wants them.
pub(crate) struct Counts<C, D> {
    pub send: Vec<C>,
    pub send_at: Vec<D>,
    pub recv: Vec<C>,
    pub recv_at: Vec<D>,
}

impl<C: Copy + Default + TryFrom<usize>, D: Copy + Default + TryFrom<usize>> Counts<C, D> {
    fn new(size: usize, sent: &[Part], received: &[Part]) -> Counts<C, D> {
        let list = |parts: &[Part]| {
            let (mut counts, mut places) = (vec![C::default(); size], vec![D::default(); size]);
            for part in parts {
                counts[part.peer] = C::try_from(part.len).unwrap_or_default();
                places[part.peer] = D::try_from(part.at).unwrap_or_default();
            }
            (counts, places)
        };
        let ((send, send_at), (recv, recv_at)) = (list(sent), list(received));
        Counts { send, send_at, recv, recv_at }
    }
}

/// Tag of messages that have a communicator to themselves.
const TAG: i32 = 1;

fn end(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.at + part.len).max().unwrap_or(0)
}

/// What is wrong with a list of parts, if anything.
fn wrong(parts: &[Part], size: usize, disjoint: bool) -> Option<String> {
    let mut seen = vec![false; size];
    for part in parts {
        if part.peer >= size {
            return Some(format!("a part for rank {} of {size}", part.peer));
        }
        if std::mem::replace(&mut seen[part.peer], true) {
            return Some(format!("two parts for rank {}", part.peer));
        }
        if part.at.checked_add(part.len).is_none_or(|end| end > isize::MAX as usize) {
            return Some(format!("a part of {} bytes at {}", part.len, part.at));
        }
    }
    let mut sorted: Vec<&Part> = parts.iter().filter(|part| part.len > 0).collect();
    sorted.sort_by_key(|part| part.at);
    let overlap = sorted.windows(2).find(|pair| pair[0].at + pair[0].len > pair[1].at)?;
    disjoint.then(|| format!("parts from ranks {} and {} overlap", overlap[0].peer, overlap[1].peer))
}

/// What keeps these parts from being equal blocks, one for each rank.
fn unequal(parts: &[Part], size: usize) -> Option<String> {
    let block = parts.first().map_or(0, |part| part.len);
    let fits = |(rank, part): (usize, &Part)| {
        part.peer == rank && part.len == block && Some(part.at) == rank.checked_mul(block)
    };
    let equal = parts.len() == size && parts.iter().enumerate().all(fits);
    (!equal).then(|| format!("parts that are not {size} equal blocks, one after the other"))
}

impl AllToAllV {
    /// Prepares an exchange: at most one part per rank and direction, ranks
    /// without one get and give nothing. Collective; allocates.
    ///
    /// # Errors
    /// [`Error::Argument`] on every rank where the parts of one are wrong, do
    /// not fit what its peers gave, or `way` differs; those of MPI.
    pub fn new(comm: &Comm, sent: &[Part], received: &[Part], way: Way) -> Result<AllToAllV> {
        let size = comm.size();
        let mut trouble = wrong(sent, size, false).or_else(|| wrong(received, size, true));
        if way == Way::Equal {
            trouble = trouble.or_else(|| unequal(sent, size)).or_else(|| unequal(received, size));
        }
        let lengths = |parts: &[Part]| {
            let mut lengths = vec![0_u64; size];
            parts
                .iter()
                .filter(|part| part.peer < size)
                .for_each(|part| lengths[part.peer] = part.len as u64);
            lengths
        };
        let (expected, mut coming) = (lengths(received), vec![0_u64; size]);
        comm.all_to_all(&lengths(sent), &mut coming)?;
        if trouble.is_none() {
            trouble = (0..size).find(|&peer| coming[peer] != expected[peer]).map(|peer| {
                format!("rank {peer} sends {} bytes, {} are expected", coming[peer], expected[peer])
            });
        }
        let extent = if trouble.is_some() { 0 } else { end(sent).max(end(received)) as u64 };
        let number = way as u64;
        let mut agreed = [u64::from(trouble.is_some()), extent, number, u64::from(u32::MAX) - number];
        comm.all_reduce(&mut agreed, Op::Max)?;
        if let Some(trouble) = trouble {
            return Err(Error::Argument(format!("all_to_allv: {trouble}")));
        }
        if agreed[0] != 0 || agreed[2] + agreed[3] != u64::from(u32::MAX) {
            let why = if agreed[0] != 0 {
                "the parts of another rank are wrong"
            } else {
                "ranks ask for different ways"
            };
            return Err(Error::Argument(format!("all_to_allv: {why}")));
        }
        let wire = match (way, comm.inner().counting()) {
            (Way::Collective, Counting::Wide(_)) => Wire::Wide(Counts::new(size, sent, received)),
            (Way::Collective, Counting::Split(limit)) if agreed[1] <= limit as u64 => {
                Wire::Narrow(Counts::new(size, sent, received))
            }
            (Way::Equal, counting) if counting.takes(sent[0].len) => Wire::Equal(sent[0].len),
            _ => Wire::Messages(comm.duplicate()?, TAG),
        };
        Ok(AllToAllV { comm: comm.clone(), sent: sent.to_vec(), received: received.to_vec(), wire })
    }

    /// Prepares an exchange by messages without asking the others. Not
    /// collective; allocates. The messages travel on `comm` itself, with this
    /// tag (0 to 32767): nothing else should. Exchanges with tags of their own
    /// can be in flight at once, started in any order.
    ///
    /// Parts must fit those of the peers. Where they do not, runs wait for ever
    /// or return MPI's error; no memory outside the parts is touched.
    ///
    /// # Errors
    /// [`Error::Argument`] where the parts are wrong by themselves.
    pub fn local(comm: &Comm, sent: &[Part], received: &[Part], tag: i32) -> Result<AllToAllV> {
        let own =
            |parts: &[Part]| parts.iter().find(|part| part.peer == comm.rank()).map_or(0, |part| part.len);
        let trouble = wrong(sent, comm.size(), false)
            .or_else(|| wrong(received, comm.size(), true))
            .or_else(|| (own(sent) != own(received)).then(|| "own parts differ in length".into()))
            .or_else(|| (!(0..=32767).contains(&tag)).then(|| format!("a tag of {tag}")));
        if let Some(trouble) = trouble {
            return Err(Error::Argument(format!("all_to_allv: {trouble}")));
        }
        let wire = Wire::Messages(comm.clone(), tag);
        Ok(AllToAllV { comm: comm.clone(), sent: sent.to_vec(), received: received.to_vec(), wire })
    }

    /// Runs it. Collective, over the ranks that have parts for each other
    /// where it goes by messages. Allocates nothing after the first run.
    ///
    /// # Errors
    /// [`Error::Argument`] where a buffer is too short for the parts; those of MPI.
    pub fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.check(send.len(), recv.len())?;
        let table = Table::new(self.comm.inner());
        // SAFETY: long enough, as just checked; the buffers are ours until the table is empty.
        unsafe { self.run_at(&table, sent_from(send), received_at(recv.as_mut_ptr(), recv.len()))? };
        table.wait(0..table.len())
    }

    /// Runs it, or starts what then is in the table.
    ///
    /// # Safety
    /// As [`AllToAllV::start`].
    pub(crate) unsafe fn run_at(&self, table: &Table, from: *const u8, to: *mut u8) -> Result<()> {
        let mpi = self.comm.inner();
        let (byte, raw, calls) = (mpi.h.byte, self.comm.raw(), mpi.calls());
        let (call, code) = match (&self.wire, mpi.counting()) {
            (Wire::Narrow(n), _) => {
                let _gate = mpi.enter()?;
                let (send, send_at) = (n.send.as_ptr(), n.send_at.as_ptr());
                let (recv, recv_at) = (n.recv.as_ptr(), n.recv_at.as_ptr());
                // SAFETY: every part lies inside its buffer; lists have an entry per rank.
                ("MPI_Alltoallv", unsafe {
                    (calls.alltoallv)(from.cast(), send, send_at, byte, to.cast(), recv, recv_at, byte, raw)
                })
            }
            (Wire::Wide(w), Counting::Wide(wide)) => {
                let _gate = mpi.enter()?;
                let (send, send_at) = (w.send.as_ptr(), w.send_at.as_ptr());
                let (recv, recv_at) = (w.recv.as_ptr(), w.recv_at.as_ptr());
                // SAFETY: as above.
                ("MPI_Alltoallv_c", unsafe {
                    (wide.alltoallv)(from.cast(), send, send_at, byte, to.cast(), recv, recv_at, byte, raw)
                })
            }
            (&Wire::Equal(block), Counting::Wide(wide)) => {
                let (_gate, count) = (mpi.enter()?, block as Count);
                // SAFETY: both buffers hold a block for every rank.
                ("MPI_Alltoall_c", unsafe {
                    (wide.alltoall)(from.cast(), count, byte, to.cast(), count, byte, raw)
                })
            }
            (&Wire::Equal(block), counting) if counting.takes(block) => {
                let (_gate, count) = (mpi.enter()?, block as Int);
                // SAFETY: as above.
                ("MPI_Alltoall", unsafe {
                    (calls.alltoall)(from.cast(), count, byte, to.cast(), count, byte, raw)
                })
            }
            // SAFETY: the caller's word.
            _ => return unsafe { self.start(table, from, to) },
        };
        mpi.check(call, code)
    }

    /// Starts it.
    ///
    /// # Safety
    /// [`AllToAllV::check`] has passed; until the operations are complete this
    /// exchange and both buffers live, the sent bytes do not change and nobody
    /// touches the received ones.
    pub(crate) unsafe fn start(&self, table: &Table, from: *const u8, to: *mut u8) -> Result<()> {
        let mpi = self.comm.inner();
        let (byte, raw, calls) = (mpi.h.byte, self.comm.raw(), mpi.calls());
        let mut handle = 0;
        match (&self.wire, mpi.counting()) {
            (&Wire::Equal(block), Counting::Wide(wide)) => {
                let (_gate, count, new) = (mpi.enter()?, block as Count, &mut handle);
                // SAFETY: both buffers hold a block for every rank.
                let code =
                    unsafe { (wide.ialltoall)(from.cast(), count, byte, to.cast(), count, byte, raw, new) };
                mpi.check("MPI_Ialltoall_c", code)?;
                table.push(handle, false, 0);
            }
            (&Wire::Equal(block), counting) if counting.takes(block) => {
                let (_gate, count, new) = (mpi.enter()?, block as Int, &mut handle);
                // SAFETY: as above.
                let code =
                    unsafe { (calls.ialltoall)(from.cast(), count, byte, to.cast(), count, byte, raw, new) };
                mpi.check("MPI_Ialltoall", code)?;
                table.push(handle, false, 0);
            }
            (Wire::Narrow(n), _) => {
                let _gate = mpi.enter()?;
                // SAFETY: every part lies inside its buffer; lists live as long as `self`.
                let code = unsafe {
                    let (send, send_at) = (n.send.as_ptr(), n.send_at.as_ptr());
                    let (recv, recv_at, new) = (n.recv.as_ptr(), n.recv_at.as_ptr(), &mut handle);
                    (calls.ialltoallv)(
                        from.cast(),
                        send,
                        send_at,
                        byte,
                        to.cast(),
                        recv,
                        recv_at,
                        byte,
                        raw,
                        new,
                    )
                };
                mpi.check("MPI_Ialltoallv", code)?;
                table.push(handle, false, 0);
            }
            (Wire::Wide(w), Counting::Wide(wide)) => {
                let _gate = mpi.enter()?;
                // SAFETY: as above.
                let code = unsafe {
                    let (send, send_at) = (w.send.as_ptr(), w.send_at.as_ptr());
                    let (recv, recv_at, new) = (w.recv.as_ptr(), w.recv_at.as_ptr(), &mut handle);
                    (wide.ialltoallv)(
                        from.cast(),
                        send,
                        send_at,
                        byte,
                        to.cast(),
                        recv,
                        recv_at,
                        byte,
                        raw,
                        new,
                    )
                };
                mpi.check("MPI_Ialltoallv_c", code)?;
                table.push(handle, false, 0);
            }
            // Made with 64-bit counts, and a test lowered the limit since.
            (Wire::Wide(_) | Wire::Equal(_), Counting::Split(_)) => {
                return Err(Error::Argument("the count limit changed after an exchange was made".into()));
            }
            // SAFETY: the caller's word.
            (Wire::Messages(..), _) => unsafe {
                self.start_messages(table, from, to, &|_| usize::MAX)?;
            },
        }
        Ok(())
    }

    /// Starts it with so many bytes for each rank, or as many as were prepared.
    ///
    /// # Safety
    /// As [`AllToAllV::start`].
    pub(crate) unsafe fn start_messages(
        &self,
        table: &Table,
        from: *const u8,
        to: *mut u8,
        len: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        let Wire::Messages(own, tag) = &self.wire else {
            return Err(Error::Argument("only messages can be shorter than prepared".into()));
        };
        let (rank, tag) = (own.rank(), *tag);
        for (index, part) in self.received.iter().enumerate() {
            if part.peer != rank && part.len > 0 {
                // SAFETY: the part lies inside the buffer, which the caller keeps.
                unsafe {
                    let source = Source::Rank(part.peer);
                    p2p::start_receive(table, own, to.add(part.at), part.len, source, tag, index)?;
                }
            } else {
                table.push_complete(index);
            }
        }
        // Each rank begins with the one after it, so that not all send to rank 0 at first.
        let turn = self.sent.iter().position(|part| part.peer > rank).unwrap_or(0);
        for part in self.sent[turn..].iter().chain(&self.sent[..turn]).filter(|part| part.len > 0) {
            if part.peer != rank {
                let most = part.len;
                let length = [len(part.peer).min(most), most];
                // SAFETY: as above.
                unsafe {
                    p2p::start_send(table, own, from.add(part.at), length, part.peer, tag, usize::MAX)?
                };
            } else if let Some(mine) = self.received.iter().find(|mine| mine.peer == rank) {
                // SAFETY: both lie inside their buffers and are as long (agreed
                // upon when made); one is borrowed, the other exclusively ours.
                unsafe { to.add(mine.at).copy_from_nonoverlapping(from.add(part.at), mine.len) };
            }
        }
        Ok(())
    }

    /// How long a send and a receive buffer must be to hold all parts.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (end(&self.sent), end(&self.received))
    }

    /// That buffers of these lengths hold all parts.
    pub(crate) fn check(&self, send: usize, recv: usize) -> Result<()> {
        let (sent, received) = self.lengths();
        for (what, have, need) in [("send", send, sent), ("receive", recv, received)] {
            if have < need {
                return Err(Error::Argument(format!(
                    "all_to_allv: a {what} buffer of {have} bytes, parts need {need}"
                )));
            }
        }
        Ok(())
    }

    /// The parts received.
    pub fn received(&self) -> &[Part] {
        &self.received
    }

    /// The parts sent.
    pub fn sent(&self) -> &[Part] {
        &self.sent
    }

    /// Whether parts arrive one by one.
    pub fn arrives_in_parts(&self) -> bool {
        matches!(self.wire, Wire::Messages(..))
    }

    pub(crate) fn comm(&self) -> &Comm {
        &self.comm
    }

    pub(crate) fn narrow(&self) -> Option<&Counts<Int, Int>> {
        if let Wire::Narrow(counts) = &self.wire { Some(counts) } else { None }
    }

    pub(crate) fn wide(&self) -> Option<&Counts<Count, Aint>> {
        if let Wire::Wide(counts) = &self.wire { Some(counts) } else { None }
    }
}

impl Comm {
    /// A single exchange: prepares it, runs it once. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`AllToAllV::new`] and [`AllToAllV::run`].
    pub fn all_to_allv(&self, send: &[u8], sent: &[Part], recv: &mut [u8], received: &[Part]) -> Result<()> {
        AllToAllV::new(self, sent, received, Way::Collective)?.run(send, recv)
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, unequal, wrong};

    #[test]
    fn equal_parts_are_blocks_in_order() {
        let part = |peer, at, len| Part { peer, at, len };
        assert_eq!(unequal(&[part(0, 0, 4), part(1, 4, 4)], 2), None);
        let others = [
            vec![part(0, 0, 4)],
            vec![part(1, 0, 4), part(0, 4, 4)],
            vec![part(0, 0, 4), part(1, 8, 4)],
            vec![part(0, 0, 4), part(1, 4, 3)],
        ];
        assert!(others.iter().all(|parts| unequal(parts, 2).is_some()));
    }

    #[test]
    fn wrong_parts_are_named() {
        let part = |peer, at, len| Part { peer, at, len };
        assert_eq!(wrong(&[part(0, 0, 4), part(1, 4, 4), part(2, 4, 0)], 3, true), None);
        assert_eq!(wrong(&[part(0, 0, 5), part(1, 4, 4)], 2, false), None);
        let cases = [
            (vec![part(2, 0, 1)], "rank 2 of 2"),
            (vec![part(1, 0, 1), part(1, 1, 1)], "two parts"),
            (vec![part(0, usize::MAX, 2)], "a part of 2 bytes"),
            (vec![part(1, 4, 4), part(0, 0, 5)], "ranks 0 and 1 overlap"),
        ];
        for (parts, text) in cases {
            let said = wrong(&parts, 2, true).expect("wrong");
            assert!(said.contains(text), "{said}");
        }
    }
}
