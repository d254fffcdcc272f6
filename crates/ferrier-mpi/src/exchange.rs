//! All-to-all with segments of any length, prepared once and run many times.
//!
//! Preparing checks that lengths agree on both sides and whether counts fit in
//! 32 bits on every rank. Runs check nothing and allocate nothing in this crate.

use crate::comm::Comm;
use crate::counts::{Counts, Operands};
use crate::data::{Op, received_at, sent_from};
use crate::error::{Error, Result};
use crate::ffi::{Aint, Count, Int};
use crate::library::counted;
use crate::p2p;
use crate::segment::{Segment, end, invalid, unequal};
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

/// A prepared exchange that can be run, or started, tested and started again, with
/// other buffers each time; see [`Comm::all_to_allv`] for a single one.
pub struct AllToAllV {
    /// Dropped before the method, whose lists MPI reads until the operations are complete.
    table: Table,
    comm: Comm,
    algorithm: Algorithm,
    sent: Vec<Segment>,
    received: Vec<Segment>,
    method: Method,
    /// The longest message.
    longest: usize,
}

enum Method {
    Wide(Counts<Count, Aint>),
    Narrow(Counts<Int, Int>),
    /// The length of all segments.
    Equal(usize),
    /// On a communicator on which no other message has this tag.
    Messages(i32),
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
        let (mpi, equal) = (comm.library(), sent.first().map_or(0, |segment| segment.len));
        let method = match algorithm {
            Algorithm::Collective if mpi.wide().is_some() => Method::Wide(Counts::new(size, sent, received)),
            Algorithm::Collective if agreed[1] <= mpi.limit() as u64 => {
                Method::Narrow(Counts::new(size, sent, received))
            }
            Algorithm::Equal if equal <= mpi.limit() => Method::Equal(equal),
            _ => {
                return Ok(AllToAllV::with(
                    comm.duplicate()?,
                    algorithm,
                    sent,
                    received,
                    Method::Messages(TAG),
                ));
            }
        };
        Ok(AllToAllV::with(comm.clone(), algorithm, sent, received, method))
    }

    fn with(
        comm: Comm,
        algorithm: Algorithm,
        sent: &[Segment],
        received: &[Segment],
        method: Method,
    ) -> AllToAllV {
        let table = Table::new(comm.library());
        let (sent, received) = (sent.to_vec(), received.to_vec());
        AllToAllV { table, comm, algorithm, sent, received, method, longest: usize::MAX }
    }

    /// Cuts segments into about equal messages of at most so many bytes, where it goes by messages. All
    /// ranks must give the same.
    #[must_use]
    pub fn cut(mut self, longest: usize) -> AllToAllV {
        self.longest = longest.max(1);
        self
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
        Ok(AllToAllV::with(comm.clone(), Algorithm::Messages, sent, received, Method::Messages(tag)))
    }

    /// Runs it. Collective; by messages, over the ranks that have segments for each
    /// other only. Allocates nothing after the first run.
    ///
    /// # Errors
    /// [`Error::Argument`] where a buffer is too short for the segments, or it is in
    /// flight; those of MPI.
    pub fn run(&mut self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        self.check(send.len(), recv.len())?;
        self.check_idle()?;
        // SAFETY: long enough, as just checked, and borrowed until all operations are complete.
        let outcome = unsafe { self.run_at(send.as_ptr(), recv.as_mut_ptr()) };
        if outcome.is_err() {
            self.table.end();
        }
        outcome
    }

    /// Runs it by a blocking call of MPI (by messages: starts it and waits).
    ///
    /// # Errors
    /// As [`AllToAllV::start`].
    ///
    /// # Safety
    /// As [`AllToAllV::start`].
    pub unsafe fn run_at(&mut self, send: *const u8, recv: *mut u8) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.begin(send, recv, None, true)? };
        self.wait()
    }

    /// Starts it. Collective, unless it goes by messages. Allocates nothing after
    /// the first time. With `lengths`, so many bytes go to each rank, at most as
    /// many as were prepared; the rest of the receiver's segment keeps its
    /// contents. Only exchanges by messages can do that.
    ///
    /// # Errors
    /// [`Error::Argument`] where it is in flight, or `lengths` are given to a
    /// collective; those of MPI.
    ///
    /// # Safety
    /// All segments sent lie inside memory at `send`, all segments received inside
    /// memory at `recv`, and the two do not overlap. Until
    /// [`test`](AllToAllV::test) returns true or [`wait`](AllToAllV::wait)
    /// returns, that memory lives, the sent bytes do not change and nothing else
    /// accesses the received ones. (Dropping it waits, too; forgetting it does
    /// not.)
    pub unsafe fn start(
        &mut self,
        send: *const u8,
        recv: *mut u8,
        lengths: Option<Lengths<'_>>,
    ) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.begin(send, recv, lengths, false) }
    }

    /// Whether it was started and is not known to be complete.
    pub fn in_flight(&self) -> bool {
        !self.table.is_empty()
    }

    /// Whether it is complete (or was not started). Makes progress.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn test(&mut self) -> Result<bool> {
        self.table.test()
    }

    /// Returns when it is complete.
    ///
    /// # Errors
    /// Those of MPI. It is complete then, too.
    pub fn wait(&mut self) -> Result<()> {
        self.table.wait()
    }

    /// Runs it where `blocking` is set and it is a collective, else starts it.
    ///
    /// # Safety
    /// As [`AllToAllV::start`].
    unsafe fn begin(
        &mut self,
        send: *const u8,
        recv: *mut u8,
        lengths: Option<Lengths<'_>>,
        blocking: bool,
    ) -> Result<()> {
        self.check_idle()?;
        let (sends, receives) = self.lengths();
        let from = if sends == 0 { sent_from::<u8>(&[]) } else { send };
        let to = received_at(recv, receives);
        if let Method::Messages(tag) = self.method {
            // SAFETY: this function has the same contract.
            return unsafe { self.start_messages(tag, from, to, lengths) };
        }
        if lengths.is_some() {
            return Err(Error::Argument("all_to_allv: a collective cannot have shorter segments".into()));
        }
        let mpi = self.comm.library();
        let operands = Operands { from, to, byte: mpi.h.byte, comm: self.comm.raw() };
        let mut request = 0;
        let new = (!blocking).then_some(&mut request);
        // SAFETY: `start`'s contract: every segment lies inside its buffer, which lives until
        // completion; lists live as long as `self`.
        unsafe {
            match (&self.method, mpi.wide()) {
                (Method::Narrow(counts), _) => {
                    let _guard = mpi.enter()?;
                    let call = if blocking { "MPI_Alltoallv" } else { "MPI_Ialltoallv" };
                    mpi.check(call, counts.call(&mpi.loaded.narrow, operands, new))?;
                }
                (Method::Wide(counts), Some(wide)) => {
                    let _guard = mpi.enter()?;
                    let call = if blocking { "MPI_Alltoallv_c" } else { "MPI_Ialltoallv_c" };
                    mpi.check(call, counts.call(wide, operands, new))?;
                }
                (&Method::Equal(n), _) if n <= mpi.limit() => {
                    let Operands { from, to, byte, comm } = operands;
                    let (from, to) = (from.cast(), to.cast());
                    match new {
                        None => {
                            counted!(
                                mpi,
                                "MPI_Alltoall",
                                alltoall(from, n as _, byte, to, n as _, byte, comm)
                            )?;
                        }
                        Some(new) => counted!(
                            mpi,
                            "MPI_Ialltoall",
                            ialltoall(from, n as _, byte, to, n as _, byte, comm, new)
                        )?,
                    }
                }
                // Prepared with 64-bit counts, before a test lowered the limit.
                _ => {
                    return Err(Error::Argument("the count limit changed after an exchange was made".into()));
                }
            }
        }
        if !blocking {
            self.table.push(request, false);
        }
        Ok(())
    }

    /// # Safety
    /// As [`AllToAllV::start`].
    unsafe fn start_messages(
        &mut self,
        tag: i32,
        from: *const u8,
        to: *mut u8,
        lengths: Option<Lengths<'_>>,
    ) -> Result<()> {
        let (comm, table) = (&self.comm, &mut self.table);
        let rank = comm.rank();
        // The last piece is shorter than the others.
        let limit = |len: usize| match len.div_ceil(self.longest) {
            0 | 1 => usize::MAX,
            pieces => len / pieces + 1,
        };
        for segment in self.received.iter().filter(|segment| segment.peer != rank && segment.len > 0) {
            // SAFETY: the segment lies inside the buffer, which `start`'s contract keeps.
            unsafe {
                let (start, len) = (to.add(segment.offset), segment.len);
                p2p::start_receive(table, comm, start, len, (segment.peer, tag), limit(len))?;
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
                    let start = from.add(segment.offset);
                    p2p::start_send(table, comm, start, length, (peer, tag), limit(most))?;
                }
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

    fn check_idle(&self) -> Result<()> {
        if self.in_flight() {
            return Err(Error::Argument("the exchange is in flight already".into()));
        }
        Ok(())
    }

    /// How long a send and a receive buffer must be to hold all segments.
    fn lengths(&self) -> (usize, usize) {
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

    /// Whether it goes by messages, so that segments arrive one by one.
    pub fn is_point_to_point(&self) -> bool {
        matches!(self.method, Method::Messages(..))
    }

    /// Why it goes by messages though a collective was asked for.
    pub fn substitution(&self) -> Option<&'static str> {
        let substituted = self.algorithm != Algorithm::Messages && self.is_point_to_point();
        substituted.then_some("counts exceed 32 bits and this MPI has no 64-bit calls")
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
