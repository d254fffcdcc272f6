//! The ring by one-sided puts. Each rank puts its segments into the windows of
//! the others. Segments go in packets. A packet is put as soon as it is
//! encoded; while it is in flight the next ones are encoded, and those that
//! have arrived are decoded. A word of the target counts the packets that have
//! arrived. Few packets are in flight at once, and each is retired on its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferrier_plan::messages::{BufferLayout, Volumes, packed};
use ferrier_plan::ring::IN_FLIGHT;

use super::shared_window::{RingWindow, WindowOwner, window_layout, window_offset, window_ranges};
use super::spans::{Cursor, Incoming, Outgoing, Span};
use super::steps::Steps;
use crate::Result;
use crate::exchange::coder::Coder;
use crate::exchange::groups::segments;
use crate::exchange::packets::{PacketPolicy, PacketTiming, PacketWork};
use crate::exchange::progress_set::{self, Exchange, ExchangeSpec, Operation, Protocol};
use crate::exchange::rank_exit::test_then_check;
use crate::transport::{Comm, Put, Segment, WakeHint, Window};

/// Most packets of a run that are timed: 3 MiB of reports.
const MOST_TIMINGS: usize = 1 << 16;

struct OneSided {
    ring: Arc<RingWindow>,
    /// Its number in the ring, and that of its reshape.
    number: usize,
    reshape: usize,
    /// Where the segment of each rank lies in this rank's window.
    window_offsets: Vec<usize>,
    /// Do passes load segments from the window?
    in_place: bool,
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
    /// Packets taken of each segment received.
    taken: Vec<usize>,
    /// Packets before this have arrived and are signalled.
    retired: Cursor,
    /// Packets before this were put.
    put: Cursor,
    /// When each packet in flight was put, and its bytes.
    puts: Vec<(Instant, usize)>,
    /// What was done, for reports: as much as there is room for, since calls do not allocate.
    timings: Vec<PacketTiming>,
}

// SAFETY: the pointers are used only under the lock and until completion, as the contract of `start` allows.
unsafe impl Send for OneSidedRun {}

impl OneSidedRun {
    fn in_flight(&self) -> usize {
        self.put.number - self.retired.number
    }

    fn record(&mut self, work: PacketWork, packet: usize, bytes: usize, start: Instant) {
        if self.timings.len() < self.timings.capacity() {
            self.timings.push(PacketTiming { work, packet, bytes, start, end: Instant::now() });
        }
    }
}

/// `comm` belongs to the exchanges alone.
pub(super) fn exchanges(comm: Comm, all: &[Volumes], policy: PacketPolicy, chunk: usize) -> Vec<Exchange> {
    let transport = comm.transport().clone();
    let (starts, bytes) = window_ranges(all, comm.rank(), comm.size());
    let depth = policy.in_flight.unwrap_or(IN_FLIGHT).max(1);
    let ring = Arc::new(RingWindow::new(comm, bytes, all.len(), depth));
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
    let rank = ring.comm.rank();
    let (send, mut recv) = (packed(&volumes.to), packed(&volumes.from));
    let coded = volumes.encoded.as_ref();
    let slot = coded.map_or(0, |coded| coded.slot);
    let span = |len: usize, chunks: usize| match chunks {
        0 => Span { len, packet: chunk, chunks, per_packet: 0 },
        _ => {
            let per_packet = (chunk / slot).max(1);
            Span { len, packet: per_packet * slot, chunks, per_packet }
        }
    };
    let order = Steps::new(volumes, ring.comm.nodes(), rank).peers(true);
    let mut steps: Vec<usize> = order.iter().map(|(_, step)| *step).collect();
    steps.dedup();
    let outgoing = |&(peer, step): &(usize, usize)| Outgoing {
        step: steps.partition_point(|other| *other < step),
        peer,
        from: send.offsets[peer],
        to: starts[peer] + window_offset(volumes, peer, rank),
        span: span(volumes.to[peer], coded.map_or(0, |coded| coded.to[peer])),
    };
    let sent: Vec<Outgoing> = order.iter().map(outgoing).collect();
    let incoming = |segment: Segment| Incoming {
        peer: segment.peer,
        offset: segment.offset,
        span: span(segment.len, coded.map_or(0, |coded| coded.from[segment.peer])),
    };
    let received: Vec<Incoming> = segments(&recv, &volumes.from).into_iter().map(incoming).collect();
    let window_offsets: Vec<usize> =
        window_layout(&volumes.from).offsets.iter().map(|at| starts[rank] + at).collect();
    let in_place = coded.is_none() && !volumes.via_host;
    let loaded = in_place.then(|| window_offsets.clone());
    if in_place {
        recv = BufferLayout { offsets: vec![0; volumes.from.len()], len: 0 };
    }
    // Encoding and transfer of each packet sent, decoding of each one received.
    let work = sent.iter().map(|segment| 2 * segment.span.packets()).sum::<usize>()
        + received.iter().map(|segment| segment.span.packets()).sum::<usize>();
    let run = Mutex::new(OneSidedRun {
        number: 0,
        send: std::ptr::null(),
        recv: std::ptr::null_mut(),
        coder: None,
        admitted: false,
        taken: vec![0; received.len()],
        retired: Cursor::default(),
        put: Cursor::default(),
        puts: vec![(Instant::now(), 0); ring.depth],
        timings: Vec::with_capacity(work.min(MOST_TIMINGS)),
    });
    let (ring, reshape, window) = (ring.clone(), volumes.reshape, ring.bytes);
    let protocol = OneSided { ring, number, reshape, window_offsets, in_place, sent, received, run };
    let mut spec = ExchangeSpec::new(send, recv, Operation::Protocol(Box::new(protocol)));
    (spec.window, spec.needs_coder, spec.buffers.encodes) = (window, slot > 0, slot > 0);
    spec.buffers.window = loaded;
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

    /// Packets of a segment that have arrived.
    fn arrived(&self, window: &dyn Window, run: &OneSidedRun, segment: &Incoming) -> usize {
        let word = window.word(self.ring.count_word(self.number, segment.peer));
        if word >> 32 == run.number & LOW { (word & LOW) as usize } else { 0 }
    }

    /// Takes a packet that has arrived: decodes it, or takes all that have arrived with it, by copying them if they are
    /// not loaded from the window. Whether there was one.
    fn take(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        let mut before = 0;
        for (index, segment) in self.received.iter().enumerate() {
            let (arrived, taken) = (self.arrived(window, run, segment), run.taken[index]);
            if arrived > taken {
                let start = Instant::now();
                let decoder = run.coder.as_ref().filter(|_| segment.span.chunks > 0);
                let packets = taken..if decoder.is_some() { taken + 1 } else { arrived };
                let bytes = segment.span.bytes(packets.clone());
                let from = window.bytes(self.window_offsets[segment.peer] + bytes.start, bytes.len())?;
                match decoder {
                    Some(coder) => {
                        // SAFETY: the packet has arrived, and its sender writes there again only after this run.
                        let from = unsafe { std::slice::from_raw_parts_mut(from, bytes.len()) };
                        coder.decode(segment.peer, segment.span.chunks(taken), from)?;
                        run.record(PacketWork::Decode, before + taken, bytes.len(), start);
                    }
                    None if self.in_place => {}
                    // SAFETY: inside the receive buffer, which by `start`'s contract nothing else accesses until
                    // completion; the packets have arrived.
                    None => unsafe {
                        run.recv
                            .add(segment.offset + bytes.start)
                            .copy_from_nonoverlapping(from, bytes.len());
                    },
                }
                run.taken[index] = packets.end;
                return Ok(true);
            }
            before += segment.span.packets();
        }
        Ok(false)
    }

    /// Whether the next packet may be put: its target is ready, and few others are in flight, all of this step and
    /// the one before it.
    fn next_put(&self, window: &dyn Window, run: &OneSidedRun) -> Result<NextPut> {
        let Some(segment) = self.sent.get(run.put.segment) else { return Ok(NextPut::No) };
        let first = self.sent[run.retired.segment].step;
        let ready = window.word(self.ring.ready_word(self.number, segment.peer)) == run.number;
        if run.in_flight() == self.ring.depth || segment.step > first + 1 || !ready {
            return Ok(NextPut::No);
        }
        let chunks = segment.span.chunks(run.put.packet);
        match run.coder.as_ref().filter(|_| !chunks.is_empty()) {
            Some(coder) if !coder.can_encode(segment.peer, chunks)? => Ok(NextPut::Encoding),
            _ => Ok(NextPut::Now(*segment)),
        }
    }

    /// Encodes the next packet and puts it; whether it may be put.
    fn put(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        let NextPut::Now(segment) = self.next_put(window, run)? else { return Ok(false) };
        let Cursor { packet, number, .. } = run.put;
        let bytes = segment.span.bytes(packet..packet + 1);
        let mut len = bytes.len();
        if let (Some(coder), 1..) = (run.coder.clone(), segment.span.chunks) {
            let start = Instant::now();
            len = coder.encode(segment.peer, segment.span.chunks(packet));
            run.record(PacketWork::Encode, number, len, start);
        }
        let data = run.send.wrapping_add(segment.from + bytes.start);
        let put = Put { peer: segment.peer, offset: segment.to + bytes.start, data, len };
        run.puts[number % self.ring.depth] = (Instant::now(), len);
        // SAFETY: by `start`'s contract the send buffer lives, and no packet is encoded twice in a run.
        unsafe { window.put(self.slot(number), &put)? };
        run.put = run.put.next(&self.sent);
        Ok(true)
    }

    /// The slot of the window that a packet uses.
    fn slot(&self, packet: usize) -> usize {
        self.number * self.ring.depth + packet % self.ring.depth
    }

    /// Signals the target of the first packet in flight when it has arrived; whether it has.
    fn retire(&self, window: &dyn Window, run: &mut OneSidedRun) -> Result<bool> {
        let Cursor { segment, packet, number } = run.retired;
        if run.in_flight() == 0 || !window.has_arrived(self.slot(number))? {
            return Ok(false);
        }
        let word = self.ring.count_word(self.number, self.ring.comm.rank());
        let count = (run.number & LOW) << 32 | (packet + 1) as u64;
        window.signal(self.sent[segment].peer, word, count)?;
        let (start, len) = run.puts[number % self.ring.depth];
        run.record(PacketWork::Transfer, number, len, start);
        run.retired = run.retired.next(&self.sent);
        Ok(true)
    }

    fn is_done(&self, run: &OneSidedRun) -> bool {
        run.retired.segment == self.sent.len()
            && run.admitted
            && self.received.iter().zip(&run.taken).all(|(segment, taken)| *taken == segment.span.packets())
    }

    /// Does this rank wait for `peer`?
    fn awaits(&self, run: &OneSidedRun, peer: usize) -> bool {
        self.sent.get(run.retired.segment).is_some_and(|segment| segment.peer == peer)
            || self
                .received
                .iter()
                .zip(&run.taken)
                .any(|(segment, taken)| segment.peer == peer && *taken < segment.span.packets())
    }

    fn release_window(&self, run: &mut OneSidedRun) {
        if std::mem::take(&mut run.admitted) {
            self.ring.owner().users -= 1;
        }
    }

    fn advance_run(&self, run: &mut OneSidedRun) -> Result<bool> {
        let window = self.ring.window()?;
        window.check(&|_| false)?;
        // Sending comes before decoding, so that the network is never idle while there is something to send.
        let test = |run: &mut OneSidedRun| {
            while self.admit(window, run)?
                || self.retire(window, run)?
                || self.put(window, run)?
                || self.take(window, run)?
            {}
            Ok(self.is_done(run))
        };
        test_then_check(run, test, |run| window.check(&|peer| self.awaits(run, peer)))
    }
}

/// The next packet of a rank.
enum NextPut {
    /// May not be put yet, or there is none.
    No,
    /// Is not encoded yet, by a device that does not wake this rank.
    Encoding,
    /// May be put.
    Now(Outgoing),
}

/// Between two questions whether a device has encoded a packet.
const ENCODER_POLL: Duration = Duration::from_micros(10);

/// The bits of a run's number that are part of a word.
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
        (run.retired, run.put) = (Cursor::default(), Cursor::default());
        run.taken.fill(0);
        run.timings.clear();
        let window = self.ring.window()?;
        self.admit(window, &mut run)?;
        while self.put(window, &mut run)? {}
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
        let next = self.next_put(window, &run);
        let now = self.is_done(&run)
            || !run.admitted && self.ring.owner().admits(self.reshape)
            || self.received.iter().zip(&run.taken).any(some)
            || matches!(next, Ok(NextPut::Now(_)) | Err(_))
            || window.check(&|peer| self.awaits(&run, peer)).is_err();
        let arrival = match run.in_flight() {
            0 => WakeHint::Nothing,
            _ => window.wake_hint(self.slot(run.retired.number)),
        };
        match next {
            _ if now => WakeHint::Now,
            Ok(NextPut::Encoding) => arrival.min(WakeHint::At(Instant::now() + ENCODER_POLL)),
            _ => arrival,
        }
    }

    fn window_address(&self) -> usize {
        let window = self.ring.window().ok().filter(|_| self.in_place);
        window.and_then(|window| window.bytes(0, self.ring.bytes).ok()).map_or(0, |start| start as usize)
    }

    fn timings(&self) -> Vec<PacketTiming> {
        self.run().timings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrier_plan::messages::SegmentTable;

    fn value(from: usize, to: usize, at: usize, round: usize) -> u8 {
        (from * 61 + to * 17 + at * 3 + round * 101) as u8
    }

    /// Segments of many chunks, of one, of none; two exchanges alternate in one window, and are copied out of it or not.
    #[test]
    fn bytes_arrive_for_any_chunk_size() {
        let _watchdog = ferrier_test::watchdog(180);
        let length =
            |from: usize, to: usize, scale: usize| if from == to { 0 } else { (from + 2 * to) % 4 * scale };
        for (nodes, chunk, via_host) in [(1, 7, true), (2, 1, false), (4, 64, true), (2, 1000, false)] {
            let outcome = crate::ranks(4).nodes(nodes).run(|comm| {
                let rank = comm.rank();
                let table = |scale| SegmentTable::of(4, move |from, to| length(from, to, scale));
                let all = [23, 130].map(|scale| Volumes { via_host, ..Volumes::new(table(scale), rank) });
                let exchanges = exchanges(comm.duplicate()?, &all, PacketPolicy::default(), chunk);
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
                        let segment = match &exchange.buffers().window {
                            None => &recv[exchange.buffers().recv.offsets[from]..][..volumes.from[from]],
                            Some(offsets) => {
                                let start = (exchange.window_address() + offsets[from]) as *const u8;
                                // SAFETY: inside the window; the exchange is complete.
                                unsafe { std::slice::from_raw_parts(start, volumes.from[from]) }
                            }
                        };
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
