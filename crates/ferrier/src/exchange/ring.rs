//! Exchange `ring`: a one-sided all-to-all. Each rank puts its parts into the
//! windows of the others, node after node, starting with the node after its
//! own: so no two nodes send to the same node at once. Parts go in chunks; a
//! word of the target counts those that are there, and it takes each as soon
//! as it is told of it, while it puts its own. Few puts are in flight at once.
//!
//! Where there are no windows the same ring goes by messages, a step at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Mover, Places, Volumes, packed, parts};
use crate::transport::{Part, Put, Window};
use crate::{Comm, Error, Result};

/// Bytes of a chunk, unless `FERRIER_RING_CHUNK` says otherwise.
const CHUNK: usize = 256 << 10;
/// The most chunks of a part: larger parts go in larger ones.
const MOST: usize = 1 << 14;
/// Chunks on their way at once.
const IN_FLIGHT: usize = 4;

/// What the movers of a plan have in common.
struct Ring {
    comm: Comm,
    /// Bytes of this rank's window.
    bytes: usize,
    window: OnceLock<Box<dyn Window>>,
    /// Runs so far: what tells this one's words from the last one's.
    runs: AtomicU64,
}

impl Ring {
    fn window(&self) -> Result<&dyn Window> {
        let window = self.window.get().map(|window| &**window);
        window.ok_or_else(|| Error::Transport("the window of an exchange was not opened".into()))
    }

    /// The word in which a rank tells that its window is free.
    fn ready(&self, rank: usize) -> usize {
        self.comm.size() + rank
    }
}

/// Part of a part.
#[derive(Clone, Copy)]
struct Chunk {
    step: usize,
    peer: usize,
    /// In the send buffer, and in the window of the peer.
    from: usize,
    to: usize,
    len: usize,
    /// How many have gone to this peer when this one has.
    count: u64,
}

struct OneSided {
    ring: Arc<Ring>,
    send: Places,
    recv: Places,
    /// Where parts lie in this rank's window.
    places: Places,
    chunk: usize,
    chunks: Vec<Chunk>,
    received: Vec<Part>,
    /// Bytes taken of each part received.
    taken: Mutex<Vec<usize>>,
}

struct TwoSided {
    comm: Comm,
    send: Places,
    recv: Places,
    /// What is sent and received in each step.
    steps: Vec<(Vec<Part>, Vec<Part>)>,
}

pub(super) fn movers(comm: &Comm, all: &[Volumes]) -> Result<Vec<Box<dyn Mover>>> {
    movers_in(comm, all, chunk_size(comm)?)
}

fn movers_in(comm: &Comm, all: &[Volumes], chunk: usize) -> Result<Vec<Box<dyn Mover>>> {
    let comm = comm.duplicate()?;
    if !comm.transport().has_windows()? {
        return all.iter().map(|volumes| two_sided(&comm, volumes)).collect();
    }
    let bytes = all.iter().map(|volumes| landing(&volumes.from).len).max().unwrap_or(0);
    let ring = Arc::new(Ring { comm, bytes, window: OnceLock::new(), runs: AtomicU64::new(0) });
    Ok(all.iter().map(|volumes| one_sided(&ring, chunk, volumes)).collect())
}

/// Rank 0's, on every rank.
fn chunk_size(comm: &Comm) -> Result<usize> {
    let asked = std::env::var("FERRIER_RING_CHUNK").ok().and_then(|text| text.parse().ok());
    let own: u64 = asked.unwrap_or(CHUNK as u64).max(1);
    let all = comm.all_gather(&own.to_le_bytes())?;
    Ok(all[0].as_slice().try_into().map_or(CHUNK, |bytes| u64::from_le_bytes(bytes) as usize))
}

/// Bytes of a chunk of a part that is `len` bytes long; the same on both sides.
fn chunk_of(chunk: usize, len: usize) -> usize {
    chunk.max(len.div_ceil(MOST))
}

/// Where parts from each rank come to lie in a window.
fn landing(from: &[usize]) -> Places {
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

fn one_sided(ring: &Arc<Ring>, chunk: usize, volumes: &Volumes) -> Box<dyn Mover> {
    let (nodes, rank) = (ring.comm.nodes(), ring.comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let mut chunks = Vec::new();
    for peer in order(nodes, rank) {
        let column: Vec<usize> = volumes.pairs.iter().map(|row| row[peer]).collect();
        let there = landing(&column).at[rank];
        let chunk = chunk_of(chunk, volumes.to[peer]);
        for (done, count) in (0..volumes.to[peer]).step_by(chunk).zip(1..) {
            let len = chunk.min(volumes.to[peer] - done);
            let step = step(nodes, rank, peer);
            chunks.push(Chunk { step, peer, from: send.at[peer] + done, to: there + done, len, count });
        }
    }
    let received = parts(&recv, &volumes.from);
    let taken = Mutex::new(vec![0; received.len()]);
    let places = landing(&volumes.from);
    Box::new(OneSided { ring: ring.clone(), send, recv, places, chunk, chunks, received, taken })
}

impl OneSided {
    /// Bytes of a part that have come.
    fn come(&self, window: &dyn Window, run: u64, part: &Part) -> usize {
        let word = window.word(part.peer);
        let chunks = if word >> 32 == run { word & u64::from(u32::MAX) } else { 0 };
        part.len.min(chunks as usize * chunk_of(self.chunk, part.len))
    }

    /// Takes what has come; whether anything had.
    fn take(&self, window: &dyn Window, run: u64, taken: &mut [usize], recv: &mut [u8]) -> Result<bool> {
        let mut any = false;
        for (part, taken) in self.received.iter().zip(taken) {
            let come = self.come(window, run, part);
            if come > *taken {
                let into = &mut recv[part.at + *taken..part.at + come];
                window.take(self.places.at[part.peer] + *taken, into)?;
                (*taken, any) = (come, true);
            }
        }
        Ok(any)
    }

    /// Puts the next chunks of one step to targets that are ready; how many.
    fn put(&self, window: &dyn Window, run: u64, chunks: &[Chunk], send: &[u8]) -> Result<usize> {
        let ready =
            |chunk: &&Chunk| chunk.step == chunks[0].step && window.word(self.ring.ready(chunk.peer)) == run;
        let count = chunks.iter().take(IN_FLIGHT).take_while(ready).count();
        let now = &chunks[..count];
        let mut puts = [Put { peer: 0, at: 0, data: &[] }; IN_FLIGHT];
        for (put, chunk) in puts.iter_mut().zip(now) {
            *put = Put { peer: chunk.peer, at: chunk.to, data: &send[chunk.from..chunk.from + chunk.len] };
        }
        if count > 0 {
            window.put(&puts[..count])?;
        }
        for (i, chunk) in now.iter().enumerate() {
            if now.get(i + 1).is_none_or(|next| next.peer != chunk.peer) {
                window.signal(chunk.peer, self.ring.comm.rank(), run << 32 | chunk.count)?;
            }
        }
        Ok(count)
    }
}

impl Mover for OneSided {
    fn send(&self) -> &Places {
        &self.send
    }

    fn recv(&self) -> &Places {
        &self.recv
    }

    fn window(&self) -> usize {
        self.ring.bytes
    }

    fn open(&self) -> Result<()> {
        if self.ring.window.get().is_none() {
            let comm = &self.ring.comm;
            let window = comm.transport().window(self.ring.bytes, 2 * comm.size())?;
            let _ = self.ring.window.set(window);
        }
        Ok(())
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        let window = self.ring.window()?;
        let run = (self.ring.runs.fetch_add(1, Ordering::SeqCst) + 1) & u64::from(u32::MAX);
        let own = self.ring.ready(self.ring.comm.rank());
        // What came last time has been taken: the sources may put again.
        self.received.iter().try_for_each(|part| window.signal(part.peer, own, run))?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.fill(0);
        let mut next = 0;
        loop {
            let mut moved = self.take(window, run, &mut taken, recv)?;
            if next < self.chunks.len() {
                let count = self.put(window, run, &self.chunks[next..], send)?;
                next += count;
                moved |= count > 0;
            }
            let waiting = |(part, taken): (&Part, &usize)| *taken < part.len;
            if next == self.chunks.len() && !self.received.iter().zip(taken.iter()).any(waiting) {
                return Ok(());
            }
            if moved {
                continue;
            }
            let target = self.chunks.get(next).map(|chunk| chunk.peer);
            let mut news = || {
                target.is_some_and(|peer| window.word(self.ring.ready(peer)) == run)
                    || self
                        .received
                        .iter()
                        .zip(&*taken)
                        .any(|(part, &have)| self.come(window, run, part) > have)
            };
            let owed = |peer: usize| {
                target == Some(peer)
                    || self.received.iter().zip(&*taken).any(|pair| pair.0.peer == peer && waiting(pair))
            };
            window.wait(&mut news, &owed)?;
        }
    }
}

fn two_sided(comm: &Comm, volumes: &Volumes) -> Result<Box<dyn Mover>> {
    let (nodes, rank) = (comm.nodes(), comm.rank());
    let (send, recv) = (packed(&volumes.to), packed(&volumes.from));
    let (sent, received) = (parts(&send, &volumes.to), parts(&recv, &volumes.from));
    let last = nodes.iter().max().map_or(1, |last| last + 1);
    let mut steps = Vec::new();
    for now in 1..=last {
        let to = sent.iter().filter(|part| step(nodes, rank, part.peer) == now).copied().collect::<Vec<_>>();
        let from =
            received.iter().filter(|part| step(nodes, part.peer, rank) == now).copied().collect::<Vec<_>>();
        comm.transport().prepare(true, &to, &from)?;
        steps.push((to, from));
    }
    Ok(Box::new(TwoSided { comm: comm.clone(), send, recv, steps }))
}

impl Mover for TwoSided {
    fn send(&self) -> &Places {
        &self.send
    }

    fn recv(&self) -> &Places {
        &self.recv
    }

    fn note(&self) -> Option<&'static str> {
        Some("ring: this MPI makes no windows between these ranks, so it goes by two-sided messages")
    }

    fn run(&self, send: &[u8], recv: &mut [u8]) -> Result<()> {
        let exchange =
            |(to, from): &(Vec<Part>, Vec<Part>)| self.comm.transport().messages(send, to, recv, from);
        self.steps.iter().try_for_each(exchange)
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
        let length =
            |from: usize, to: usize, scale: usize| if from == to { 0 } else { (from + 2 * to) % 4 * scale };
        for (nodes, chunk) in [(1, 7), (2, 1), (4, 64), (2, 1000)] {
            let outcome = crate::ranks(4).nodes(nodes).run(|comm| {
                let rank = comm.rank();
                let all = [23, 130].map(|scale| {
                    let row = |from| (0..4).map(|to| length(from, to, scale)).collect::<Vec<_>>();
                    let pairs: Vec<_> = (0..4).map(row).collect();
                    let from = pairs.iter().map(|row| row[rank]).collect();
                    Volumes { to: pairs[rank].clone(), from, largest: 3 * scale, pairs }
                });
                let movers = movers_in(&comm, &all, chunk)?;
                movers.iter().try_for_each(|mover| mover.open())?;
                for round in 0..6 {
                    let (mover, volumes) = (&movers[round % 2], &all[round % 2]);
                    let (mut send, mut recv) = (vec![0; mover.send().len], vec![0; mover.recv().len]);
                    for to in 0..4 {
                        let part = &mut send[mover.send().at[to]..][..volumes.to[to]];
                        part.iter_mut().enumerate().for_each(|(at, byte)| *byte = value(rank, to, at, round));
                    }
                    mover.run(&send, &mut recv)?;
                    for from in 0..4 {
                        let part = &recv[mover.recv().at[from]..][..volumes.from[from]];
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
