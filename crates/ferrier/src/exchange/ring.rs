//! Exchange `ring`: a one-sided all-to-all. Each rank puts its parts into the
//! windows of the others, node after node, starting with the node after its
//! own: so no two nodes send to the same node at once. Parts go in packets; a
//! word of the target counts those that are there, and it takes each as soon
//! as it is told of it, while it puts its own. Few puts are in flight at once.
//! Where parts are encoded, a packet is encoded when it is about to go, while
//! those before it fly, and decoded when it is taken.
//!
//! Where there are no windows the same ring goes by messages, a step at a time.

mod two_sided;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::progress_set::{Craft, Hull, fleet};
use super::rank_exit::look_and_ask;
use super::{BufferLayout, Coder, Exchange, LENGTH_BYTES, Volumes, packed, parts};
use crate::transport::{Part, Put, WakeHint, Window};
use crate::{Comm, Error, Result};
use two_sided::two_sided;

/// Bytes of a packet, unless `FERRIER_RING_CHUNK` says otherwise.
const CHUNK: usize = 256 << 10;
/// Packets on their way at once.
const IN_FLIGHT: usize = 4;

/// What the movers of a plan have in common.
struct Ring {
    comm: Comm,
    /// Bytes of this rank's window.
    bytes: usize,
    movers: usize,
    window: OnceLock<Box<dyn Window>>,
    /// Whose parts may come now.
    guests: Mutex<Guests>,
}

/// Movers of one reshape have places of their own in the window; those of
/// different reshapes share it, and take turns.
#[derive(Default)]
struct Guests {
    reshape: usize,
    count: usize,
}

impl Guests {
    fn admit(&self, reshape: usize) -> bool {
        self.count == 0 || self.reshape == reshape
    }
}

impl Ring {
    fn window(&self) -> Result<&dyn Window> {
        let window = self.window.get().map(|window| &**window);
        window.ok_or_else(|| Error::transport("the window of an exchange was not opened"))
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(&self, reshape: usize) -> bool {
        self.guests().admit(reshape)
    }

    /// The word in which a source counts the packets of a mover that are there.
    fn count(&self, mover: usize, rank: usize) -> usize {
        mover * 2 * self.comm.size() + rank
    }

    /// The word in which a target tells that its window is free for a mover.
    fn ready(&self, mover: usize, rank: usize) -> usize {
        self.count(mover, rank) + self.comm.size()
    }
}

/// A part on its way out.
#[derive(Clone, Copy)]
struct Outgoing {
    step: usize,
    peer: usize,
    /// In the send buffer, and in the window of the peer.
    from: usize,
    to: usize,
    span: Span,
}

/// A part as it goes in packets, the bytes of a put. One that is encoded is
/// counted as if all its chunks were as long as can be; less may go.
#[derive(Clone, Copy)]
struct Span {
    len: usize,
    /// Bytes of a packet.
    packet: usize,
    /// Chunks of it; 0 where it is not encoded.
    chunks: usize,
}

/// A part on its way in.
#[derive(Clone, Copy)]
struct Incoming {
    peer: usize,
    /// In the receive buffer.
    at: usize,
    span: Span,
}

/// How far a run has come: parts that have gone, bytes of the next one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cursor {
    part: usize,
    done: usize,
}

struct OneSided {
    ring: Arc<Ring>,
    /// Its number in the ring, and that of its reshape.
    number: usize,
    reshape: usize,
    /// Where parts come to lie in this rank's window.
    places: Vec<usize>,
    /// Bytes of a whole chunk of encoded parts at most, and whether they vary.
    slot: usize,
    varies: bool,
    /// In the order in which they go.
    sent: Vec<Outgoing>,
    received: Vec<Incoming>,
    state: Mutex<Run>,
}

/// How far a run has come.
struct Run {
    number: u64,
    send: *const u8,
    recv: *mut u8,
    coder: Option<Arc<dyn Coder>>,
    /// The sources were told that they may put.
    admitted: bool,
    /// Bytes taken of each part received.
    taken: Vec<usize>,
    /// What has landed, and what is at least on its way.
    landed: Cursor,
    flown: Cursor,
}

// SAFETY: the pointers are used as the caller of `start` allows, by whoever holds the run.
unsafe impl Send for Run {}

pub(super) fn movers(comm: &Comm, all: &[Volumes]) -> Result<Vec<Box<dyn Exchange>>> {
    movers_in(comm, all, chunk_size(comm)?)
}

fn movers_in(comm: &Comm, all: &[Volumes], chunk: usize) -> Result<Vec<Box<dyn Exchange>>> {
    let comm = comm.duplicate()?;
    let transport = comm.transport().clone();
    if !transport.has_windows()? {
        let hulls = all.iter().map(|volumes| two_sided(&comm, volumes)).collect::<Result<Vec<_>>>()?;
        return Ok(fleet(&transport, hulls));
    }
    let (starts, ends) = berths(all, comm.size());
    let bytes = ends[comm.rank()];
    let (window, guests) = (OnceLock::new(), Mutex::default());
    let ring = Arc::new(Ring { comm, bytes, movers: all.len(), window, guests });
    let hull = |(number, volumes)| one_sided(&ring, number, chunk, &starts[number], volumes);
    Ok(fleet(&transport, all.iter().enumerate().map(hull).collect()))
}

/// Where each mover's part of each rank's window begins, and the lengths of the windows.
fn berths(all: &[Volumes], size: usize) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut ends = vec![0; size];
    let mut used = vec![vec![0; size]; all.iter().map(|volumes| volumes.reshape + 1).max().unwrap_or(0)];
    let mut starts = Vec::with_capacity(all.len());
    for volumes in all {
        let used = &mut used[volumes.reshape];
        starts.push(used.clone());
        for rank in 0..size {
            used[rank] += landing(&column(volumes, rank)).len;
            ends[rank] = ends[rank].max(used[rank]);
        }
    }
    (starts, ends)
}

/// Bytes that come to a rank.
fn column(volumes: &Volumes, rank: usize) -> Vec<usize> {
    volumes.pairs.iter().map(|row| row[rank]).collect()
}

/// Rank 0's, on every rank.
fn chunk_size(comm: &Comm) -> Result<usize> {
    let asked = std::env::var("FERRIER_RING_CHUNK").ok().and_then(|text| text.parse().ok());
    let own: u64 = asked.unwrap_or(CHUNK as u64).max(1);
    let all = comm.all_gather(&own.to_le_bytes())?;
    Ok(all[0].as_slice().try_into().map_or(CHUNK, |bytes| u64::from_le_bytes(bytes) as usize))
}

/// Where parts from each rank come to lie in a window.
fn landing(from: &[usize]) -> BufferLayout {
    packed(&from.iter().map(|len| len.next_multiple_of(64)).collect::<Vec<_>>())
}

/// In which step a rank sends to another: the distance of their nodes, the own node last.
fn step(nodes: &[usize], from: usize, to: usize) -> usize {
    let count = nodes.iter().max().map_or(1, |last| last + 1);
    match (nodes[to] + count - nodes[from]) % count {
        0 => count,
        distance => distance,
    }
}

/// Whom a rank sends to, in order: by steps, and inside a node starting with
/// another rank than its neighbours do.
fn order(nodes: &[usize], rank: usize) -> Vec<usize> {
    let size = nodes.len();
    let mut peers: Vec<usize> = (0..size).filter(|&peer| peer != rank).collect();
    peers.sort_by_key(|&peer| (step(nodes, rank, peer), (peer + size - rank) % size));
    peers
}

fn one_sided(ring: &Arc<Ring>, number: usize, chunk: usize, starts: &[usize], volumes: &Volumes) -> Hull {
    let (nodes, rank) = (ring.comm.nodes(), ring.comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (slot, varies) = volumes.encoded.as_ref().map_or((0, false), |coded| (coded.slot, coded.varies));
    let span =
        |from: usize, to: usize| match volumes.encoded.as_ref().map_or(0, |coded| coded.chunks[from][to]) {
            0 => Span { len: volumes.pairs[from][to], packet: chunk, chunks: 0 },
            chunks => Span { len: chunks * slot, packet: (chunk / slot).max(1) * slot, chunks },
        };
    let outgoing = |&peer: &usize| {
        let to = starts[peer] + landing(&column(volumes, peer)).offsets[rank];
        Outgoing { step: step(nodes, rank, peer), peer, from: send.offsets[peer], to, span: span(rank, peer) }
    };
    let sent = order(nodes, rank).iter().filter(|&&peer| volumes.to[peer] > 0).map(outgoing).collect();
    let incoming = |part: Part| Incoming { peer: part.peer, at: part.at, span: span(part.peer, rank) };
    let received: Vec<Incoming> = parts(&recv, &volumes.from).into_iter().map(incoming).collect();
    let places = landing(&volumes.from).offsets.iter().map(|at| starts[rank] + at).collect();
    let state = Mutex::new(Run {
        number: 0,
        send: std::ptr::null(),
        recv: std::ptr::null_mut(),
        coder: None,
        admitted: false,
        taken: vec![0; received.len()],
        landed: Cursor::default(),
        flown: Cursor::default(),
    });
    let (ring, reshape, window) = (ring.clone(), volumes.reshape, ring.bytes);
    let craft = OneSided { ring, number, reshape, places, slot, varies, sent, received, state };
    let mut hull = Hull { window, ..Hull::new(send, recv, Box::new(craft)) };
    hull.buffers.encodes = slot > 0;
    hull
}

impl OneSided {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the sources that the window is free, when it is.
    fn admit(&self, window: &dyn Window, run: &mut Run) -> Result<bool> {
        {
            // Asked and entered at once: a progress thread may be doing the same for another mover.
            let mut guests = self.ring.guests();
            if run.admitted || !guests.admit(self.reshape) {
                return Ok(false);
            }
            *guests = Guests { reshape: self.reshape, count: guests.count + 1 };
        }
        run.admitted = true;
        let own = self.ring.ready(self.number, self.ring.comm.rank());
        self.received.iter().try_for_each(|part| window.signal(part.peer, own, run.number))?;
        Ok(true)
    }

    /// Bytes of a part that have come.
    fn come(&self, window: &dyn Window, run: &Run, part: &Incoming) -> usize {
        let word = window.word(self.ring.count(self.number, part.peer));
        let packets = if word >> 32 == run.number & LOW { word & LOW } else { 0 };
        part.span.len.min(packets as usize * part.span.packet)
    }

    /// Takes what has come; whether anything had.
    fn take(&self, window: &dyn Window, run: &mut Run) -> Result<bool> {
        let mut any = false;
        for (index, part) in self.received.iter().enumerate() {
            let (come, taken) = (self.come(window, run, part), run.taken[index]);
            if come > taken {
                match (&run.coder, part.span.chunks) {
                    (Some(coder), 1..) => {
                        for packet in (taken..come).step_by(part.span.packet) {
                            self.unpack(window, run.recv, part, &**coder, packet)?;
                        }
                    }
                    _ => self.copy(window, run.recv, part, taken..come)?,
                }
                (run.taken[index], any) = (come, true);
            }
        }
        Ok(any)
    }

    /// Copies bytes of a part from the window to the receive buffer.
    fn copy(&self, window: &dyn Window, recv: *mut u8, part: &Incoming, bytes: Range<usize>) -> Result<()> {
        // SAFETY: inside the receive buffer, which is ours until this is done.
        let into = unsafe { std::slice::from_raw_parts_mut(recv.add(part.at + bytes.start), bytes.len()) };
        window.take(self.places[part.peer] + bytes.start, into)
    }

    /// Takes a packet, chunk by chunk, and decodes each.
    fn unpack(
        &self,
        window: &dyn Window,
        recv: *mut u8,
        part: &Incoming,
        coder: &dyn Coder,
        packet: usize,
    ) -> Result<()> {
        let first = packet / self.slot;
        let last = part.span.chunks.min(first + part.span.packet / self.slot);
        let mut at = packet;
        for chunk in first..last {
            let most = coder.size(part.peer, chunk);
            let mut len = most;
            if self.varies {
                self.copy(window, recv, part, at..at + LENGTH_BYTES)?;
                // SAFETY: just copied.
                let bytes = unsafe { recv.add(part.at + at).cast::<[u8; LENGTH_BYTES]>().read() };
                (len, at) = (u32::from_le_bytes(bytes) as usize, at + LENGTH_BYTES);
                if len > most {
                    let message = format!("a chunk of at most {most} bytes says that it has {len}");
                    return Err(Error::codec(part.peer, message));
                }
            }
            self.copy(window, recv, part, at..at + len)?;
            coder.decode(part.peer, chunk, at..at + len)?;
            at += len;
        }
        Ok(())
    }

    /// Is the target of this part ready?
    fn may_put(&self, window: &dyn Window, run: &Run, part: &Outgoing) -> bool {
        window.word(self.ring.ready(self.number, part.peer)) == run.number
    }

    /// Tells of packets that have landed, and puts the next ones of one step to
    /// targets that are ready; whether it did either.
    fn put(&self, window: &dyn Window, run: &mut Run) -> Result<bool> {
        let told = run.landed != run.flown;
        if told {
            if !window.landed(self.number)? {
                return Ok(false);
            }
            self.tell(window, run)?;
            run.landed = run.flown;
        }
        let mut puts = [Put { peer: 0, at: 0, data: std::ptr::null(), len: 0 }; IN_FLIGHT];
        let (mut count, mut now) = (0, run.landed);
        while count < IN_FLIGHT
            && let Some(part) = self.sent.get(now.part)
            && part.step == self.sent[run.landed.part].step
            && self.may_put(window, run, part)
        {
            let len = part.span.packet.min(part.span.len - now.done);
            let data = run.send.wrapping_add(part.from + now.done);
            // Encoded now, while those before it fly.
            let goes = match (&run.coder, part.span.chunks) {
                (Some(coder), 1..) => {
                    let first = now.done / self.slot;
                    coder.encode(part.peer, first..first + len / self.slot)
                }
                _ => len,
            };
            puts[count] = Put { peer: part.peer, at: part.to + now.done, data, len: goes };
            count += 1;
            now.done += len;
            if now.done == part.span.len {
                now = Cursor { part: now.part + 1, done: 0 };
            }
        }
        run.flown = now;
        if count > 0 {
            // SAFETY: the send buffer stays as it is until this is done.
            unsafe { window.put(self.number, &puts[..count])? };
        }
        Ok(told || count > 0)
    }

    /// Tells the targets of all that was on its way.
    fn tell(&self, window: &dyn Window, run: &Run) -> Result<()> {
        let (first, now) = (run.landed.part, run.flown);
        for (number, part) in self.sent.iter().enumerate().take(now.part + 1).skip(first) {
            let done = if number < now.part { part.span.len } else { now.done };
            if done > 0 {
                let packets = done.div_ceil(part.span.packet) as u64;
                let word = self.ring.count(self.number, self.ring.comm.rank());
                window.signal(part.peer, word, (run.number & LOW) << 32 | packets)?;
            }
        }
        Ok(())
    }

    fn is_done(&self, run: &Run) -> bool {
        run.landed.part == self.sent.len()
            && run.admitted
            && self.received.iter().zip(&run.taken).all(|(part, taken)| *taken == part.span.len)
    }

    /// Does this rank wait for that one?
    fn is_owed(&self, run: &Run, peer: usize) -> bool {
        self.sent.get(run.landed.part).is_some_and(|part| part.peer == peer)
            || self
                .received
                .iter()
                .zip(&run.taken)
                .any(|(part, taken)| part.peer == peer && *taken < part.span.len)
    }

    fn leave(&self, run: &mut Run) {
        if std::mem::take(&mut run.admitted) {
            self.ring.guests().count -= 1;
        }
    }

    fn advance_run(&self, run: &mut Run) -> Result<bool> {
        let window = self.ring.window()?;
        window.check(&|_| false)?;
        let look = |run: &mut Run| {
            // A put at a time under way: more would wait here for the next.
            while self.admit(window, run)? | self.take(window, run)? | self.put(window, run)? {
                if run.landed != run.flown && window.landing(self.number) != WakeHint::Now {
                    break;
                }
            }
            Ok(self.is_done(run))
        };
        look_and_ask(run, look, |run| window.check(&|peer| self.is_owed(run, peer)))
    }
}

/// What of a run's number goes into a word.
const LOW: u64 = u32::MAX as u64;

impl Craft for OneSided {
    fn open(&self) -> Result<()> {
        if self.ring.window.get().is_none() {
            let (comm, movers) = (&self.ring.comm, self.ring.movers);
            let window = comm.transport().window(self.ring.bytes, movers * 2 * comm.size(), movers)?;
            let _ = self.ring.window.set(window);
        }
        Ok(())
    }

    unsafe fn start(&self, send: *const u8, recv: *mut u8, coder: Option<&Arc<dyn Coder>>) -> Result<()> {
        let mut run = self.run();
        if self.slot > 0 && coder.is_none() {
            return Err(Error::transport("an exchange of encoded parts was started without its coder"));
        }
        run.number += 1;
        run.coder = coder.cloned();
        (run.send, run.recv, run.admitted) = (send, recv, false);
        (run.landed, run.flown) = (Cursor::default(), Cursor::default());
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
            self.leave(&mut run);
        }
        outcome
    }

    fn news(&self) -> WakeHint {
        let run = self.run();
        let Ok(window) = self.ring.window() else { return WakeHint::Now };
        let some = |(part, taken): (&Incoming, &usize)| self.come(window, &run, part) > *taken;
        let flying = run.landed != run.flown;
        let may_put = || match self.sent.get(run.landed.part) {
            Some(part) if !flying => self.may_put(window, &run, part),
            _ => false,
        };
        let now = self.is_done(&run)
            || !run.admitted && self.ring.admits(self.reshape)
            || self.received.iter().zip(&run.taken).any(some)
            || may_put()
            || window.check(&|peer| self.is_owed(&run, peer)).is_err();
        match now {
            true => WakeHint::Now,
            false if flying => window.landing(self.number),
            false => WakeHint::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_each_step_a_node_is_sent_to_by_one_node() {
        for nodes in [vec![0, 0, 1, 1], vec![0, 1, 2, 0, 1, 2, 2], vec![0, 0, 0]] {
            let count = nodes.iter().max().unwrap() + 1;
            for now in 1..=count {
                for target in 0..count {
                    let mut senders: Vec<usize> = (0..nodes.len())
                        .filter(|&rank| {
                            order(&nodes, rank)
                                .iter()
                                .any(|&peer| nodes[peer] == target && step(&nodes, rank, peer) == now)
                        })
                        .map(|rank| nodes[rank])
                        .collect();
                    senders.dedup();
                    senders.sort_unstable();
                    senders.dedup();
                    assert!(senders.len() <= 1, "step {now}, node {target}: {senders:?}");
                }
            }
        }
    }

    fn value(from: usize, to: usize, at: usize, round: usize) -> u8 {
        (from * 61 + to * 17 + at * 3 + round * 101) as u8
    }

    /// Parts of many chunks, of one, of none; two movers in turn in one window.
    #[test]
    fn bytes_arrive_whatever_the_chunks() {
        let _watchdog = ferrier_test::watchdog(180);
        let length =
            |from: usize, to: usize, scale: usize| if from == to { 0 } else { (from + 2 * to) % 4 * scale };
        for (nodes, chunk) in [(1, 7), (2, 1), (4, 64), (2, 1000)] {
            let outcome = crate::ranks(4).nodes(nodes).run(|comm| {
                let rank = comm.rank();
                let all = [23, 130].map(|scale| {
                    let row = |from| (0..4).map(|to| length(from, to, scale)).collect::<Vec<_>>();
                    let pairs: Vec<_> = (0..4).map(row).collect();
                    let from = pairs.iter().map(|row| row[rank]).collect();
                    Volumes {
                        to: pairs[rank].clone(),
                        from,
                        largest: 3 * scale,
                        pairs,
                        reshape: 0,
                        encoded: None,
                        via_host: false,
                    }
                });
                let movers = movers_in(&comm, &all, chunk)?;
                movers.iter().try_for_each(|mover| mover.open())?;
                for round in 0..6 {
                    let (mover, volumes) = (&movers[round % 2], &all[round % 2]);
                    let (mut send, mut recv) =
                        (vec![0; mover.buffers().send.len], vec![0; mover.buffers().recv.len]);
                    for to in 0..4 {
                        let part = &mut send[mover.buffers().send.offsets[to]..][..volumes.to[to]];
                        part.iter_mut().enumerate().for_each(|(at, byte)| *byte = value(rank, to, at, round));
                    }
                    // SAFETY: the buffers are as long as the mover says.
                    unsafe { mover.run(send.as_ptr(), recv.as_mut_ptr(), None)? };
                    for from in 0..4 {
                        let part = &recv[mover.buffers().recv.offsets[from]..][..volumes.from[from]];
                        assert!(
                            part.iter().enumerate().all(|(at, &byte)| byte == value(from, rank, at, round))
                        );
                    }
                }
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{nodes} nodes, chunks of {chunk}: {error}"));
        }
    }

    #[test]
    fn every_other_rank_is_sent_to_once_and_the_own_node_last() {
        let nodes = [0, 0, 1, 1, 2];
        let peers = order(&nodes, 1);
        assert_eq!(peers[..4].len(), peers.len());
        assert_eq!(peers, [2, 3, 4, 0]);
    }
}
