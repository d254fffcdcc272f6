//! All-to-all with segments of any length, prepared once and run many times.
//!
//! Preparing checks that lengths agree on both sides and whether counts fit in
//! 32 bits on every rank. Runs check nothing and allocate nothing in this crate.

use crate::comm::Comm;
use crate::data::{Op, received_at, sent_from};
use crate::error::{Error, Result};
use crate::ffi::{Aint, Count, Int};
use crate::library::Counting;
use crate::p2p;
use crate::segment::{Segment, end, invalid, unequal};
use crate::status::Source;
use crate::table::Table;

/// How the segments are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `MPI_Alltoallv`; by messages where counts exceed its limit.
    Collective,
    /// One message per segment, on a separate communicator; segments can be used
    /// as they arrive.
    Messages,
    /// `MPI_Alltoall`: a segment for every rank, this one included, all of one
    /// length and contiguous; by messages where that exceeds its limit.
    Equal,
}

/// Bytes that are sent to each rank.
pub type Lengths<'a> = &'a dyn Fn(usize) -> usize;

/// A prepared exchange; see [`Comm::all_to_allv`] for a single one.
pub struct AllToAllV {
    comm: Comm,
    algorithm: Algorithm,
    sent: Vec<Segment>,
    received: Vec<Segment>,
    method: Method,
}

enum Method {
    Wide(Counts<Count, Aint>),
    Narrow(Counts<Int, Int>),
    /// The length of all segments.
    Equal(usize),
    /// On a communicator on which no other message has this tag.
    Messages(Comm, i32),
}

/// Counts and displacements in MPI's types.
pub(crate) struct Counts<C, D> {
    pub send: Vec<C>,
    pub send_at: Vec<D>,
    pub recv: Vec<C>,
    pub recv_at: Vec<D>,
}

impl<C: Copy + Default + TryFrom<usize>, D: Copy + Default + TryFrom<usize>> Counts<C, D> {
    fn new(size: usize, sent: &[Segment], received: &[Segment]) -> Counts<C, D> {
        let list = |segments: &[Segment]| {
            let (mut counts, mut offsets) = (vec![C::default(); size], vec![D::default(); size]);
            for segment in segments {
                counts[segment.peer] = C::try_from(segment.len).unwrap_or_default();
                offsets[segment.peer] = D::try_from(segment.offset).unwrap_or_default();
            }
            (counts, offsets)
        };
        let ((send, send_at), (recv, recv_at)) = (list(sent), list(received));
        Counts { send, send_at, recv, recv_at }
    }
}

/// Tag of messages on a separate communicator.
const TAG: i32 = 1;

impl AllToAllV {
    /// Prepares an exchange: at most one segment per rank and direction. Collective;
    /// allocates.
    ///
    /// # Errors
    /// [`Error::Argument`] on every rank where the segments of one are invalid, do
    /// not match those of its peers, or `algorithm` differs; those of MPI.
    pub fn new(
        comm: &Comm,
        sent: &[Segment],
        received: &[Segment],
        algorithm: Algorithm,
    ) -> Result<AllToAllV> {
        let size = comm.size();
        let mut problem = invalid(sent, size, false).or_else(|| invalid(received, size, true));
        if algorithm == Algorithm::Equal {
            problem = problem.or_else(|| unequal(sent, size)).or_else(|| unequal(received, size));
        }
        let lengths = |segments: &[Segment]| {
            let mut lengths = vec![0_u64; size];
            segments
                .iter()
                .filter(|segment| segment.peer < size)
                .for_each(|segment| lengths[segment.peer] = segment.len as u64);
            lengths
        };
        let (expected, mut coming) = (lengths(received), vec![0_u64; size]);
        comm.all_to_all(&lengths(sent), &mut coming)?;
        if problem.is_none() {
            problem = (0..size).find(|&peer| coming[peer] != expected[peer]).map(|peer| {
                format!("rank {peer} sends {} bytes, {} are expected", coming[peer], expected[peer])
            });
        }
        let extent = if problem.is_some() { 0 } else { end(sent).max(end(received)) as u64 };
        let number = algorithm as u64;
        let mut agreed = [u64::from(problem.is_some()), extent, number, u64::from(u32::MAX) - number];
        comm.all_reduce(&mut agreed, Op::Max)?;
        if let Some(problem) = problem {
            return Err(Error::Argument(format!("all_to_allv: {problem}")));
        }
        if agreed[0] != 0 || agreed[2] + agreed[3] != u64::from(u32::MAX) {
            let why = if agreed[0] != 0 {
                "the segments of another rank are invalid"
            } else {
                "ranks ask for different algorithms"
            };
            return Err(Error::Argument(format!("all_to_allv: {why}")));
        }
        let method = match (algorithm, comm.library().counting()) {
            (Algorithm::Collective, Counting::Wide(_)) => Method::Wide(Counts::new(size, sent, received)),
            (Algorithm::Collective, Counting::Split(limit)) if agreed[1] <= limit as u64 => {
                Method::Narrow(Counts::new(size, sent, received))
            }
            (Algorithm::Equal, counting) if counting.takes(sent[0].len) => Method::Equal(sent[0].len),
            _ => Method::Messages(comm.duplicate()?, TAG),
        };
        Ok(AllToAllV {
            comm: comm.clone(),
            algorithm,
            sent: sent.to_vec(),
            received: received.to_vec(),
            method,
        })
    }

    /// Prepares an exchange by messages without communication. Not collective;
    /// allocates. The messages use `comm` itself with this tag (0 to 32767), which
    /// no other message may use. Exchanges with different tags can be in flight at
    /// once, started in any order.
    ///
    /// Segments must match those of the peers. Where they do not, runs wait forever
    /// or return MPI's error; no memory outside the segments is accessed.
    ///
    /// # Errors
    /// [`Error::Argument`] where this rank's segments are invalid.
    pub fn local(comm: &Comm, sent: &[Segment], received: &[Segment], tag: i32) -> Result<AllToAllV> {
        let own = |list: &[Segment]| list.iter().find(|own| own.peer == comm.rank()).map_or(0, |own| own.len);
        let problem = invalid(sent, comm.size(), false)
            .or_else(|| invalid(received, comm.size(), true))
            .or_else(|| {
                (own(sent) != own(received)).then(|| "the rank's own segments differ in length".into())
            })
            .or_else(|| (!(0..=32767).contains(&tag)).then(|| format!("a tag of {tag}")));
        if let Some(problem) = problem {
            return Err(Error::Argument(format!("all_to_allv: {problem}")));
        }
        let (algorithm, method) = (Algorithm::Messages, Method::Messages(comm.clone(), tag));
        Ok(AllToAllV {
            comm: comm.clone(),
            algorithm,
            sent: sent.to_vec(),
            received: received.to_vec(),
            method,
        })
    }

    /// Runs it. Collective; by messages, over the ranks that have segments for each
    /// other only. Allocates nothing after the first run.
    ///
    /// # Errors
    /// [`Error::Argument`] where a buffer is too short for the segments; those of MPI.
    pub fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.check(send.len(), recv.len())?;
        let table = Table::new(self.comm.library());
        // SAFETY: long enough, as just checked, and borrowed until all operations are complete.
        unsafe { self.run_at(&table, sent_from(send), received_at(recv.as_mut_ptr(), recv.len()))? };
        table.wait(0..table.len())
    }

    /// Runs it by a blocking call, or starts operations that are then in the table.
    ///
    /// # Safety
    /// As [`AllToAllV::start`].
    pub(crate) unsafe fn run_at(&self, table: &Table, from: *const u8, to: *mut u8) -> Result<()> {
        let mpi = self.comm.library();
        let (byte, raw, calls) = (mpi.h.byte, self.comm.raw(), mpi.calls());
        let (call, code) = match (&self.method, mpi.counting()) {
            (Method::Narrow(n), _) => {
                let _guard = mpi.enter()?;
                let (send, send_at) = (n.send.as_ptr(), n.send_at.as_ptr());
                let (recv, recv_at) = (n.recv.as_ptr(), n.recv_at.as_ptr());
                // SAFETY: every segment lies inside its buffer; lists have an entry per rank.
                ("MPI_Alltoallv", unsafe {
                    (calls.alltoallv)(from.cast(), send, send_at, byte, to.cast(), recv, recv_at, byte, raw)
                })
            }
            (Method::Wide(w), Counting::Wide(wide)) => {
                let _guard = mpi.enter()?;
                let (send, send_at) = (w.send.as_ptr(), w.send_at.as_ptr());
                let (recv, recv_at) = (w.recv.as_ptr(), w.recv_at.as_ptr());
                // SAFETY: as above.
                ("MPI_Alltoallv_c", unsafe {
                    (wide.alltoallv)(from.cast(), send, send_at, byte, to.cast(), recv, recv_at, byte, raw)
                })
            }
            (&Method::Equal(block), Counting::Wide(wide)) => {
                let (_guard, count) = (mpi.enter()?, block as Count);
                // SAFETY: both buffers hold a block for every rank.
                ("MPI_Alltoall_c", unsafe {
                    (wide.alltoall)(from.cast(), count, byte, to.cast(), count, byte, raw)
                })
            }
            (&Method::Equal(block), counting) if counting.takes(block) => {
                let (_guard, count) = (mpi.enter()?, block as Int);
                // SAFETY: as above.
                ("MPI_Alltoall", unsafe {
                    (calls.alltoall)(from.cast(), count, byte, to.cast(), count, byte, raw)
                })
            }
            // SAFETY: this function has the contract of `start`.
            _ => return unsafe { self.start(table, from, to, None) },
        };
        mpi.check(call, code)
    }

    /// Starts it. With `lengths`, so many bytes go to each rank, at most as many as
    /// were prepared: only by messages.
    ///
    /// # Safety
    /// [`AllToAllV::check`] has passed; until the operations are complete this
    /// exchange and both buffers live, the sent bytes do not change and only MPI
    /// accesses the received ones.
    pub(crate) unsafe fn start(
        &self,
        table: &Table,
        from: *const u8,
        to: *mut u8,
        lengths: Option<Lengths<'_>>,
    ) -> Result<()> {
        let mpi = self.comm.library();
        let (byte, raw, calls) = (mpi.h.byte, self.comm.raw(), mpi.calls());
        let mut handle = 0;
        match (&self.method, mpi.counting()) {
            // SAFETY: this function has the same contract.
            (Method::Messages(..), _) => return unsafe { self.start_messages(table, from, to, lengths) },
            _ if lengths.is_some() => {
                return Err(Error::Argument("all_to_allv: a collective cannot have shorter segments".into()));
            }
            (&Method::Equal(block), Counting::Wide(wide)) => {
                let (_guard, count, new) = (mpi.enter()?, block as Count, &mut handle);
                // SAFETY: both buffers hold a block for every rank.
                let code =
                    unsafe { (wide.ialltoall)(from.cast(), count, byte, to.cast(), count, byte, raw, new) };
                mpi.check("MPI_Ialltoall_c", code)?;
                table.push(handle, false, 0);
            }
            (&Method::Equal(block), counting) if counting.takes(block) => {
                let (_guard, count, new) = (mpi.enter()?, block as Int, &mut handle);
                // SAFETY: as above.
                let code =
                    unsafe { (calls.ialltoall)(from.cast(), count, byte, to.cast(), count, byte, raw, new) };
                mpi.check("MPI_Ialltoall", code)?;
                table.push(handle, false, 0);
            }
            (Method::Narrow(n), _) => {
                let _guard = mpi.enter()?;
                // SAFETY: every segment lies inside its buffer; lists live as long as `self`.
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
            (Method::Wide(w), Counting::Wide(wide)) => {
                let _guard = mpi.enter()?;
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
            // Prepared with 64-bit counts, before a test lowered the limit.
            (Method::Wide(_) | Method::Equal(_), Counting::Split(_)) => {
                return Err(Error::Argument("the count limit changed after an exchange was made".into()));
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`AllToAllV::start`].
    unsafe fn start_messages(
        &self,
        table: &Table,
        from: *const u8,
        to: *mut u8,
        lengths: Option<Lengths<'_>>,
    ) -> Result<()> {
        let Method::Messages(own, tag) = &self.method else { return Ok(()) };
        let (rank, tag) = (own.rank(), *tag);
        for (index, segment) in self.received.iter().enumerate() {
            if segment.peer != rank && segment.len > 0 {
                // SAFETY: the segment lies inside the buffer, which `start`'s contract keeps.
                unsafe {
                    let source = Source::Rank(segment.peer);
                    p2p::start_receive(table, own, to.add(segment.offset), segment.len, source, tag, index)?;
                }
            } else {
                table.push_complete(index);
            }
        }
        // Each rank begins with the next one, so that not all send to rank 0 first.
        let first = self.sent.iter().position(|segment| segment.peer > rank).unwrap_or(0);
        for segment in self.sent[first..].iter().chain(&self.sent[..first]).filter(|segment| segment.len > 0)
        {
            let (peer, most) = (segment.peer, segment.len);
            if peer != rank {
                let length = [lengths.map_or(most, |lengths| lengths(peer).min(most)), most];
                // SAFETY: as above.
                unsafe {
                    p2p::start_send(table, own, from.add(segment.offset), length, peer, tag, usize::MAX)?
                };
            } else if let Some(mine) = self.received.iter().find(|mine| mine.peer == rank) {
                // SAFETY: both lie inside their buffers and have the same length (checked
                // when prepared); by `start`'s contract the buffers do not overlap.
                unsafe {
                    to.add(mine.offset).copy_from_nonoverlapping(from.add(segment.offset), mine.len);
                };
            }
        }
        Ok(())
    }

    /// How long a send and a receive buffer must be to hold all segments.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (end(&self.sent), end(&self.received))
    }

    /// Checks that buffers of these lengths hold all segments.
    pub(crate) fn check(&self, send: usize, recv: usize) -> Result<()> {
        let (sent, received) = self.lengths();
        for (what, have, need) in [("send", send, sent), ("receive", recv, received)] {
            if have < need {
                return Err(Error::Argument(format!(
                    "all_to_allv: a {what} buffer of {have} bytes, segments need {need}"
                )));
            }
        }
        Ok(())
    }

    /// The segments received.
    pub fn received(&self) -> &[Segment] {
        &self.received
    }

    /// The segments sent.
    pub fn sent(&self) -> &[Segment] {
        &self.sent
    }

    /// Whether it goes by messages, so that segments arrive one by one.
    pub fn is_point_to_point(&self) -> bool {
        matches!(self.method, Method::Messages(..))
    }

    /// Why it goes by messages though a collective was asked for.
    pub fn substitution(&self) -> Option<&'static str> {
        let substituted = self.algorithm != Algorithm::Messages && self.is_point_to_point();
        substituted.then_some("counts exceed 32 bits and this MPI has no 64-bit calls")
    }

    pub(crate) fn comm(&self) -> &Comm {
        &self.comm
    }

    pub(crate) fn narrow(&self) -> Option<&Counts<Int, Int>> {
        if let Method::Narrow(counts) = &self.method { Some(counts) } else { None }
    }

    pub(crate) fn wide(&self) -> Option<&Counts<Count, Aint>> {
        if let Method::Wide(counts) = &self.method { Some(counts) } else { None }
    }
}

impl Comm {
    /// A single exchange: prepares it, runs it once. Collective; allocates.
    ///
    /// # Errors
    /// Those of [`AllToAllV::new`] and [`AllToAllV::run`].
    pub fn all_to_allv(
        &self,
        send: &[u8],
        sent: &[Segment],
        recv: &mut [u8],
        received: &[Segment],
    ) -> Result<()> {
        AllToAllV::new(self, sent, received, Algorithm::Collective)?.run(send, recv)
    }
}
