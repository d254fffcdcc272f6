//! The ring by one-sided puts. Each rank puts its segments into the windows of
//! the others. Segments go in packets. A word of the target counts the packets
//! that have arrived; the target takes each one as soon as it is signalled,
//! while it puts its own. Few puts are in flight at once. Encoded segments are
//! encoded packet by packet while earlier packets are in flight, and decoded
//! when they are taken.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferrier_plan::messages::{LENGTH_BYTES, Volumes, packed};

use super::shared_window::{RingWindow, WindowOwner, window_layout, window_offset, window_ranges};
use super::steps::{order, step};
use crate::exchange::coder::Coder;
use crate::exchange::groups::segments;
use crate::exchange::progress_set::{self, Exchange, ExchangeSpec, Operation, Protocol};
use crate::exchange::rank_exit::test_then_check;
use crate::transport::{Comm, Put, Segment, WakeHint, Window};
use crate::{Error, Result};

/// Packets in flight at once.
const IN_FLIGHT: usize = 4;

/// A segment to send.
#[derive(Clone, Copy)]
struct Outgoing {
    step: usize,
    peer: usize,
    /// Offset in the send buffer.
    from: usize,
    /// Offset in the window of the peer.
    to: usize,
    span: Span,
}

/// A segment as a sequence of packets, the bytes of one put each. An encoded segment is counted as if all its
/// chunks had the maximum length; fewer bytes may be sent.
#[derive(Clone, Copy)]
struct Span {
    len: usize,
    /// Bytes of a packet.
    packet: usize,
    /// Its chunks; 0 where it is not encoded.
    chunks: usize,
}

/// A segment to receive.
#[derive(Clone, Copy)]
struct Incoming {
    peer: usize,
    /// Offset in the receive buffer.
    offset: usize,
    span: Span,
}

/// A position in the segments sent: complete segments, and bytes of the next one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cursor {
    segment: usize,
    done: usize,
}

struct OneSided {
    ring: Arc<RingWindow>,
    /// Its number in the ring, and that of its reshape.
    number: usize,
    reshape: usize,
    /// Where the segment of each rank lies in this rank's window.
    window_offsets: Vec<usize>,
    /// The most bytes of a chunk of encoded segments, and whether lengths vary.
    slot: usize,
    varies: bool,
    /// In order of sending.
    sent: Vec<Outgoing>,
    received: Vec<Incoming>,
    run: Mutex<OneSidedRun>,
}

/// The progress of a run.
struct OneSidedRun {
    number: u64,
    send: *const u8,
    recv: *mut u8,
    coder: Option<Arc<dyn Coder>>,
    /// The sources were signalled that they may put.
    admitted: bool,
    /// Bytes taken of each segment received.
    taken: Vec<usize>,
    /// Puts before this are complete and signalled.
    completed: Cursor,
    /// Puts before this were started.
    started: Cursor,
}

// SAFETY: the pointers are used only under the lock and until completion, as the contract of `start` allows.
unsafe impl Send for OneSidedRun {}

/// `comm` belongs to the exchanges alone.
pub(super) fn exchanges(comm: Comm, all: &[Volumes], chunk: usize) -> Vec<Exchange> {
    let transport = comm.transport().clone();
    let (starts, bytes) = window_ranges(all, comm.rank(), comm.size());
    let ring = Arc::new(RingWindow::new(comm, bytes, all.len()));
    let specify = |(number, volumes)| specify(&ring, number, chunk, &starts[number], volumes);
    progress_set::exchanges(&transport, all.iter().enumerate().map(specify).collect())
}

fn specify(
    ring: &Arc<RingWindow>,
    number: usize,
    chunk: usize,
    starts: &[usize],
    volumes: &Volumes,
) -> ExchangeSpec {
    let (nodes, rank) = (ring.comm.nodes(), ring.comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (slot, varies) = volumes.encoded.as_ref().map_or((0, false), |coded| (coded.slot, coded.varies));
    let span = |len: usize, chunks: usize| match chunks {
        0 => Span { len, packet: chunk, chunks },
        _ => Span { len: chunks * slot, packet: (chunk / slot).max(1) * slot, chunks },
    };
    let (coded, count) = (volumes.encoded.as_ref(), ring.comm.node_count());
    let outgoing = |&peer: &usize| {
        let to = starts[peer] + window_offset(volumes, peer, rank);
        let span = span(volumes.to[peer], coded.map_or(0, |coded| coded.to[peer]));
        Outgoing { step: step(nodes, count, rank, peer), peer, from: send.offsets[peer], to, span }
    };
    let sent = order(nodes, rank).iter().filter(|&&peer| volumes.to[peer] > 0).map(outgoing).collect();
    let incoming = |segment: Segment| Incoming {
        peer: segment.peer,
        offset: segment.offset,
        span: span(segment.len, coded.map_or(0, |coded| coded.from[segment.peer])),
    };
    let received: Vec<Incoming> = segments(&recv, &volumes.from).into_iter().map(incoming).collect();
    let window_offsets = window_layout(&volumes.from).offsets.iter().map(|at| starts[rank] + at).collect();
    let run = Mutex::new(OneSidedRun {
        number: 0,
        send: std::ptr::null(),
        recv: std::ptr::null_mut(),
        coder: None,
        admitted: false,
        taken: vec![0; received.len()],
        completed: Cursor::default(),
        started: Cursor::default(),
    });
    let (ring, reshape, window) = (ring.clone(), volumes.reshape, ring.bytes);
    let protocol = OneSided { ring, number, reshape, window_offsets, slot, varies, sent, received, run };
    let mut spec = ExchangeSpec::new(send, recv, Operation::Protocol(Box::new(protocol)));
    (spec.window, spec.needs_coder, spec.buffers.encodes) = (window, slot > 0, slot > 0);
    spec
}

impl OneSided {
    fn run(&self) -> MutexGuard<'_, OneSidedRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals the sources that the window is free, when it is.
    fn admit(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        {
            // Checked and taken under one lock: a progress thread may do the same for another exchange.
            let mut owner = self.ring.owner();
            if run.admitted || !owner.admits(self.reshape) {
                return Ok(false);
            }
            *owner = WindowOwner { reshape: self.reshape, users: owner.users + 1 };
        }
        run.admitted = true;
        let own = self.ring.ready_word(self.number, self.ring.comm.rank());
        self.received.iter().try_for_each(|segment| window.signal(segment.peer, own, run.number))?;
        Ok(true)
    }

    /// Bytes of a segment that have arrived.
    fn arrived(&self, window: &dyn Window, run: &OneSidedRun, segment: &Incoming) -> usize {
        let word = window.word(self.ring.count_word(self.number, segment.peer));
        let packets = if word >> 32 == run.number & LOW { word & LOW } else { 0 };
        segment.span.len.min(packets as usize * segment.span.packet)
    }

    /// Takes the bytes that have arrived; whether there were any.
    fn take(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        let mut any = false;
        for (index, segment) in self.received.iter().enumerate() {
            let (arrived, taken) = (self.arrived(window, run, segment), run.taken[index]);
            if arrived > taken {
                match (&run.coder, segment.span.chunks) {
                    (Some(coder), 1..) => {
                        for packet in (taken..arrived).step_by(segment.span.packet) {
                            self.decode_packet(window, run.recv, segment, &**coder, packet)?;
                        }
                    }
                    _ => self.copy(window, run.recv, segment, taken..arrived)?,
                }
                (run.taken[index], any) = (arrived, true);
            }
        }
        Ok(any)
    }

    /// Copies bytes of a segment from the window to the receive buffer.
    fn copy(
        &self,
        window: &dyn Window,
        recv: *mut u8,
        segment: &Incoming,
        bytes: Range<usize>,
    ) -> Result<()> {
        // SAFETY: inside the receive buffer; by `start`'s contract nothing else accesses it until completion.
        let into =
            unsafe { std::slice::from_raw_parts_mut(recv.add(segment.offset + bytes.start), bytes.len()) };
        window.read(self.window_offsets[segment.peer] + bytes.start, into)
    }

    /// Takes a packet and decodes it, chunk by chunk.
    fn decode_packet(
        &self,
        window: &dyn Window,
        recv: *mut u8,
        segment: &Incoming,
        coder: &dyn Coder,
        packet: usize,
    ) -> Result<()> {
        let first = packet / self.slot;
        let last = segment.span.chunks.min(first + segment.span.packet / self.slot);
        let mut at = packet;
        for chunk in first..last {
            let most = coder.size(segment.peer, chunk);
            let mut len = most;
            if self.varies {
                self.copy(window, recv, segment, at..at + LENGTH_BYTES)?;
                // SAFETY: inside the receive buffer, and just written.
                let bytes = unsafe { recv.add(segment.offset + at).cast::<[u8; LENGTH_BYTES]>().read() };
                (len, at) = (u32::from_le_bytes(bytes) as usize, at + LENGTH_BYTES);
                if len > most {
                    let message = format!("a chunk of at most {most} bytes has a length field of {len}");
                    return Err(Error::codec(segment.peer, message));
                }
            }
            self.copy(window, recv, segment, at..at + len)?;
            coder.decode(segment.peer, chunk, at..at + len)?;
            at += len;
        }
        Ok(())
    }

    /// Is the window of the target free for this exchange?
    fn may_put(&self, window: &dyn Window, run: &OneSidedRun, segment: &Outgoing) -> bool {
        window.word(self.ring.ready_word(self.number, segment.peer)) == run.number
    }

    /// Signals packets that are complete, and puts the next ones of one step to targets that are ready; whether it did
    /// either.
    fn put(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        let signalled = run.completed != run.started;
        if signalled {
            if !window.puts_complete(self.number)? {
                return Ok(false);
            }
            self.signal_packets(window, run)?;
            run.completed = run.started;
        }
        let mut puts = [Put { peer: 0, offset: 0, data: std::ptr::null(), len: 0 }; IN_FLIGHT];
        let (mut count, mut now) = (0, run.completed);
        while count < IN_FLIGHT
            && let Some(segment) = self.sent.get(now.segment)
            && segment.step == self.sent[run.completed.segment].step
            && self.may_put(window, run, segment)
        {
            let len = segment.span.packet.min(segment.span.len - now.done);
            let data = run.send.wrapping_add(segment.from + now.done);
            // Encoded now, while earlier packets are in flight.
            let sent = match (&run.coder, segment.span.chunks) {
                (Some(coder), 1..) => {
                    let first = now.done / self.slot;
                    coder.encode(segment.peer, first..first + len / self.slot)
                }
                _ => len,
            };
            puts[count] = Put { peer: segment.peer, offset: segment.to + now.done, data, len: sent };
            count += 1;
            now.done += len;
            if now.done == segment.span.len {
                now = Cursor { segment: now.segment + 1, done: 0 };
            }
        }
        run.started = now;
        if count > 0 {
            // SAFETY: by `start`'s contract the send buffer lives and does not change until completion.
            unsafe { window.put(self.number, &puts[..count])? };
        }
        Ok(signalled || count > 0)
    }

    /// Signals the targets of all packets that were in flight.
    fn signal_packets(&self, window: &dyn Window, run: &OneSidedRun) -> Result<()> {
        let (first, now) = (run.completed.segment, run.started);
        for (number, segment) in self.sent.iter().enumerate().take(now.segment + 1).skip(first) {
            let done = if number < now.segment { segment.span.len } else { now.done };
            if done > 0 {
                let packets = done.div_ceil(segment.span.packet) as u64;
                let word = self.ring.count_word(self.number, self.ring.comm.rank());
                window.signal(segment.peer, word, (run.number & LOW) << 32 | packets)?;
            }
        }
        Ok(())
    }

    fn is_done(&self, run: &OneSidedRun) -> bool {
        run.completed.segment == self.sent.len()
            && run.admitted
            && self.received.iter().zip(&run.taken).all(|(segment, taken)| *taken == segment.span.len)
    }

    /// Does this rank wait for `peer`?
    fn awaits(&self, run: &OneSidedRun, peer: usize) -> bool {
        self.sent.get(run.completed.segment).is_some_and(|segment| segment.peer == peer)
            || self
                .received
                .iter()
                .zip(&run.taken)
                .any(|(segment, taken)| segment.peer == peer && *taken < segment.span.len)
    }

    fn release_window(&self, run: &mut OneSidedRun) {
        if std::mem::take(&mut run.admitted) {
            self.ring.owner().users -= 1;
        }
    }

    fn advance_run(&self, run: &mut OneSidedRun) -> Result<bool> {
        let window = self.ring.window()?;
        window.check(&|_| false)?;
        let test = |run: &mut OneSidedRun| {
            // One call of `put` in flight at a time: the next one would have to wait for it.
            while self.admit(window, run)? | self.take(window, run)? | self.put(window, run)? {
                if run.completed != run.started && window.wake_hint(self.number) != WakeHint::Now {
                    break;
                }
            }
            Ok(self.is_done(run))
        };
        test_then_check(run, test, |run| window.check(&|peer| self.awaits(run, peer)))
    }
}

/// The bits of a run's number that are segment of a word.
const LOW: u64 = u32::MAX as u64;

impl Protocol for OneSided {
    fn open(&self) -> Result<()> {
        self.ring.open()
    }

    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut run = self.run();
        run.number += 1;
        run.coder = coder.cloned();
        (run.send, run.recv, run.admitted) = (send, recv, false);
        (run.completed, run.started) = (Cursor::default(), Cursor::default());
        run.taken.fill(0);
        let window = self.ring.window()?;
        self.admit(window, &mut run)?;
        self.put(window, &mut run)?;
        Ok(())
    }

    fn advance(&self) -> Result<bool> {
        let mut run = self.run();
        let outcome = self.advance_run(&mut run);
        if !matches!(outcome, Ok(false)) {
            self.release_window(&mut run);
        }
        outcome
    }

    fn wake_hint(&self) -> WakeHint {
        let run = self.run();
        let Ok(window) = self.ring.window() else { return WakeHint::Now };
        let some = |(segment, taken): (&Incoming, &usize)| self.arrived(window, &run, segment) > *taken;
        let in_flight = run.completed != run.started;
        let may_put = || match self.sent.get(run.completed.segment) {
            Some(segment) if !in_flight => self.may_put(window, &run, segment),
            _ => false,
        };
        let now = self.is_done(&run)
            || !run.admitted && self.ring.owner().admits(self.reshape)
            || self.received.iter().zip(&run.taken).any(some)
            || may_put()
            || window.check(&|peer| self.awaits(&run, peer)).is_err();
        match now {
            true => WakeHint::Now,
            false if in_flight => window.wake_hint(self.number),
            false => WakeHint::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier_plan::messages::SegmentTable;

    fn value(from: usize, to: usize, at: usize, round: usize) -> u8 {
        (from * 61 + to * 17 + at * 3 + round * 101) as u8
    }

    /// Segments of many chunks, of one, of none; two exchanges alternate in one window.
    #[test]
    fn bytes_arrive_for_any_chunk_size() {
        let _watchdog = ferrier_test::watchdog(180);
        let length =
            |from: usize, to: usize, scale: usize| if from == to { 0 } else { (from + 2 * to) % 4 * scale };
        for (nodes, chunk) in [(1, 7), (2, 1), (4, 64), (2, 1000)] {
            let outcome = crate::ranks(4).nodes(nodes).run(|comm| {
                let rank = comm.rank();
                let table = |scale| SegmentTable::of(4, move |from, to| length(from, to, scale));
                let all = [23, 130].map(|scale| Volumes::new(table(scale), rank));
                let exchanges = exchanges(comm.duplicate()?, &all, chunk);
                exchanges.iter().try_for_each(Exchange::open)?;
                for round in 0..6 {
                    let (exchange, volumes) = (&exchanges[round % 2], &all[round % 2]);
                    let (mut send, mut recv) =
                        (vec![0; exchange.buffers().send.len], vec![0; exchange.buffers().recv.len]);
                    for to in 0..4 {
                        let segment = &mut send[exchange.buffers().send.offsets[to]..][..volumes.to[to]];
                        segment
                            .iter_mut()
                            .enumerate()
                            .for_each(|(at, byte)| *byte = value(rank, to, at, round));
                    }
                    // SAFETY: the buffers are as long as the exchange says, and live until `run` returns.
                    unsafe { exchange.run(send.as_ptr(), recv.as_mut_ptr(), None)? };
                    for from in 0..4 {
                        let segment = &recv[exchange.buffers().recv.offsets[from]..][..volumes.from[from]];
                        assert!(
                            segment
                                .iter()
                                .enumerate()
                                .all(|(at, &byte)| byte == value(from, rank, at, round))
                        );
                    }
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{nodes} nodes, chunks of {chunk}: {error}"));
        }
    }
}
